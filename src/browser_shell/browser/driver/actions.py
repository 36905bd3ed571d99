"""Requests to agent-browser's daemon, and their construction from plans.

Each kind of request is a dataclass with a closed set of fields, so client text can only ever be a value. The daemon
itself accepts more keys: a `launch` with `initScripts` runs a local file. No class here has such a field.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Literal, TypeAlias

from browser_shell.core.calls import BrowserCommand
from browser_shell.core.errors import ActFailed, ErrorCode
from browser_shell.core.json_values import JsonObject
from browser_shell.policy.roles import is_role_selector

_DEFAULT_SCROLL_PIXELS = 300
_TEXT_PREFIX = "text="

PageActionName: TypeAlias = Literal["back", "forward", "reload", "url", "title"]
ElementActionName: TypeAlias = Literal[
    "click", "dblclick", "hover", "focus", "check", "uncheck", "gettext", "isvisible", "isenabled", "ischecked"
]

_PAGE_COMMANDS: tuple[PageActionName, ...] = ("back", "forward", "reload")
_ELEMENT_COMMANDS: tuple[ElementActionName, ...] = ("click", "dblclick", "hover", "focus", "check", "uncheck")


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One request. Every subclass has a field `action`."""

    def encode(self, request_id: str) -> bytes:
        """Encode the request as one line of JSON, with names in camel case and without fields that are None."""
        request: JsonObject = {"id": request_id}
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None:
                first, *others = field.name.split("_")
                request[first + "".join(map(str.capitalize, others))] = value
        return json.dumps(request).encode("ascii") + b"\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ping(Action):
    """An action that the daemon does not know. It handles one request at a time, so any reply shows that it is idle."""

    action: Literal["ping"] = "ping"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageAction(Action):
    action: PageActionName


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementAction(Action):
    action: ElementActionName
    selector: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Navigate(Action):
    action: Literal["navigate"] = "navigate"
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchTab(Action):
    action: Literal["tab_switch"] = "tab_switch"
    tab_id: str
    """A DevTools target id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot(Action):
    action: Literal["snapshot"] = "snapshot"
    interactive: bool = False
    compact: bool = False
    urls: bool = False
    cursor: bool = False
    delta: bool = False
    full: bool = False
    max_depth: int | None = None
    selector: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill(Action):
    action: Literal["fill"] = "fill"
    selector: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Type(Action):
    action: Literal["type"] = "type"
    selector: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertText(Action):
    """Insert text at the focus without key events."""

    action: Literal["keyboard"] = "keyboard"
    subaction: Literal["insertText"] = "insertText"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Press(Action):
    action: Literal["press"] = "press"
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Select(Action):
    action: Literal["select"] = "select"
    selector: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scroll(Action):
    action: Literal["scroll"] = "scroll"
    direction: str
    amount: int
    """Pixels."""
    selector: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitForUrl(Action):
    action: Literal["waitforurl"] = "waitforurl"
    timeout: int
    url: str
    """A glob pattern."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitForLoadState(Action):
    action: Literal["waitforloadstate"] = "waitforloadstate"
    timeout: int
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Screenshot(Action):
    action: Literal["screenshot"] = "screenshot"
    path: str
    full_page: bool
    annotate: bool
    format: str
    quality: int
    """Percent, for JPEG."""
    selector: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pdf(Action):
    action: Literal["pdf"] = "pdf"
    path: str


def driver_actions(plan: BrowserCommand, *, wait_ms: int) -> Sequence[Action]:
    """Return the requests that carry out one plan, in order. `wait_ms` bounds a `wait`.

    Raises: ActFailed for a plan that the driver cannot carry out as it is.
    """
    _refuse_what_the_driver_lacks(plan)
    if plan.name == "wait":
        return [_wait(plan, wait_ms)]
    if plan.name == "type":
        return _type(plan)
    return [_BUILDERS[plan.name](plan)]


def _refuse_what_the_driver_lacks(plan: BrowserCommand) -> None:
    """Raises: ActFailed for commands and options that the driver does not have or would ignore."""
    if (
        plan.name in ("drag", "find", "select-text")
        or (plan.name == "get" and plan.operands[0] in ("value", "count", "attr"))
        or not plan.options.keys().isdisjoint(("at", "from"))
    ):
        raise _unavailable(f"{plan.name} in this form")


def _unavailable(what: str) -> ActFailed:
    return ActFailed(ErrorCode.COMMAND_FAILED, f"{what} is not available yet; nothing was done")


def file_action(plan: BrowserCommand, *, path: str, image_format: str, image_quality: int) -> Action:
    """Return the request for a `screenshot` or `pdf`. The server chooses the path, format and quality (percent)."""
    if plan.name == "pdf":
        return Pdf(path=path)
    return Screenshot(
        path=path,
        full_page="full" in plan.options,
        annotate="annotate" in plan.options,
        format=image_format,
        quality=image_quality,
        selector=_selector(plan) if plan.operands else None,
    )


def driver_selector(selector: str) -> str:
    """Translate a selector for the driver, which understands refs, CSS and `xpath=`. Raises: ActFailed."""
    if is_role_selector(selector):
        raise _unavailable("a selector by role")
    if selector.startswith(("//", "(")):
        return f"xpath={selector}"
    if selector.startswith(_TEXT_PREFIX):
        return f"xpath={_innermost_with_text(selector[len(_TEXT_PREFIX) :])}"
    return selector


def _innermost_with_text(text: str) -> str:
    """XPath of the innermost element that contains the text, with white space normalised. Skips script and style."""
    contains = f"contains(normalize-space(.), {_xpath_string(' '.join(text.split()))})"
    return f"//body//*[not(self::script or self::style)][{contains}][not(.//*[{contains}])]"


def _xpath_string(text: str) -> str:
    """XPath strings have no escapes (XPath 1.0 §3.7), so a text with both kinds of quote is concatenated."""
    if "'" not in text:
        return f"'{text}'"
    if '"' not in text:
        return f'"{text}"'
    parts = ', "\'", '.join(f"'{part}'" for part in text.split("'"))
    return f"concat({parts})"


def _selector(plan: BrowserCommand) -> str:
    return driver_selector(plan.operands[0])


def _selector_option(plan: BrowserCommand) -> str | None:
    selector = plan.options.get("selector")
    return driver_selector(selector) if selector is not None else None


def _type(plan: BrowserCommand) -> Sequence[Action]:
    text = plan.operands[1]
    if "\t" in text:
        # `type` would press the Tab key, which types nothing and may move the focus to another field.
        return [ElementAction(action="focus", selector=_selector(plan)), InsertText(text=text)]
    return [Type(selector=_selector(plan), text=text)]


def _get(plan: BrowserCommand) -> Action:
    match plan.operands:
        case ("text", selector):
            return ElementAction(action="gettext", selector=driver_selector(selector))
        case ("title",):
            return PageAction(action="title")
        case _:
            return PageAction(action="url")


def _is(plan: BrowserCommand) -> Action:
    names: dict[str, ElementActionName] = {"visible": "isvisible", "enabled": "isenabled", "checked": "ischecked"}
    question, selector = plan.operands
    return ElementAction(action=names[question], selector=driver_selector(selector))


def _snapshot(plan: BrowserCommand) -> Snapshot:
    depth, options = plan.options.get("depth"), plan.options
    return Snapshot(
        interactive="interactive" in options,
        compact="compact" in options,
        urls="urls" in options,
        cursor="cursor" in options,
        # A full snapshot is a kind of delta: it sets the state that the next delta is compared with.
        delta="delta" in options or "full" in options,
        full="full" in options,
        max_depth=int(depth) if depth is not None else None,
        selector=_selector_option(plan),
    )


def _scroll(plan: BrowserCommand) -> Scroll:
    direction = plan.operands[0] if plan.operands else "down"
    pixels = int(plan.operands[1]) if len(plan.operands) > 1 else _DEFAULT_SCROLL_PIXELS
    return Scroll(direction=direction, amount=pixels, selector=_selector_option(plan))


def _wait(plan: BrowserCommand, wait_ms: int) -> Action:
    if "url" in plan.options:
        return WaitForUrl(timeout=wait_ms, url=plan.options["url"])
    return WaitForLoadState(timeout=wait_ms, state=plan.options["load"])


def _on_page(name: PageActionName) -> Callable[[BrowserCommand], Action]:
    return lambda _: PageAction(action=name)


def _on_element(name: ElementActionName) -> Callable[[BrowserCommand], Action]:
    return lambda plan: ElementAction(action=name, selector=_selector(plan))


_BUILDERS: dict[str, Callable[[BrowserCommand], Action]] = {
    **{name: _on_page(name) for name in _PAGE_COMMANDS},
    **{name: _on_element(name) for name in _ELEMENT_COMMANDS},
    "open": lambda plan: Navigate(url=plan.operands[0]),
    "get": _get,
    "is": _is,
    "snapshot": _snapshot,
    "fill": lambda plan: Fill(selector=_selector(plan), value=plan.operands[1]),
    "press": lambda plan: Press(key=plan.operands[0]),
    "select": lambda plan: Select(selector=_selector(plan), values=plan.operands[1:]),
    "scroll": _scroll,
}
"""Builders of the commands that are one action without a timeout."""
