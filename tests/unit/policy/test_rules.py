"""URLs that the browser may open, by policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from ipaddress import ip_address
from typing import Any

import pytest

from browser_shell.core.calls import BrowserCommand, UrlTarget
from browser_shell.core.decisions import Decision
from browser_shell.policy.loading import policy_from
from browser_shell.policy.rules import UrlPolicy
from browser_shell.policy.urls import BAD_PORTS, parse_target

PUBLIC = "93.184.215.14"


def a_policy(commands: Sequence[str] | None = None, **open_section: Any) -> UrlPolicy:
    return UrlPolicy(policy_from({"open": open_section, "commands": {"allow": commands}}, source="test"))


def a_command(url: str) -> BrowserCommand:
    target = parse_target(url)
    return BrowserCommand(session_id="s", name="open", operands=(target.href,), timeout_seconds=30, targets=(target,))


def decide(policy: UrlPolicy, url: str, dns: Mapping[str, Sequence[str]] | None = None) -> Decision:
    command = a_command(url)
    answers = dns or {}
    hosts = policy.hosts_to_resolve(command)
    return policy.decide(command, {host: [ip_address(text) for text in answers.get(host, ())] for host in hosts})


def test_a_name_needs_a_lookup() -> None:
    assert a_policy().hosts_to_resolve(a_command("https://example.com/")) == ("example.com",)


def test_a_name_with_public_addresses_is_allowed() -> None:
    decision = decide(a_policy(), "https://example.com/", {"example.com": [PUBLIC, "2606:2800:21f:cb07::1"]})
    assert (decision.allowed, decision.rule_id) == (True, "address.public")


@pytest.mark.promise("dns:every-answer")
@pytest.mark.parametrize(
    ("answers", "rule"),
    [
        ([], "dns.no_answer"),
        (["10.0.0.1"], "address.private"),
        ([PUBLIC, "127.0.0.1"], "address.loopback"),
        (["::ffff:93.184.215.14"], "address.embedded"),
        ([PUBLIC, "169.254.169.254"], "address.metadata"),
    ],
)
def test_one_denied_answer_denies_the_name(answers: list[str], rule: str) -> None:
    decision = decide(a_policy(), "https://example.com/", {"example.com": answers})
    assert (decision.allowed, decision.rule_id) == (False, rule)


LOCAL = [
    *("localhost", "LOCALHOST.", "a.localhost", "localhost.localdomain", "ip6-localhost", "printer.local"),
    "x.internal",
    *("box.lan", "nas.home.arpa", "kubernetes", "local", "api.default.svc", "x.svc.cluster.local"),
    "kubernetes.default",
    *("intranet", "a.corp"),
]
METADATA = [
    *("metadata", "metadata.google.internal.", "instance-data", "metadata.goog", "metadata.packet.net"),
    *("api.metadata.cloud.ibm.com", "data-server", "rancher-metadata", "metadata.exoscale.com"),
]


@pytest.mark.promise("host:local-names")
@pytest.mark.parametrize(
    ("host", "rule"), [*((name, "host.local") for name in LOCAL), *((name, "host.metadata") for name in METADATA)]
)
def test_local_and_metadata_names_are_denied_without_a_lookup(host: str, rule: str) -> None:
    command = a_command(f"http://{host}/")
    assert a_policy().hosts_to_resolve(command) == ()
    assert a_policy().decide(command, {}).rule_id == rule
    assert decide(a_policy(allow_hosts=[host]), f"http://{host}/").rule_id == rule


@pytest.mark.parametrize(
    "host",
    [
        "www.catalan",
        "x.mylocal",
        "a.xsvc",
        "internal.example.com",
        "mylocalhost.example",
        "local.example",
        "lan.example",
        "metadata.example",
        "localhost.example.com",
    ],
)
def test_names_that_only_look_local_are_not_denied(host: str) -> None:
    assert decide(a_policy(), f"https://{host}/", {host: [PUBLIC]}).allowed


@pytest.mark.promise("url:bad-ports")
@pytest.mark.parametrize("port", sorted(BAD_PORTS))
def test_ports_that_browsers_refuse_are_denied(port: int) -> None:
    assert decide(a_policy(), f"http://example.com:{port}/", {"example.com": [PUBLIC]}).rule_id == "url.port"


def test_only_listed_ports_are_allowed() -> None:
    policy = a_policy(allow_ports=[443, 8443])
    assert decide(policy, "https://example.com/", {"example.com": [PUBLIC]}).allowed
    assert decide(policy, "https://example.com:8443/", {"example.com": [PUBLIC]}).allowed
    assert decide(policy, "http://example.com/", {"example.com": [PUBLIC]}).rule_id == "url.port"


def test_a_policy_can_narrow_schemes_and_about_blank() -> None:
    policy = a_policy(allow_schemes=["https"], allow_about_blank=False)
    assert decide(policy, "http://example.com/").rule_id == "url.scheme"
    assert decide(policy, "about:blank") == Decision(
        allowed=False, rule_id="url.about_blank", reason="about:blank is not allowed by open.allow_about_blank"
    )
    assert decide(a_policy(), "about:blank").allowed


@pytest.mark.promise("host:allowlist")
@pytest.mark.parametrize(
    ("host", "listed"),
    [
        ("example.com", True),
        ("EXAMPLE.com.", True),
        ("münchen.example", True),
        ("a.example.net", True),
        ("deep.er.example.net", True),
        ("www.example.com", False),
        ("example.net", False),
        ("evil-example.net", False),
        ("xexample.net", False),
        ("example.net.evil.test", False),
        ("example.com.evil.test", False),
        ("93.184.215.14", False),
        ("[2a00::1]", False),
    ],
)
def test_only_listed_hosts_are_allowed(host: str, listed: bool) -> None:
    policy = a_policy(allow_hosts=["example.com", "xn--mnchen-3ya.example"], allow_host_suffixes=["example.net"])
    names = ("example.com", "xn--mnchen-3ya.example", "a.example.net", "deep.er.example.net")
    decision = decide(policy, f"https://{host}/", {name: [PUBLIC] for name in names})
    assert (decision.allowed, decision.rule_id) == ((True, "address.public") if listed else (False, "host.allowlist"))


def test_a_listed_name_with_a_private_address_stays_denied() -> None:
    policy = a_policy(allow_hosts=["example.com"])
    assert decide(policy, "https://example.com/", {"example.com": ["10.0.0.1"]}).rule_id == "address.private"


def test_an_address_can_be_exempted_for_development() -> None:
    policy = a_policy(unsafe_allow_addresses=["127.0.0.1:8080", "10.1.0.0/16"], allow_hosts=["dev.example"])
    assert decide(policy, "http://127.0.0.1:8080/").rule_id == "address.unsafe_allowed"
    assert decide(policy, "http://127.0.0.1:8081/").rule_id == "address.loopback"
    assert decide(policy, "http://10.1.2.3/").allowed
    assert decide(policy, "http://10.2.0.1/").rule_id == "address.private"
    assert decide(policy, "http://[::1]:8080/").rule_id == "address.loopback"
    assert decide(policy, "http://dev.example/", {"dev.example": ["10.1.2.3"]}).allowed
    assert decide(policy, "http://dev.example/", {"dev.example": ["10.1.2.3", "10.2.0.1"]}).rule_id == "address.private"
    assert decide(policy, "http://localhost:8080/").rule_id == "host.local"


def test_a_host_with_a_fixed_address_needs_no_lookup() -> None:
    policy = a_policy(unsafe_resolve={"shop.internal": "127.0.0.1:8080"}, allow_schemes=["https"])
    assert policy.hosts_to_resolve(a_command("https://shop.internal/")) == ()
    assert decide(policy, "https://shop.internal/").rule_id == "host.unsafe_resolve"
    assert str(policy.resolved_by_policy("shop.internal")) == "127.0.0.1:8080"
    assert policy.resolved_by_policy("other.example") is None
    assert decide(policy, "http://shop.internal/").rule_id == "url.scheme"
    assert decide(policy, "https://other.internal/").rule_id == "host.local"


def test_a_host_with_a_fixed_address_must_still_be_listed_and_not_local() -> None:
    policy = a_policy(unsafe_resolve={"a.example": "[::1]:80", "localhost": "127.0.0.1:80"}, allow_hosts=["b.example"])
    assert decide(policy, "https://a.example/").rule_id == "host.allowlist"
    assert decide(policy, "https://localhost/").rule_id == "host.local"


def test_a_policy_can_remove_subcommands() -> None:
    policy = a_policy(commands=["snapshot"])
    command = a_command("https://example.com/")
    assert policy.commands == {"snapshot"}
    assert policy.hosts_to_resolve(command) == ()
    assert policy.decide(command, {}).rule_id == "command.denied"
    snapshot = BrowserCommand(session_id="s", name="snapshot", timeout_seconds=30)
    assert policy.decide(snapshot, {}).rule_id == "command.allowed"


@pytest.mark.promise("plan:judged-is-opened")
@pytest.mark.parametrize(
    "change",
    [
        {"operands": ("http://127.0.0.1/",)},
        {"operands": ()},
        {"targets": ()},
        {"name": "eval"},
        {
            "operands": ("http://127.0.0.1/",),
            "targets": (UrlTarget(href="http://127.0.0.1/", scheme="http", host="example.com", port=80),),
        },
    ],
)
def test_a_plan_that_a_hook_changed_inconsistently_is_denied(change: dict[str, Any]) -> None:
    changed = replace(a_command("https://example.com/"), **change)
    answers = {"example.com": [ip_address(PUBLIC)]}
    assert a_policy().hosts_to_resolve(changed) == ()
    assert a_policy().decide(changed, answers).rule_id in ("url.mismatch", "command.denied")
