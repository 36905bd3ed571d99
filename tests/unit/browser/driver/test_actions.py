"""Plans become requests to the driver. Client text is only ever a value in them."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, get_args, get_type_hints

import pytest

from browser_shell.browser.driver import actions
from browser_shell.browser.driver.actions import Action, driver_actions, driver_selector, file_action
from browser_shell.browser.driver.agent_browser import ALLOWED_ACTIONS
from browser_shell.core.calls import BrowserCommand
from browser_shell.core.errors import ActFailed

REVIEWED_FIELDS: dict[type[Action], set[str]] = {
    actions.Ping: set(),
    actions.PageAction: set(),
    actions.ElementAction: {"selector"},
    actions.Navigate: {"url"},
    actions.SwitchTab: {"tab_id"},
    actions.Snapshot: {"interactive", "compact", "urls", "cursor", "delta", "full", "max_depth", "selector"},
    actions.Fill: {"selector", "value"},
    actions.Type: {"selector", "text"},
    actions.InsertText: {"text", "subaction"},
    actions.Press: {"key"},
    actions.Select: {"selector", "values"},
    actions.Scroll: {"direction", "amount", "selector"},
    actions.WaitForUrl: {"url", "timeout"},
    actions.WaitForLoadState: {"state", "timeout"},
    actions.Screenshot: {"path", "full_page", "annotate", "format", "quality", "selector"},
    actions.Pdf: {"path"},
}
"""The fields that each request may have. The action `wait` is missing: with `function` it would run JavaScript."""


NO_SWITCHES = dict.fromkeys(("interactive", "compact", "urls", "cursor", "delta", "full"), False)


def plan(name: str, *operands: str, **options: str) -> BrowserCommand:
    return BrowserCommand(session_id="s", name=name, operands=operands, options=options, timeout_seconds=30)


def requests(name: str, *operands: str, **options: str) -> list[dict[str, Any]]:
    """The requests of one command, without their ids."""
    lines = [action.encode("1") for action in driver_actions(plan(name, *operands, **options), wait_ms=900)]
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines)
    decoded = [json.loads(line) for line in lines]
    assert [each.pop("id") for each in decoded] == ["1"] * len(lines)
    return decoded


def request(name: str, *operands: str, **options: str) -> dict[str, Any]:
    (only,) = requests(name, *operands, **options)
    return only


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


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("@e3", "@e3"),
        ("#a > .b", "#a > .b"),
        ("xpath=//a", "xpath=//a"),
        ("//a[1]", "xpath=//a[1]"),
        ("(//a)[2]", "xpath=(//a)[2]"),
    ],
)
def test_selectors_take_the_form_that_the_driver_understands(selector: str, expected: str) -> None:
    assert driver_selector(selector) == expected


@pytest.mark.parametrize(
    ("text", "quoted"),
    [("Go", "'Go'"), ("it's", '"it\'s"'), ("""a"b'c""", """concat('a"b', "'", 'c')""")],
)
def test_a_text_selector_cannot_leave_its_quotes(text: str, quoted: str) -> None:
    assert f"contains(normalize-space(.), {quoted})" in driver_selector(f"text={text}")


@pytest.mark.promise("driver:text-is-opaque")
@pytest.mark.parametrize("text", ["--cdp", "-p", "text=x", "//x", "[[]]", "", '","action":"evaluate', "a\nb", "\ud800"])
def test_text_stays_a_value(text: str) -> None:
    assert request("fill", "//input", text) == {"action": "fill", "selector": "xpath=//input", "value": text}
    assert request("type", "#a", text) == {"action": "type", "selector": "#a", "text": text}


def test_text_with_a_tab_is_inserted_instead_of_typed() -> None:
    assert requests("type", "#a", "x\ty") == [
        {"action": "focus", "selector": "#a"},
        {"action": "keyboard", "subaction": "insertText", "text": "x\ty"},
    ]


def test_the_server_names_every_file() -> None:
    def request_for(command: BrowserCommand) -> Any:
        action = file_action(command, path="/out/x.jpg", image_format="jpeg", image_quality=70)
        return json.loads(action.encode("1"))

    screenshot = request_for(plan("screenshot", "//a", full=""))
    assert screenshot == {
        **{"id": "1", "action": "screenshot", "path": "/out/x.jpg", "fullPage": True, "annotate": False},
        **{"format": "jpeg", "quality": 70, "selector": "xpath=//a"},
    }
    assert request_for(plan("pdf")) == {"id": "1", "action": "pdf", "path": "/out/x.jpg"}


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (plan("wait", url="**/done"), {"action": "waitforurl", "url": "**/done", "timeout": 900}),
        (plan("wait", load="networkidle"), {"action": "waitforloadstate", "state": "networkidle", "timeout": 900}),
    ],
)
def test_every_wait_is_bounded(command: BrowserCommand, expected: dict[str, Any]) -> None:
    assert request(command.name, *command.operands, **command.options) == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (plan("open", "http://a.example/"), {"action": "navigate", "url": "http://a.example/"}),
        (plan("get", "url"), {"action": "url"}),
        (plan("get", "title"), {"action": "title"}),
        (plan("get", "text", "//a"), {"action": "gettext", "selector": "xpath=//a"}),
        (plan("is", "visible", "//a"), {"action": "isvisible", "selector": "xpath=//a"}),
        (plan("select", "#s", "1", "2"), {"action": "select", "selector": "#s", "values": ["1", "2"]}),
        (plan("press", "Enter"), {"action": "press", "key": "Enter"}),
        (plan("scroll"), {"action": "scroll", "direction": "down", "amount": 300}),
        (plan("scroll", "up"), {"action": "scroll", "direction": "up", "amount": 300}),
        (
            plan("scroll", "down", "10", selector="//ul"),
            {"action": "scroll", "direction": "down", "amount": 10, "selector": "xpath=//ul"},
        ),
        (plan("snapshot"), {"action": "snapshot", **NO_SWITCHES}),
        (plan("snapshot", full=""), {"action": "snapshot", **NO_SWITCHES, "delta": True, "full": True}),
        (
            plan("snapshot", interactive="", depth="3", selector="body"),
            {"action": "snapshot", **NO_SWITCHES, "interactive": True, "maxDepth": 3, "selector": "body"},
        ),
    ],
)
def test_each_command_is_one_request(command: BrowserCommand, expected: dict[str, Any]) -> None:
    assert request(command.name, *command.operands, **command.options) == expected


@pytest.mark.parametrize(
    "command",
    [
        plan("drag", "#a", "#b"),
        plan("find", "Save"),
        plan("select-text", "#a"),
        plan("get", "attr", "href", "#a"),
        plan("get", "text", "#a", **{"from": "9"}),
        plan("snapshot", **{"from": "9"}),
        plan("click", at="1,2"),
        plan("click", "role=button name=Save"),
        plan("fill", "role=textbox", "x"),
        plan("scroll", selector="role=list"),
    ],
    ids=lambda command: " ".join((command.name, *command.operands)),
)
def test_a_plan_that_the_driver_lacks_fails_before_a_request(command: BrowserCommand) -> None:
    with pytest.raises(ActFailed):
        driver_actions(command, wait_ms=900)
