"""Public and denied addresses: each range with its first and last address and the neighbours just outside."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest

from browser_shell.policy.addresses import (
    IPV4_DENIED,
    IPV6_DENIED,
    METADATA,
    classify,
    covers_metadata,
    is_metadata,
    parse_exemption,
)

# first and last address inside, the rule, and the neighbours outside: "" where the neighbour belongs to another row
IPV4_ROWS = [
    ("0.0.0.0", "0.255.255.255", "address.unspecified", "", "1.0.0.0"),
    ("10.0.0.0", "10.255.255.255", "address.private", "9.255.255.255", "11.0.0.0"),
    ("100.64.0.0", "100.127.255.255", "address.cgnat", "100.63.255.255", "100.128.0.0"),
    ("127.0.0.0", "127.255.255.255", "address.loopback", "126.255.255.255", "128.0.0.0"),
    ("169.254.0.0", "169.254.255.255", "address.link_local", "169.253.255.255", "169.255.0.0"),
    ("172.16.0.0", "172.31.255.255", "address.private", "172.15.255.255", "172.32.0.0"),
    ("192.0.0.0", "192.0.0.255", "address.protocol", "191.255.255.255", "192.0.1.0"),
    ("192.0.2.0", "192.0.2.255", "address.documentation", "192.0.1.255", "192.0.3.0"),
    ("192.88.99.0", "192.88.99.255", "address.relay_6to4", "192.88.98.255", "192.88.100.0"),
    ("192.168.0.0", "192.168.255.255", "address.private", "192.167.255.255", "192.169.0.0"),
    ("198.18.0.0", "198.19.255.255", "address.benchmark", "198.17.255.255", "198.20.0.0"),
    ("198.51.100.0", "198.51.100.255", "address.documentation", "198.51.99.255", "198.51.101.0"),
    ("203.0.113.0", "203.0.113.255", "address.documentation", "203.0.112.255", "203.0.114.0"),
    ("224.0.0.0", "239.255.255.255", "address.multicast", "223.255.255.255", ""),
    ("240.0.0.0", "255.255.255.254", "address.reserved", "", ""),
    ("255.255.255.255", "255.255.255.255", "address.broadcast", "", ""),
]
IPV6_ROWS = [
    ("::", "::", "address.unspecified", "", ""),
    ("::1", "::1", "address.loopback", "", ""),
    ("::2", "::ffff:ffff", "address.embedded", "", ""),
    ("::ffff:0:0", "::ffff:ffff:ffff", "address.embedded", "", ""),
    ("::ffff:0:0:0", "::ffff:0:ffff:ffff", "address.embedded", "", ""),
    ("64:ff9b::", "64:ff9b::ffff:ffff", "address.embedded", "", ""),
    ("64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff", "address.embedded", "", ""),
    ("100::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "address.reserved", "", "2000::"),
    (
        "2001::",
        "2001:0:ffff:ffff:ffff:ffff:ffff:ffff",
        "address.embedded",
        "2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        "",
    ),
    ("2001:1::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", "address.protocol", "", "2001:200::"),
    ("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "address.documentation", "2001:db7::1", "2001:db9::"),
    ("2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "address.embedded", "2001:ffff::1", "2003::"),
    ("3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", "address.documentation", "3ffe:ffff::1", "3fff:1000::"),
    ("4000::", "fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "address.reserved", "3fff:ffff::1", ""),
    ("fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "address.private", "", ""),
    ("fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "address.link_local", "", ""),
    ("fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "address.private", "", ""),
    ("ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "address.multicast", "", ""),
]
ROWS = IPV4_ROWS + IPV6_ROWS
PUBLIC = [
    "8.8.8.8",
    "93.184.215.14",
    "192.31.196.1",
    "192.52.193.1",
    "192.175.48.1",
    "2606:2800:21f:cb07::1",
    "2a00:1450::e",
]


@pytest.mark.promise("address:own-table")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row[0]))
def test_a_range_is_denied_from_its_first_to_its_last_address(row: tuple[str, ...]) -> None:
    for text in row[:2]:
        decision = classify(ip_address(text))
        assert (decision.allowed, decision.rule_id) == (False, row[2])


@pytest.mark.parametrize("text", [text for row in ROWS for text in row[3:] if text] + PUBLIC)
def test_the_neighbours_of_a_range_are_public(text: str) -> None:
    assert classify(ip_address(text)).allowed


def test_no_row_of_the_table_is_untested() -> None:
    # Compared as addresses, because Python 3.13 writes ::ffff:0:0 differently.
    tested = {ip_address(row[0]) for row in ROWS}
    assert {entry.network.network_address for entry in IPV4_DENIED + IPV6_DENIED} <= tested


@pytest.mark.promise("address:metadata")
@pytest.mark.parametrize("address", METADATA, ids=str)
def test_metadata_addresses_have_their_own_rule(address: IPv4Address | IPv6Address) -> None:
    assert classify(address).rule_id == "address.metadata"


IPV6_FORMS = [
    "::169.254.169.254",
    "::ffff:169.254.169.254",
    "::ffff:0:169.254.169.254",
    "64:ff9b::169.254.169.254",
    "64:ff9b:1::169.254.169.254",
    "2002:a9fe:a9fe::1",
    "2001:0:a9fe:a9fe::1",
    "2001:0:1:1::5601:5601",  # Teredo inverts all bits of the client address
    "2a00::5efe:169.254.169.254",
    "fd00:ec2::254%eth0",
]


@pytest.mark.promise("address:metadata")
@pytest.mark.parametrize("text", IPV6_FORMS)
def test_metadata_addresses_are_found_inside_ipv6_addresses(text: str) -> None:
    assert is_metadata(IPv6Address(text))
    assert classify(IPv6Address(text)).rule_id == "address.metadata"


@pytest.mark.parametrize("text", ["2a00::5efe:a00:1", "2a00::200:5efe:a00:1"])
def test_isatap_is_denied_under_any_prefix(text: str) -> None:
    assert classify(IPv6Address(text)).rule_id == "address.embedded"


def test_an_address_bound_to_an_interface_is_denied() -> None:
    assert classify(IPv6Address("2a00::1%eth0")).rule_id == "address.link_local"


@pytest.mark.parametrize(
    "text", ["0.0.0.0/0", "169.254.0.0/16", "100.64.0.0/10", "::/0", "fd00::/8", "::ffff:0:0/96", "2002::/16"]
)
def test_a_network_with_a_metadata_address_cannot_be_exempted(text: str) -> None:
    with pytest.raises(ValueError, match="metadata"):
        parse_exemption(text)


@pytest.mark.parametrize("text", ["10.0.0.0/8", "127.0.0.1", "::1", "169.254.1.0/24", "fc00::/8"])
def test_a_network_without_a_metadata_address_can_be_exempted(text: str) -> None:
    assert not covers_metadata(parse_exemption(text).network)


@pytest.mark.promise("address:metadata")
def test_nothing_exempts_a_metadata_address() -> None:
    # Teredo is not among the spellings that loading looks for, so here the last check must hold.
    exemption = parse_exemption("2001:0:a9fe:a9fe::/64")
    assert exemption.covers(IPv6Address("2001:0:a9fe:a9fe::1"), 80) is False
    assert parse_exemption("10.0.0.0/8").covers(IPv4Address("10.1.2.3"), 80) is True
