"""Plans become requests to the driver. Client text is only ever a value in them."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, get_args, get_type_hints

import pytest

from browser_shell.browser.driver import actions
from browser_shell.browser.driver.actions import Action, driver_action
from browser_shell.browser.driver.agent_browser import ALLOWED_ACTIONS
from browser_shell.core.calls import BrowserCommand
from browser_shell.policy.commands import COMMANDS

REVIEWED_FIELDS: dict[type[Action], set[str]] = {
    actions.Ping: set(),
    actions.PageAction: set(),
    actions.Navigate: {"url"},
    actions.SwitchTab: {"tab_id"},
    actions.WaitForUrl: {"url", "timeout"},
    actions.WaitForLoadState: {"state", "timeout"},
    actions.Pdf: {"path"},
}
"""The fields that each request may have. The action `wait` is missing: with `function` it would run JavaScript."""


def plan(name: str, *operands: str, **options: str) -> BrowserCommand:
    return BrowserCommand(session_id="s", name=name, operands=operands, options=options, timeout_seconds=30)


def request(command: BrowserCommand) -> dict[str, Any]:
    """The request of one command, without its id."""
    line = driver_action(command, wait_ms=900).encode("1")
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    decoded: dict[str, Any] = json.loads(line)
    assert decoded.pop("id") == "1"
    return decoded


def action_names(kind: type[Action]) -> set[str]:
    """The values that the type of the field `action` allows."""
    return set(get_args(get_type_hints(kind)["action"]))


@pytest.mark.promise("driver:closed-actions")
def test_every_request_has_only_the_fields_that_were_reviewed() -> None:
    kinds = [each for each in vars(actions).values() if isinstance(each, type) and issubclass(each, Action)]
    found = {kind: {field.name for field in dataclasses.fields(kind)} - {"action"} for kind in kinds}
    reviewed: dict[type[Action], set[str]] = {Action: set(), **REVIEWED_FIELDS}
    assert found == reviewed


def test_the_daemons_own_policy_allows_exactly_the_actions_that_exist_here() -> None:
    sent_by_the_cli = {"launch", "stream_disable"}
    sent_here = {name for kind in REVIEWED_FIELDS if kind is not actions.Ping for name in action_names(kind)}
    assert sent_here == set(ALLOWED_ACTIONS) - sent_by_the_cli


@pytest.mark.promise("driver:text-is-opaque")
@pytest.mark.parametrize("text", ["--cdp", "text=x", "//x", "[[]]", "", '","action":"evaluate', "a\nb", "\ud800"])
def test_text_stays_a_value(text: str) -> None:
    assert request(plan("open", text)) == {"action": "navigate", "url": text}
    assert request(plan("wait", url=text)) == {"action": "waitforurl", "url": text, "timeout": 900}


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (plan("open", "http://a.example/"), {"action": "navigate", "url": "http://a.example/"}),
        (plan("back"), {"action": "back"}),
        (plan("forward"), {"action": "forward"}),
        (plan("reload"), {"action": "reload"}),
        (plan("wait", url="**/done"), {"action": "waitforurl", "url": "**/done", "timeout": 900}),
        (plan("wait", load="networkidle"), {"action": "waitforloadstate", "state": "networkidle", "timeout": 900}),
    ],
)
def test_each_command_is_one_request(command: BrowserCommand, expected: dict[str, Any]) -> None:
    assert request(command) == expected


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - {"open", "back", "forward", "reload"}))
def test_the_driver_has_no_action_for_any_other_command(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        driver_action(plan(name, "#a"), wait_ms=900)
