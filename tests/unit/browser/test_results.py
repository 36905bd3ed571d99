"""Results for commands that failed, or whose tab closed while they ran."""

from __future__ import annotations

import pytest

from browser_shell.browser.driver.connection import DriverReply
from browser_shell.browser.results import (
    failed,
    lost_its_page,
    outcome_is_unknown,
    refused_for_dialog,
    shows_new_document,
    succeeded,
    tab_closed,
)
from browser_shell.core.calls import BrowserCommand, CommandResult
from browser_shell.core.errors import ErrorCode
from browser_shell.core.json_values import JsonObject

INPUT_LOST = DriverReply(success=False, error="CDP error (Input.dispatchMouseEvent): Session with given id not found.")
SCRIPT_LOST = DriverReply(success=False, error="CDP error (Runtime.evaluate): Session with given id not found.")


def command(name: str) -> BrowserCommand:
    return BrowserCommand(session_id="s", name=name, operands=("#x",), timeout_seconds=30)


@pytest.mark.parametrize("name", ["click", "dblclick", "press"])
def test_a_click_or_key_that_closes_its_tab_is_a_success(name: str) -> None:
    result = tab_closed(command(name), INPUT_LOST)
    assert (result.exit_code, result.error, result.data) == (0, None, {"tab_closed": True})
    assert "closed" in result.message


@pytest.mark.parametrize(
    ("name", "reply"), [("click", SCRIPT_LOST), ("type", INPUT_LOST), ("fill", INPUT_LOST), ("snapshot", SCRIPT_LOST)]
)
def test_other_commands_that_lose_their_tab_report_a_lost_session(name: str, reply: DriverReply) -> None:
    result = tab_closed(command(name), reply)
    assert (result.exit_code, result.error) == (1, ErrorCode.SESSION_GONE)


def test_an_ordinary_failure_is_not_a_lost_page() -> None:
    assert lost_its_page(INPUT_LOST)
    other = DriverReply(success=False, error="Element not found: #x")
    assert not lost_its_page(other)
    assert failed(command("click"), other).error is ErrorCode.COMMAND_FAILED


@pytest.mark.parametrize(
    "error", ["CDP response channel closed", "CDP discovery failed on port 9222", "WebSocket error"]
)
def test_a_lost_browser_hides_the_error_text_of_the_driver(error: str) -> None:
    result = failed(command("get"), DriverReply(success=False, error=error))
    assert result.error is ErrorCode.BROWSER_UNAVAILABLE
    assert error not in result.message


@pytest.mark.parametrize(
    ("reply", "wedged"),
    [
        (DriverReply(success=False, code="page_wedged"), True),
        (DriverReply(success=False, code="outcome_unknown"), True),
        (DriverReply(success=False, error="CDP command timed out: Runtime.evaluate"), True),
        (DriverReply(success=False, error="Wait timed out after 500ms"), False),
        (DriverReply(success=False, error="Element not found: CDP command timed out"), False),
    ],
)
def test_a_page_that_did_not_answer_is_recognised(reply: DriverReply, wedged: bool) -> None:
    assert outcome_is_unknown(reply) is wedged


def test_a_wait_for_a_hidden_element_reports_what_it_waited_for() -> None:
    plan = BrowserCommand(
        session_id="s", name="wait", operands=("#x",), options={"state": "hidden"}, timeout_seconds=30
    )
    reply = DriverReply(success=True, data={"waited": "selector", "selector": "#x"})
    assert succeeded(plan, reply).data == {"waited": "hidden", "selector": "#x"}


def test_a_daemon_that_refuses_because_of_a_dialog_is_recognised() -> None:
    refusal = 'A JavaScript alert dialog is blocking the page: "boo". Resolve it with `dialog accept` ...'
    assert refused_for_dialog(DriverReply(success=False, error=refusal))
    assert not refused_for_dialog(DriverReply(success=False, error="Element not found: A JavaScript "))
    assert not refused_for_dialog(DriverReply(success=True, warning=refusal))


def test_a_warning_about_a_dialog_is_left_to_the_sandbox() -> None:
    """The alert that the driver warns about is closed already."""
    stale = DriverReply(success=True, warning='A JavaScript alert dialog is blocking the page: "boo" — use ...')
    other = DriverReply(success=True, warning="something else")
    assert [succeeded(command("click"), reply).message for reply in (stale, other)] == ["", "NOTE: something else"]


@pytest.mark.parametrize(
    ("argv", "data", "expected"),
    [
        (("open", "https://a.example/"), {"url": "https://a.example/"}, True),
        (("reload",), None, True),
        (("back",), {"url": "https://a.example/"}, True),
        (("click", "#a"), {"clicked": "#a", "url": "https://a.example/", "title": ""}, True),
        (("click", "#a"), {"clicked": "#a", "changed": True}, False),
        (("press", "Enter"), {"pressed": "Enter", "url": "https://a.example/"}, True),
        (("get", "url"), {"url": "https://a.example/"}, False),
        (("wait", "500"), {"url": "https://a.example/"}, False),
        (("tab", "list"), {"tabs": []}, False),
        (("tab", "switch", "t2"), {"tabs": []}, True),
        (("tab", "close"), {"tabs": []}, True),
    ],
)
def test_a_new_document_is_recognised(argv: tuple[str, ...], data: JsonObject | None, expected: bool) -> None:
    plan = BrowserCommand(session_id="s", name=argv[0], operands=argv[1:], timeout_seconds=30)
    assert shows_new_document(plan, CommandResult(exit_code=0, data=data)) is expected
    failure = CommandResult(exit_code=1, data=data, error=ErrorCode.COMMAND_FAILED)
    assert not shows_new_document(plan, failure)
