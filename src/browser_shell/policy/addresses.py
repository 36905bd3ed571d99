"""Public and denied addresses, and the addresses in the `unsafe_` keys of a policy.

The table is our own because `ipaddress.is_global` differs between Python releases. Sources: the IANA IPv4 and IPv6
Special-Purpose Address Registries (RFC 6890), and the manuals of the cloud providers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from browser_shell.core.decisions import Decision, IpAddress, denied

IpNetwork: TypeAlias = IPv4Network | IPv6Network


class Range(NamedTuple):
    """A block of addresses that the browser may not reach."""

    network: IpNetwork
    rule_id: str
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One address and port to dial."""

    address: IpAddress
    port: int

    def __str__(self) -> str:
        return f"[{self.address}]:{self.port}" if self.address.version == 6 else f"{self.address}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exemption:
    """Addresses that `open.unsafe_allow_addresses` makes reachable, at one port or at all ports."""

    network: IpNetwork
    port: int | None = None

    def covers(self, address: IpAddress, port: int) -> bool:
        """Return whether the address is exempt. Metadata addresses never are: deny beats allow."""
        port_matches = self.port is None or self.port == port
        # An address of the other IP version is never `in` a network.
        return port_matches and address in self.network and not is_metadata(address)


IPV4_DENIED = (
    Range(IPv4Network("0.0.0.0/8"), "address.unspecified", "an address of this host (0.0.0.0/8)"),
    Range(IPv4Network("10.0.0.0/8"), "address.private", "a private address"),
    Range(IPv4Network("100.64.0.0/10"), "address.cgnat", "a carrier-grade NAT address"),
    Range(IPv4Network("127.0.0.0/8"), "address.loopback", "a loopback address"),
    Range(IPv4Network("169.254.0.0/16"), "address.link_local", "a link-local address"),
    Range(IPv4Network("172.16.0.0/12"), "address.private", "a private address"),
    # IANA calls 192.0.0.9 and .10 global (PCP and TURN anycast); they serve no web pages, so the whole /24 is denied.
    Range(IPv4Network("192.0.0.0/24"), "address.protocol", "a protocol-assignment address"),
    Range(IPv4Network("192.0.2.0/24"), "address.documentation", "a documentation address"),
    Range(IPv4Network("192.88.99.0/24"), "address.relay_6to4", "a 6to4 relay address"),
    Range(IPv4Network("192.168.0.0/16"), "address.private", "a private address"),
    Range(IPv4Network("198.18.0.0/15"), "address.benchmark", "a benchmarking address"),
    Range(IPv4Network("198.51.100.0/24"), "address.documentation", "a documentation address"),
    Range(IPv4Network("203.0.113.0/24"), "address.documentation", "a documentation address"),
    Range(IPv4Network("224.0.0.0/4"), "address.multicast", "a multicast address"),
    # Before 240/4, which contains it: the first matching row gives the rule.
    Range(IPv4Network("255.255.255.255/32"), "address.broadcast", "the broadcast address"),
    Range(IPv4Network("240.0.0.0/4"), "address.reserved", "a reserved address"),
)

IPV6_GLOBAL = IPv6Network("2000::/3")
"""The only IPv6 space in public use. Addresses outside are denied, listed below or not."""

IPV6_DENIED = (
    Range(IPv6Network("::1/128"), "address.loopback", "the loopback address"),
    Range(IPv6Network("::/128"), "address.unspecified", "the unspecified address"),
    Range(IPv6Network("::ffff:0:0/96"), "address.embedded", "an IPv4-mapped address"),
    Range(IPv6Network("::ffff:0:0:0/96"), "address.embedded", "an IPv4-translated address"),
    Range(IPv6Network("::/96"), "address.embedded", "an IPv4-compatible address"),
    Range(IPv6Network("64:ff9b::/96"), "address.embedded", "a NAT64 address"),
    Range(IPv6Network("64:ff9b:1::/48"), "address.embedded", "a local NAT64 address"),
    Range(IPv6Network("2002::/16"), "address.embedded", "a 6to4 address"),
    Range(IPv6Network("2001::/32"), "address.embedded", "a Teredo address"),
    Range(IPv6Network("2001::/23"), "address.protocol", "a protocol-assignment address"),
    Range(IPv6Network("2001:db8::/32"), "address.documentation", "a documentation address"),
    Range(IPv6Network("3fff::/20"), "address.documentation", "a documentation address"),
    Range(IPv6Network("fc00::/7"), "address.private", "a private (unique local) address"),
    Range(IPv6Network("fe80::/10"), "address.link_local", "a link-local address"),
    Range(IPv6Network("fec0::/10"), "address.private", "an old site-local address"),
    Range(IPv6Network("ff00::/8"), "address.multicast", "a multicast address"),
)

METADATA: MappingProxyType[IpAddress, str] = MappingProxyType(
    {
        ip_address("169.254.169.254"): "AWS, Azure, Google and most others",
        ip_address("169.254.170.2"): "AWS ECS credentials",
        ip_address("169.254.170.23"): "AWS EKS pod identity",
        ip_address("169.254.42.42"): "Scaleway",
        ip_address("169.254.0.23"): "Tencent",
        ip_address("168.63.129.16"): "Azure WireServer",
        ip_address("192.0.0.192"): "Oracle",
        ip_address("100.100.100.200"): "Alibaba",
        ip_address("fd00:ec2::254"): "AWS",
        ip_address("fd00:ec2::23"): "AWS EKS pod identity",
        ip_address("fd20:ce::254"): "Google",
        ip_address("fd00:42::42"): "Scaleway",
    }
)
"""Addresses that serve credentials of the machine. Some look public. No policy can exempt them."""

_ISATAP = frozenset({0x0000_5EFE, 0x0200_5EFE})
"""RFC 5214 §6.1: the interface identifiers that carry an IPv4 address under any prefix."""
_LOW_32 = 0xFFFF_FFFF
_ADDRESS_AND_PORT = re.compile(r"(?:\[(?P<six>[0-9a-fA-F:.]+)\]|(?P<four>[0-9.]+)):(?P<port>[0-9]{1,5})")
_MAX_PORT = 65535


def classify(address: IpAddress) -> Decision:
    """Decide whether an address is public."""
    if is_metadata(address):
        return denied("address.metadata", f"{address} is a cloud metadata address")
    if isinstance(address, IPv4Address):
        return _first_match(address, IPV4_DENIED) or _public(address)
    return _classify_ipv6(address)


def is_metadata(address: IpAddress) -> bool:
    """Return whether this is a metadata address, also in one of its IPv6 forms."""
    if isinstance(address, IPv4Address):
        return address in METADATA
    number = int(address)  # Without the scope: addresses with different scopes are not equal.
    return IPv6Address(number) in METADATA or any(inner in METADATA for inner in _inner_ipv4(number))


def covers_metadata(network: IpNetwork) -> bool:
    """Return whether the network contains a metadata address, in any of its forms."""
    forms = (form for address in METADATA for form in _ipv6_forms(address))
    return any(form in network for form in forms if form.version == network.version)


def parse_endpoint(text: str) -> Endpoint:
    """Read `address:port` or `[v6]:port`.

    Raises: ValueError naming the problem.
    """
    match = _ADDRESS_AND_PORT.fullmatch(text)
    if match is None:
        raise ValueError("must be address:port, for example 127.0.0.1:8080 or [::1]:8080")
    port = int(match["port"])
    if not 1 <= port <= _MAX_PORT:
        raise ValueError(f"must have a port from 1 to {_MAX_PORT}")
    try:
        address = ip_address(match["six"] or match["four"])
    except ValueError as cause:
        raise ValueError("is not an IP address") from cause
    if is_metadata(address):
        raise ValueError("is a cloud metadata address; nothing can allow it")
    return Endpoint(address=address, port=port)


def parse_exemption(text: str) -> Exemption:
    """Read an address, a network, `address:port` or `[v6]:port`.

    Raises: ValueError naming the problem.
    """
    if _ADDRESS_AND_PORT.fullmatch(text):
        endpoint = parse_endpoint(text)
        return Exemption(network=ip_network(endpoint.address), port=endpoint.port)
    if "%" in text:
        raise ValueError("must not name a network interface")
    try:
        network = ip_network(text)
    except ValueError as cause:
        raise ValueError("must be an address, a network such as 10.1.0.0/16, or address:port") from cause
    if covers_metadata(network):
        raise ValueError("covers a cloud metadata address; nothing can allow it, so name smaller networks")
    return Exemption(network=network)


def _classify_ipv6(address: IPv6Address) -> Decision:
    if address.scope_id is not None:
        return denied("address.link_local", f"{address} is bound to one network interface")
    match = _first_match(address, IPV6_DENIED)
    if match is not None:
        return match
    if address not in IPV6_GLOBAL:
        return denied("address.reserved", f"{address} is a reserved address")
    if _is_isatap(int(address)):
        return denied("address.embedded", f"{address} is an ISATAP address")
    return _public(address)


def _first_match(address: IpAddress, table: tuple[Range, ...]) -> Decision | None:
    for entry in table:
        if address in entry.network:
            return denied(entry.rule_id, f"{address} is {entry.description}")
    return None


def _inner_ipv4(number: int) -> list[IPv4Address]:
    """Return the IPv4 addresses that a transition mechanism would extract from this IPv6 address."""
    address = IPv6Address(number)
    last = IPv4Address(number & _LOW_32)
    if address in IPv6Network("2002::/16"):
        return [IPv4Address(number >> 80 & _LOW_32)]
    if address in IPv6Network("2001::/32"):
        # RFC 4380 §4: the address of the server as it is, that of the client with all bits inverted.
        return [IPv4Address(number >> 64 & _LOW_32), IPv4Address(number & _LOW_32 ^ _LOW_32)]
    embeds_last = any(address in entry.network for entry in IPV6_DENIED if entry.rule_id == "address.embedded")
    return [last] if embeds_last or _is_isatap(number) else []


def _is_isatap(number: int) -> bool:
    return (number >> 32 & _LOW_32) in _ISATAP


def _ipv6_forms(address: IpAddress) -> list[IpAddress]:
    if isinstance(address, IPv6Address):
        return [address]
    inner = int(address)
    prefixes = ("::", "::ffff:0:0", "::ffff:0:0:0", "64:ff9b::", "64:ff9b:1::")
    wrapped = [IPv6Address(int(IPv6Address(prefix)) | inner) for prefix in prefixes]
    return [address, *wrapped, IPv6Address(int(IPv6Address("2002::")) | inner << 80)]


def _public(address: IpAddress) -> Decision:
    return Decision(allowed=True, rule_id="address.public", reason=f"{address} is a public address")
