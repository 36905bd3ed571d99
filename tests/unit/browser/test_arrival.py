"""The document that a command led to decides about its result."""

from __future__ import annotations

import pytest

from browser_shell.browser.arrival import arrived_at, needs_description
from browser_shell.browser.navigation_errors import navigation_failed
from browser_shell.core.calls import BrowserCommand, CommandResult
from browser_shell.core.errors import ErrorCode
from browser_shell.core.json_values import JsonObject, JsonValue

CLICKED = CommandResult(exit_code=0, data={"clicked": "@e1", "url": "https://a.example/", "title": "A"})
BACK = CommandResult(exit_code=0, data={"url": "https://a.example/"})
EMPTY = navigation_failed("net::ERR_HTTP_RESPONSE_CODE_FAILURE")


def state(**values: JsonValue) -> JsonObject:
    return {"url": "https://a.example/", "title": "A", "status": 200, "error": None, "signsIn": False, **values}


def error_page(text: str, url: str = "https://b.example/") -> JsonObject:
    return state(url=url, status=0, error=text)


@pytest.mark.parametrize(
    ("name", "result", "expected"),
    [
        ("click", CLICKED, True),
        ("back", BACK, True),
        ("open", EMPTY, True),
        ("get", BACK, False),
        ("click", CommandResult(exit_code=0, data={"clicked": "@e1", "changed": False}), False),
        ("open", navigation_failed("net::ERR_ABORTED"), False),
        ("snapshot", CommandResult(exit_code=0, data=None), False),
    ],
)
def test_only_commands_that_led_to_a_document_are_described(name: str, result: CommandResult, expected: bool) -> None:
    assert needs_description(BrowserCommand(session_id="s", name=name, timeout_seconds=5), result) is expected


def test_a_result_without_a_title_gets_the_title_of_the_document() -> None:
    assert arrived_at(BACK, state()).data == {"url": "https://a.example/", "title": "A"}
    assert arrived_at(CLICKED, state(title="later")) == CLICKED


@pytest.mark.parametrize(("status", "is_noted"), [(0, False), (200, False), (399, False), (400, True), (500, True)])
def test_an_error_status_is_a_note(status: int, is_noted: bool) -> None:
    result = arrived_at(CLICKED, state(status=status))
    assert result.error is None
    assert (f"NOTE: the site answered with HTTP status {status}" in result.message) is is_noted


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("NET::ERR_CERT_DATE_INVALID", "CERTIFICATE_INVALID"),
        ("ERR_CONNECTION_CLOSED\nReload", "COMMAND_FAILED"),
        ("HTTP ERROR 404", "COMMAND_FAILED"),
        ("", "CREDENTIALS_REQUIRED"),
    ],
)
@pytest.mark.parametrize("result", [CLICKED, BACK])
def test_an_error_page_is_a_failure_that_names_the_page(result: CommandResult, text: str, code: str) -> None:
    failed = arrived_at(result, error_page(text))
    assert failed.error is ErrorCode[code]
    assert "https://b.example/" in failed.message


def test_the_status_of_an_empty_page_replaces_the_general_error() -> None:
    failed = arrived_at(EMPTY, error_page("HTTP ERROR 503"))
    assert "HTTP status 503" in failed.message
    assert "b.example" not in failed.message


@pytest.mark.parametrize("url", ["mailto:a@b.example", "intent://x#Intent;end", "tel:1"])
def test_an_error_page_of_another_scheme_is_denied(url: str) -> None:
    failed = arrived_at(CLICKED, error_page("ERR_BLOCKED_BY_ADMINISTRATOR", url))
    assert (failed.error, failed.rule_id) == (ErrorCode.POLICY_BLOCKED, "url.scheme")


def test_status_401_is_an_error_unless_the_page_has_a_form_to_sign_in() -> None:
    assert arrived_at(CLICKED, state(status=401)).error is ErrorCode.CREDENTIALS_REQUIRED
    assert arrived_at(CLICKED, state(status=401, signsIn=True)).error is None


def test_an_unknown_state_changes_nothing() -> None:
    assert arrived_at(CLICKED, {}) == CLICKED
    assert arrived_at(EMPTY, {}) == EMPTY
    assert arrived_at(EMPTY, state()) == EMPTY
