"""Requests to agent-browser's daemon, and the step from a plan to them.

Each action is a dataclass with a closed set of fields, so client text can only ever be a value. The daemon itself
accepts more keys: a `wait` with `function` runs JavaScript, and a `launch` with `initScripts` runs a local file. No
class here has such a field.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import ClassVar, Literal

from browser_shell.browser.driver.selectors import driver_selector
from browser_shell.core.json_values import JsonObject
from browser_shell.core.plans import BrowserCommand

DEFAULT_SCROLL_PIXELS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFile:
    """The file that the driver writes a screenshot or PDF to. The server chooses all of it."""

    path: str
    image_format: str
    image_quality: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One request. `None` fields are left out; `max_depth` becomes `maxDepth`."""

    action: ClassVar[str]

    def encode(self, request_id: str) -> bytes:
        """One line of JSON."""
        request: JsonObject = {"id": request_id, "action": self.action}
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None:
                head, *rest = field.name.split("_")
                request[head + "".join(map(str.capitalize, rest))] = list(value) if isinstance(value, tuple) else value
        return json.dumps(request).encode("ascii") + b"\n"


class Ping(Action):
    """An action that does not exist. The daemon handles one request at a time, so its error reply shows that it is
    idle.
    """

    action = "ping"


class Back(Action):
    action = "back"


class Forward(Action):
    action = "forward"


class Reload(Action):
    action = "reload"


class GetUrl(Action):
    action = "url"


class GetTitle(Action):
    action = "title"


@dataclass(frozen=True, slots=True, kw_only=True)
class Navigate(Action):
    action = "navigate"
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchTab(Action):
    action = "tab_switch"
    tab_id: str
    """A DevTools target id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot(Action):
    action = "snapshot"
    interactive: bool | None = None
    compact: bool | None = None
    urls: bool | None = None
    cursor: bool | None = None
    delta: bool | None = None
    full: bool | None = None
    max_depth: int | None = None
    selector: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _OnElement(Action):
    selector: str


class Click(_OnElement):
    action = "click"


class DoubleClick(_OnElement):
    action = "dblclick"


class Hover(_OnElement):
    action = "hover"


class Focus(_OnElement):
    action = "focus"


class Check(_OnElement):
    action = "check"


class Uncheck(_OnElement):
    action = "uncheck"


class GetText(_OnElement):
    action = "gettext"


class IsVisible(_OnElement):
    action = "isvisible"


class IsEnabled(_OnElement):
    action = "isenabled"


class IsChecked(_OnElement):
    action = "ischecked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill(_OnElement):
    action = "fill"
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Type(_OnElement):
    action = "type"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertText(Action):
    """Insert text at the focus without key events."""

    action = "keyboard"
    text: str
    subaction: Literal["insertText"] = "insertText"


@dataclass(frozen=True, slots=True, kw_only=True)
class Press(Action):
    action = "press"
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Select(_OnElement):
    action = "select"
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scroll(Action):
    action = "scroll"
    direction: str
    amount: int
    """Pixels."""
    selector: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sleep(Action):
    action = "wait"
    timeout: int
    """Milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitForElement(Action):
    action = "wait"
    selector: str
    state: str
    timeout: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitForText(Action):
    action = "wait"
    text: str
    timeout: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitForUrl(Action):
    action = "waitforurl"
    url: str
    """A glob pattern."""
    timeout: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitForLoadState(Action):
    action = "waitforloadstate"
    state: str
    timeout: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Screenshot(Action):
    action = "screenshot"
    path: str
    full_page: bool
    annotate: bool
    format: str
    quality: int
    """Percent, for JPEG."""
    selector: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pdf(Action):
    action = "pdf"
    path: str


def driver_actions(plan: BrowserCommand, *, wait_ms: int) -> Sequence[Action]:
    """Return the requests that carry out one plan, in order. `wait_ms` bounds a `wait`."""
    if plan.name == "wait":
        return [_wait(plan, wait_ms)]
    if plan.name == "type":
        return _type(plan)
    return [_BUILDERS[plan.name](plan)]


def file_action(plan: BrowserCommand, file: OutputFile) -> Action:
    """Return the request for a `screenshot` or `pdf`."""
    if plan.name == "pdf":
        return Pdf(path=file.path)
    return Screenshot(
        path=file.path,
        full_page="full" in plan.options,
        annotate="annotate" in plan.options,
        format=file.image_format,
        quality=file.image_quality,
        selector=driver_selector(plan.operands[0]) if plan.operands else None,
    )


def requested_sleep_ms(plan: BrowserCommand) -> int | None:
    """The milliseconds of a `wait MS`; None for every other command."""
    operand = plan.operands[0] if plan.name == "wait" and plan.operands else ""
    return int(operand) if operand.isascii() and operand.isdigit() else None


def _type(plan: BrowserCommand) -> Sequence[Action]:
    selector, text = driver_selector(plan.operands[0]), plan.operands[1]
    if "\t" in text:
        # `type` would press the Tab key, which types nothing and may move the focus to another field.
        return [Focus(selector=selector), InsertText(text=text)]
    return [Type(selector=selector, text=text)]


def _question(plan: BrowserCommand) -> Action:
    """`get url|title`, `get text SEL` and `is visible|enabled|checked SEL`."""
    subject, *selectors = plan.operands
    if subject in _ELEMENT_QUESTIONS:
        return _ELEMENT_QUESTIONS[subject](selector=driver_selector(selectors[0]))
    return GetUrl() if subject == "url" else GetTitle()


def _snapshot(plan: BrowserCommand) -> Snapshot:
    def switch(name: str) -> bool | None:
        return True if name in plan.options else None

    depth, full = plan.options.get("depth"), switch("full")
    return Snapshot(
        interactive=switch("interactive"),
        compact=switch("compact"),
        urls=switch("urls"),
        cursor=switch("cursor"),
        # A full snapshot is a kind of delta: it sets the state that the next delta is compared with.
        delta=switch("delta") or full,
        full=full,
        max_depth=int(depth) if depth is not None else None,
        selector=_selector_option(plan),
    )


def _scroll(plan: BrowserCommand) -> Scroll:
    direction, pixels = (*plan.operands, *("down", str(DEFAULT_SCROLL_PIXELS))[len(plan.operands) :])
    return Scroll(direction=direction, amount=int(pixels), selector=_selector_option(plan))


def _wait(plan: BrowserCommand, wait_ms: int) -> Action:
    sleep_ms = requested_sleep_ms(plan)
    if sleep_ms is not None:
        return Sleep(timeout=min(sleep_ms, wait_ms))
    if plan.operands:
        state = plan.options.get("state", "visible")
        return WaitForElement(selector=plan.operands[0], state=state, timeout=wait_ms)
    if "text" in plan.options:
        return WaitForText(text=plan.options["text"], timeout=wait_ms)
    if "url" in plan.options:
        return WaitForUrl(url=plan.options["url"], timeout=wait_ms)
    return WaitForLoadState(state=plan.options["load"], timeout=wait_ms)


def _selector_option(plan: BrowserCommand) -> str | None:
    selector = plan.options.get("selector")
    return driver_selector(selector) if selector is not None else None


def _on_element(action: type[_OnElement]) -> Callable[[BrowserCommand], Action]:
    return lambda plan: action(selector=driver_selector(plan.operands[0]))


_ELEMENT_QUESTIONS: dict[str, type[_OnElement]] = {
    "text": GetText,
    "visible": IsVisible,
    "enabled": IsEnabled,
    "checked": IsChecked,
}
_BUILDERS: dict[str, Callable[[BrowserCommand], Action]] = {
    "open": lambda plan: Navigate(url=plan.operands[0]),
    "back": lambda _: Back(),
    "forward": lambda _: Forward(),
    "reload": lambda _: Reload(),
    "get": _question,
    "is": _question,
    "snapshot": _snapshot,
    "click": _on_element(Click),
    "dblclick": _on_element(DoubleClick),
    "hover": _on_element(Hover),
    "focus": _on_element(Focus),
    "check": _on_element(Check),
    "uncheck": _on_element(Uncheck),
    "fill": lambda plan: Fill(selector=driver_selector(plan.operands[0]), value=plan.operands[1]),
    "press": lambda plan: Press(key=plan.operands[0]),
    "select": lambda plan: Select(selector=driver_selector(plan.operands[0]), values=plan.operands[1:]),
    "scroll": _scroll,
}
"""The commands that are one action of the driver."""
