"""One connection: a single lookup, a decision on every address, and a dial to one of them."""

from __future__ import annotations

import errno
import socket
from ipaddress import ip_address
from typing import Any

import anyio
import pytest
from anyio.abc import SocketStream

from browser_shell.core.errors import AuditUnavailable
from browser_shell.core.records import AuditRecord, RecordKind
from browser_shell.egress.denials import RecentDenials
from browser_shell.egress.dialer import EgressDenied, EgressFailed, SystemResolver
from support.egress import ALICE, RecordingConnect, ScriptedResolver, make_dialer, responding, running_origin
from support.fakes import RecordingAudit, SilentResolver
from support.faulty_servers import closed_port

PUBLIC, OTHER_PUBLIC = "93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"


class FailingAudit(RecordingAudit):
    async def record(self, record: AuditRecord) -> None:
        raise AuditUnavailable("no space left")


async def test_resolved_address_is_dialled_after_one_lookup() -> None:
    resolver, connect, audit = ScriptedResolver({"a.example": [[PUBLIC]]}), RecordingConnect(), RecordingAudit()
    with pytest.raises(EgressFailed):
        await make_dialer(resolver=resolver, connect=connect, audit=audit).dial(
            ALICE, "https://a.example:8443/secret?q"
        )
    assert connect.dialled == [(PUBLIC, 8443)]
    assert resolver.lookups == ["a.example"]
    (record,) = audit.records
    assert record.kind is RecordKind.EGRESS_CONNECT
    assert (record.subject, record.session_id, record.host) == ("alice", "s1", "a.example:8443")


async def test_next_address_is_tried_when_one_fails() -> None:
    async with running_origin(responding()) as origin:
        connect = RecordingConnect(origins={OTHER_PUBLIC: origin.port})
        resolver = ScriptedResolver({"a.example": [[PUBLIC, OTHER_PUBLIC]]})
        dialled = await make_dialer(resolver=resolver, connect=connect).dial(ALICE, "http://a.example/")
        await dialled.stream.aclose()
    assert connect.dialled == [(PUBLIC, 80), (OTHER_PUBLIC, 80)]
    assert dialled.target.host == "a.example"


async def test_at_most_four_addresses_are_tried() -> None:
    connect = RecordingConnect()
    resolver = ScriptedResolver({"a.example": [[f"93.184.215.{n}" for n in range(1, 20)]]})
    with pytest.raises(EgressFailed):
        await make_dialer(resolver=resolver, connect=connect).dial(ALICE, "http://a.example/")
    assert len(connect.dialled) == 4


async def refuse(host: str, port: int) -> SocketStream:
    return await anyio.connect_tcp("127.0.0.1", closed_port())


async def unreachable(host: str, port: int) -> SocketStream:
    raise OSError(errno.EHOSTUNREACH, "No route to host")


async def never(host: str, port: int) -> SocketStream:
    await anyio.sleep_forever()
    raise AssertionError


@pytest.mark.parametrize(
    ("connect", "problem"),
    [(refuse, "refused the connection"), (never, "did not answer within 0.01 s"), (unreachable, "cannot be reached")],
)
async def test_a_host_that_accepts_no_connection_is_reported_and_not_recorded_as_denied(
    monkeypatch: pytest.MonkeyPatch, connect: Any, problem: str
) -> None:
    monkeypatch.setattr("browser_shell.egress.dialer._CONNECT_SECONDS", 0.01 if connect is never else 5)
    denials, audit = RecentDenials(), RecordingAudit()
    resolver = ScriptedResolver({"a.example": [[PUBLIC]]})
    with pytest.raises(EgressFailed):
        await make_dialer(resolver=resolver, connect=connect, audit=audit, on_denial=denials.add).dial(
            ALICE, "https://a.example/"
        )
    (report,) = denials.since(ALICE, 0)
    assert (report.rule_id, report.reason) == ("connect.failed", f"a.example port 443 {problem}")
    assert audit.kinds == ["EGRESS_CONNECT"]


@pytest.mark.promise("egress:one-denied-answer")
@pytest.mark.parametrize(
    ("url", "answers", "rule"),
    [
        ("http://a.example/", [[PUBLIC, "127.0.0.1"]], "address.loopback"),
        ("http://a.example/", [["10.0.0.1", PUBLIC]], "address.private"),
        ("http://a.example/", [["169.254.169.254"]], "address.metadata"),
        ("http://a.example/", [["::ffff:93.184.215.14"]], "address.embedded"),
        ("http://a.example/", [[]], "dns.no_answer"),
        ("http://127.0.0.1:9222/", [], "address.loopback"),
        ("http://0x7f.1/", [], "address.loopback"),
        ("http://[::1]:8080/", [], "address.loopback"),
        ("http://[fe80::1]/", [], "address.link_local"),
        ("http://10.0.0.1./", [], "address.private"),
        ("http://localhost/", [], "host.local"),
        ("http://metadata.google.internal/", [], "host.metadata"),
        ("http://a.example:25/", [[PUBLIC]], "url.port"),
        ("http://user@a.example/", [[PUBLIC]], "url.userinfo"),
        ("ftp://a.example/", [[PUBLIC]], "url.scheme"),
    ],
)
async def test_denied_target_is_never_dialled(url: str, answers: list[list[str]], rule: str) -> None:
    connect, audit = RecordingConnect(), RecordingAudit()
    dialer = make_dialer(resolver=ScriptedResolver({"a.example": answers or [[]]}), connect=connect, audit=audit)
    with pytest.raises(EgressDenied) as refused:
        await dialer.dial(ALICE, url)
    assert refused.value.decision.rule_id == rule
    assert connect.dialled == []
    assert audit.kinds == ["MCP_NETWORK_BLOCKED"]
    assert audit.records[0].rule_id == rule


async def test_allowlist_is_checked_before_the_lookup() -> None:
    resolver, connect = ScriptedResolver({"evil.example": [[PUBLIC]]}), RecordingConnect()
    dialer = make_dialer({"allow_hosts": ["good.example"]}, resolver=resolver, connect=connect)
    with pytest.raises(EgressDenied) as refused:
        await dialer.dial(ALICE, "https://evil.example/")
    assert refused.value.decision.rule_id == "host.allowlist"
    assert (resolver.lookups, connect.dialled) == ([], [])


async def test_lookup_timeout_denies_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("browser_shell.egress.dialer._LOOKUP_SECONDS", 0.01)
    connect = RecordingConnect()
    with pytest.raises(EgressDenied) as refused, anyio.fail_after(5):
        await make_dialer(resolver=SilentResolver(), connect=connect).dial(ALICE, "http://a.example/")
    assert refused.value.decision.rule_id == "dns.no_answer"
    assert connect.dialled == []


@pytest.mark.promise("egress:judged-per-connection")
async def test_name_that_changes_its_address_is_denied() -> None:
    resolver = ScriptedResolver({"rebind.example": [[PUBLIC], ["127.0.0.1"]]})
    connect = RecordingConnect()
    dialer = make_dialer(resolver=resolver, connect=connect)
    with pytest.raises(EgressFailed):
        await dialer.dial(ALICE, "http://rebind.example/")
    with pytest.raises(EgressDenied) as refused:
        await dialer.dial(ALICE, "http://rebind.example/")
    assert refused.value.decision.rule_id == "address.loopback"
    assert connect.dialled == [(PUBLIC, 80)]


async def test_unsafe_resolve_dials_the_configured_address_without_a_lookup() -> None:
    async with running_origin(responding()) as origin:
        resolver = ScriptedResolver({"page.example": [["10.0.0.1"]]})
        dialer = make_dialer({"unsafe_resolve": {"page.example": f"127.0.0.1:{origin.port}"}}, resolver=resolver)
        await (await dialer.dial(ALICE, "http://page.example:81/")).stream.aclose()
        await dialer.check_plaintext_tunnel(ALICE, "http://page.example:81/")
    assert origin.connections == 1
    assert resolver.lookups == []


async def test_unsafe_allow_addresses_allows_one_port_only() -> None:
    async with running_origin(responding()) as origin:
        dialer = make_dialer({"unsafe_allow_addresses": [f"127.0.0.1:{origin.port}"]})
        await (await dialer.dial(ALICE, f"http://127.0.0.1:{origin.port}/")).stream.aclose()
        with pytest.raises(EgressDenied):
            await dialer.dial(ALICE, f"http://127.0.0.1:{origin.port - 1}/")


@pytest.mark.promise("egress:no-record-no-connection")
async def test_nothing_is_dialled_when_the_audit_log_fails() -> None:
    connect, denials = RecordingConnect(), RecentDenials()
    resolver = ScriptedResolver({"a.example": [[PUBLIC]], "b.example": [["10.0.0.1"]]})
    dialer = make_dialer(resolver=resolver, connect=connect, audit=FailingAudit(), on_denial=denials.add)
    for url in ("http://a.example/", "http://b.example/", "http://user@c.example/"):
        with pytest.raises(EgressDenied) as refused:
            await dialer.dial(ALICE, url)
        assert refused.value.decision.rule_id == "audit.unavailable"
    assert connect.dialled == []


async def test_denial_has_host_port_and_rule_but_no_path() -> None:
    denials = RecentDenials()
    dialer = make_dialer(on_denial=denials.add)
    with pytest.raises(EgressDenied):
        await dialer.dial(ALICE, "https://10.1.2.3:8443/secret?token=x")
    (denial,) = denials.since(ALICE, 0)
    assert (denial.host, denial.port, denial.rule_id, denial.at) == ("10.1.2.3", 8443, "address.private", 1000.0)
    assert "secret" not in denial.reason


async def test_plaintext_tunnel_is_checked_without_a_second_lookup() -> None:
    resolver, audit = ScriptedResolver({"a.example": [[PUBLIC]]}), RecordingAudit()
    dialer = make_dialer({"allow_schemes": ["https"]}, resolver=resolver, audit=audit)
    with pytest.raises(EgressDenied) as refused:
        await dialer.check_plaintext_tunnel(ALICE, "http://a.example:443/")
    assert refused.value.decision.rule_id == "url.scheme"
    assert resolver.lookups == []
    assert audit.kinds == ["MCP_NETWORK_BLOCKED"]
    await make_dialer(resolver=resolver).check_plaintext_tunnel(ALICE, "http://a.example:443/")
    assert resolver.lookups == []


def answering(monkeypatch: pytest.MonkeyPatch, answers: Any) -> None:
    async def getaddrinfo(*_: Any, **__: Any) -> Any:
        if isinstance(answers, Exception):
            raise answers
        return answers

    monkeypatch.setattr(anyio, "getaddrinfo", getaddrinfo)


def an_answer(family: int, address: str) -> tuple[Any, ...]:
    return (family, socket.SOCK_STREAM, 6, "", (address, 0))


async def test_address_resolves_to_itself() -> None:
    assert list(await SystemResolver().resolve("127.0.0.1")) == [ip_address("127.0.0.1")]


async def test_addresses_are_distinct_and_have_no_scope(monkeypatch: pytest.MonkeyPatch) -> None:
    four, six = an_answer(socket.AF_INET, "93.184.215.14"), an_answer(socket.AF_INET6, "fe80::1%eth0")
    answering(monkeypatch, [four, six, four, an_answer(socket.AF_UNIX, "x")])
    found = await SystemResolver().resolve("example.com")
    assert list(found) == [ip_address("93.184.215.14"), ip_address("fe80::1")]


@pytest.mark.parametrize("failure", [socket.gaierror(-2, "unknown"), OSError(), UnicodeError(), ValueError()])
async def test_failed_lookup_returns_no_address(monkeypatch: pytest.MonkeyPatch, failure: Exception) -> None:
    answering(monkeypatch, failure)
    assert await SystemResolver().resolve("example.com") == ()


async def test_lookup_timeout_returns_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_: Any, **__: Any) -> Any:
        await anyio.sleep_forever()

    monkeypatch.setattr(anyio, "getaddrinfo", never)
    assert await SystemResolver(deadline_seconds=0).resolve("example.com") == ()
