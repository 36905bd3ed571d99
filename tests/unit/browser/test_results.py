"""What is said of a command whose tab closed under it."""

from __future__ import annotations

import pytest

from browser_shell.browser.driver.reply import DriverReply
from browser_shell.browser.results import failed, lost_its_page, tab_closed
from browser_shell.core.errors import ErrorCode
from browser_shell.core.plans import BrowserCommand

INPUT_LOST = DriverReply(success=False, error="CDP error (Input.dispatchMouseEvent): Session with given id not found.")
SCRIPT_LOST = DriverReply(success=False, error="CDP error (Runtime.evaluate): Session with given id not found.")


def command(name: str) -> BrowserCommand:
    return BrowserCommand(session_id="s", name=name, operands=("#x",), timeout_seconds=30)


@pytest.mark.parametrize("name", ["click", "dblclick", "press"])
def test_a_click_or_key_that_closes_its_tab_has_worked(name: str) -> None:
    result = tab_closed(command(name), INPUT_LOST)
    assert (result.exit_code, result.error, result.data) == (0, None, {"tab_closed": True})
    assert "closed" in result.message


@pytest.mark.parametrize(
    ("name", "reply"), [("click", SCRIPT_LOST), ("type", INPUT_LOST), ("fill", INPUT_LOST), ("snapshot", SCRIPT_LOST)]
)
def test_of_anything_else_nobody_knows_how_far_it_came(name: str, reply: DriverReply) -> None:
    result = tab_closed(command(name), reply)
    assert (result.exit_code, result.error) == (1, ErrorCode.SESSION_GONE)


def test_only_a_page_that_went_away_is_asked_about() -> None:
    assert lost_its_page(INPUT_LOST)
    other = DriverReply(success=False, error="Element not found: #x")
    assert not lost_its_page(other)
    assert failed(command("click"), other).error is ErrorCode.COMMAND_FAILED


@pytest.mark.parametrize(
    "said", ["CDP response channel closed", "CDP discovery failed on port 9222", "WebSocket error"]
)
def test_a_browser_that_went_away_is_named_and_the_drivers_words_are_not_shown(said: str) -> None:
    result = failed(command("get"), DriverReply(success=False, error=said))
    assert result.error is ErrorCode.BROWSER_UNAVAILABLE
    assert said not in result.message
