"""When a refused connection is the reason why a call failed, the call says so; and only then."""

from __future__ import annotations

import pytest

from browser_shell.browser.policy_errors import report_policy_denials
from browser_shell.core.egress import Denial, Requester
from browser_shell.core.errors import ErrorCode
from browser_shell.core.json_values import JsonValue
from browser_shell.core.results import CommandResult

BEGAN = 10.0


def a_denial(host: str = "10.0.0.1", port: int = 80, at: float = BEGAN, rule: str = "address.private") -> Denial:
    requester = Requester(subject="alice", session_id="s1")
    return Denial(requester=requester, at=at, host=host, port=port, rule_id=rule, reason=f"{host} is private")


def landed(url: str) -> CommandResult:
    data: JsonValue = {"title": "Blocked by policy", "url": url}
    return CommandResult(exit_code=0, data=data)


def failed(message: str) -> CommandResult:
    return CommandResult(exit_code=1, error=ErrorCode.COMMAND_FAILED, message=message)


TUNNEL = failed("Navigation failed: net::ERR_TUNNEL_CONNECTION_FAILED")


@pytest.mark.parametrize(
    ("result", "denials"),
    [
        (landed("http://10.0.0.1/x?y"), [a_denial()]),
        (landed("http://10.0.0.1:8080/"), [a_denial(port=8080)]),
        (landed("http://10.0.0.1./"), [a_denial()]),
        (landed("http://[::1]/"), [a_denial("::1")]),
        (landed("http://evil.example./"), [a_denial("evil.example")]),
        (landed("http://10.0.0.1/"), [a_denial("ads.example", rule="host.allowlist"), a_denial()]),
        (landed("chrome-error://chromewebdata/"), [a_denial(port=443)]),
        (TUNNEL, [a_denial(port=443)]),
        (TUNNEL, [a_denial("ads.example", rule="host.allowlist"), a_denial(port=443)]),
    ],
)
def test_a_call_that_a_refusal_spoiled_is_that_refusal(result: CommandResult, denials: list[Denial]) -> None:
    explained, notices = report_policy_denials(result, denials, BEGAN)
    assert explained.error is ErrorCode.POLICY_BLOCKED
    assert explained.exit_code == 126
    assert explained.rule_id == "address.private"
    assert notices == []


@pytest.mark.parametrize("result", [landed("http://nosuch.example/"), TUNNEL])
def test_a_page_whose_host_does_not_resolve_has_its_own_error_code(result: CommandResult) -> None:
    explained, notices = report_policy_denials(result, [a_denial("nosuch.example", rule="dns.no_answer")], BEGAN)
    assert (explained.error, explained.exit_code) == (ErrorCode.NAME_NOT_RESOLVED, 1)
    assert explained.rule_id == "dns.no_answer"
    assert notices == []


@pytest.mark.parametrize(
    ("result", "denials"),
    [
        (landed("http://page.example/"), [a_denial()]),
        (landed("http://page.example/"), [a_denial("page.example", port=22)]),
        (landed("https://page.example/"), [a_denial("page.example", port=80)]),
        (landed("http://10.0.0.1/"), [a_denial(at=BEGAN - 1)]),
        (TUNNEL, [a_denial(at=BEGAN - 1)]),
        (failed("Navigation failed: net::ERR_CERT_AUTHORITY_INVALID"), [a_denial("connectivitycheck.example")]),
        (failed("Element not found"), [a_denial()]),
        (CommandResult(exit_code=0, data={"clicked": True}), [a_denial()]),
        (CommandResult(exit_code=0, data=None), [a_denial()]),
    ],
)
def test_a_refusal_that_spoiled_nothing_is_a_notice(result: CommandResult, denials: list[Denial]) -> None:
    explained, notices = report_policy_denials(result, denials, BEGAN)
    assert explained is result
    assert len(notices) == 1
    assert "rule address.private" in notices[0]


@pytest.mark.parametrize(
    ("data", "error", "rule"),
    [
        ({"title": "intent://x#Intent;end", "url": "chrome-error://chromewebdata/"}, "POLICY_BLOCKED", "url.scheme"),
        ({"title": "mailto:a@b.example", "url": "chrome-error://chromewebdata/"}, "POLICY_BLOCKED", "url.scheme"),
        ({"title": "dead.example", "url": "chrome-error://chromewebdata/"}, "COMMAND_FAILED", ""),
        ({"title": "https://dead.example/", "url": "chrome-error://chromewebdata/"}, "COMMAND_FAILED", ""),
    ],
)
def test_the_browsers_error_page_is_a_failure(data: JsonValue, error: str, rule: str) -> None:
    explained, _ = report_policy_denials(CommandResult(exit_code=0, data=data), [], BEGAN)
    assert explained.error is ErrorCode[error]
    assert explained.exit_code == ErrorCode[error].exit_code
    assert explained.rule_id == rule


def test_the_place_of_the_browsers_error_page_is_not_told() -> None:
    explained, _ = report_policy_denials(
        CommandResult(exit_code=0, data={"url": "chrome-error://chromewebdata/"}), [], BEGAN
    )
    assert explained.data == {"url": "about:blank#blocked"}
    assert explained.error is None


def test_without_refusals_nothing_changes() -> None:
    result = landed("http://10.0.0.1/")
    assert report_policy_denials(result, [], BEGAN) == (result, [])


def test_many_refusals_are_told_in_few_lines() -> None:
    denials = [a_denial(f"h{n % 20}.example") for n in range(100)]
    _, notices = report_policy_denials(CommandResult(exit_code=0), denials, BEGAN)
    assert len(notices) == 6
    assert notices[-1] == "15 more hosts were blocked"
