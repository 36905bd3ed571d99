"""A denied connection becomes the result of a call only when it caused that result."""

from __future__ import annotations

import pytest

from browser_shell.browser.policy_errors import report_policy_denials
from browser_shell.core.calls import CommandResult
from browser_shell.core.decisions import Denial, Requester
from browser_shell.core.errors import ErrorCode
from browser_shell.core.json_values import JsonValue

STARTED_AT = 10.0


def a_denial(host: str = "10.0.0.1", port: int = 80, at: float = STARTED_AT, rule: str = "address.private") -> Denial:
    requester = Requester(subject="alice", session_id="s1")
    return Denial(requester=requester, at=at, host=host, port=port, rule_id=rule, reason=f"{host} is private")


def arrived_at(url: str) -> CommandResult:
    data: JsonValue = {"title": "Blocked by policy", "url": url}
    return CommandResult(exit_code=0, data=data)


def failed(message: str) -> CommandResult:
    return CommandResult(exit_code=1, error=ErrorCode.COMMAND_FAILED, message=message)


def unreachable(host: str = "dead.example", port: int = 80) -> Denial:
    requester = Requester(subject="alice", session_id="s1")
    reason = f"{host} port {port} refused the connection"
    return Denial(requester=requester, at=STARTED_AT, host=host, port=port, rule_id="connect.failed", reason=reason)


TUNNEL = failed("Navigation failed: net::ERR_TUNNEL_CONNECTION_FAILED")
EMPTY = failed("Navigation failed: net::ERR_HTTP_RESPONSE_CODE_FAILURE")


@pytest.mark.parametrize(
    ("result", "denials"),
    [
        (arrived_at("http://10.0.0.1/x?y"), [a_denial()]),
        (arrived_at("http://10.0.0.1:8080/"), [a_denial(port=8080)]),
        (arrived_at("http://10.0.0.1./"), [a_denial()]),
        (arrived_at("http://[::1]/"), [a_denial("::1")]),
        (arrived_at("http://evil.example./"), [a_denial("evil.example")]),
        (arrived_at("http://10.0.0.1/"), [a_denial("ads.example", rule="host.allowlist"), a_denial()]),
        (arrived_at("chrome-error://chromewebdata/"), [a_denial(port=443)]),
        (TUNNEL, [a_denial(port=443)]),
        (TUNNEL, [a_denial("ads.example", rule="host.allowlist"), a_denial(port=443)]),
    ],
)
def test_a_result_that_a_denial_caused_is_that_denial(result: CommandResult, denials: list[Denial]) -> None:
    reported, notes = report_policy_denials(result, denials, STARTED_AT)
    assert reported.error is ErrorCode.POLICY_BLOCKED
    assert reported.exit_code == 126
    assert reported.rule_id == "address.private"
    assert notes == []


@pytest.mark.parametrize("result", [arrived_at("http://nosuch.example/"), TUNNEL])
def test_a_page_whose_host_does_not_resolve_has_its_own_error_code(result: CommandResult) -> None:
    reported, notes = report_policy_denials(result, [a_denial("nosuch.example", rule="dns.no_answer")], STARTED_AT)
    assert (reported.error, reported.exit_code) == (ErrorCode.NAME_NOT_RESOLVED, 1)
    assert reported.rule_id == "dns.no_answer"
    assert notes == []


@pytest.mark.parametrize("result", [TUNNEL, EMPTY, arrived_at("http://dead.example/")])
def test_a_host_that_accepts_no_connection_is_named_with_a_next_step(result: CommandResult) -> None:
    reported, notes = report_policy_denials(result, [unreachable("cdn.example"), unreachable()], STARTED_AT)
    assert (reported.error, reported.exit_code, reported.rule_id) == (ErrorCode.COMMAND_FAILED, 1, "connect.failed")
    assert "dead.example port 80 refused the connection" in reported.message
    assert "port" in reported.advice
    assert notes == []


def test_an_empty_page_with_a_status_has_nothing_to_do_with_denied_connections() -> None:
    reported, notes = report_policy_denials(EMPTY, [a_denial()], STARTED_AT)
    assert reported is EMPTY
    assert len(notes) == 1


def test_unreachable_hosts_of_resources_are_not_listed() -> None:
    result = arrived_at("http://page.example/")
    assert report_policy_denials(result, [unreachable("cdn.example")], STARTED_AT) == (result, [])


@pytest.mark.parametrize(
    ("result", "denials"),
    [
        (arrived_at("http://page.example/"), [a_denial()]),
        (arrived_at("http://page.example/"), [a_denial("page.example", port=22)]),
        (arrived_at("https://page.example/"), [a_denial("page.example", port=80)]),
        (arrived_at("http://10.0.0.1/"), [a_denial(at=STARTED_AT - 1)]),
        (TUNNEL, [a_denial(at=STARTED_AT - 1)]),
        (failed("Navigation failed: net::ERR_CERT_AUTHORITY_INVALID"), [a_denial("connectivitycheck.example")]),
        (failed("Element not found"), [a_denial()]),
        (CommandResult(exit_code=0, data={"clicked": True}), [a_denial()]),
        (CommandResult(exit_code=0, data=None), [a_denial()]),
    ],
)
def test_a_denial_that_did_not_cause_the_result_is_a_note(result: CommandResult, denials: list[Denial]) -> None:
    reported, notes = report_policy_denials(result, denials, STARTED_AT)
    assert reported is result
    assert len(notes) == 1
    assert "rule address.private" in notes[0]


def test_the_url_of_the_browsers_error_page_is_hidden() -> None:
    reported, _ = report_policy_denials(
        CommandResult(exit_code=0, data={"url": "chrome-error://chromewebdata/"}), [], STARTED_AT
    )
    assert reported.data == {"url": "about:blank#blocked"}
    assert reported.error is None
    assert reported.message.startswith("NOTE: ")


def test_without_denials_nothing_changes() -> None:
    result = arrived_at("http://10.0.0.1/")
    assert report_policy_denials(result, [], STARTED_AT) == (result, [])


def test_many_denials_become_a_few_notes() -> None:
    denials = [a_denial(f"h{n % 20}.example") for n in range(100)]
    _, notes = report_policy_denials(CommandResult(exit_code=0), denials, STARTED_AT)
    assert len(notes) == 6
    assert notes[-1] == "15 more connections were denied"
