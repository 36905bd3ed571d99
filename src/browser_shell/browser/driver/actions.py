"""Requests to agent-browser's daemon, and their construction from plans.

Client text can only ever be a value of a request, never an action or a key. The daemon itself accepts more keys: a
`wait` with `function` runs JavaScript, and a `launch` with `initScripts` runs a local file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from browser_shell.core.calls import BrowserCommand
from browser_shell.core.json_values import JsonObject, JsonValue

_DEFAULT_SCROLL_PIXELS = 300
_TEXT_PREFIX = "text="
FIELDS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("back", "forward", "reload", "url", "title"), ()),
    **dict.fromkeys(("click", "dblclick", "hover", "focus", "check", "uncheck"), ("selector",)),
    **dict.fromkeys(("gettext", "isvisible", "isenabled", "ischecked"), ("selector",)),
    "navigate": ("url",),
    "tab_switch": ("tabId",),
    "snapshot": ("interactive", "compact", "urls", "cursor", "delta", "full", "maxDepth", "selector"),
    "fill": ("selector", "value"),
    "type": ("selector", "text"),
    "keyboard": ("subaction", "text"),
    "press": ("key",),
    "select": ("selector", "values"),
    "scroll": ("direction", "amount", "selector"),
    "wait": ("timeout", "selector", "state", "text"),
    "waitforurl": ("timeout", "url"),
    "waitforloadstate": ("timeout", "state"),
    "screenshot": ("path", "fullPage", "annotate", "format", "quality", "selector"),
    "pdf": ("path",),
    "ping": (),
}
"""The actions that may be sent to the daemon, and the fields of each. `ping` is an action that does not exist: the
daemon handles one request at a time, so any reply to it shows that the daemon is idle."""


class Action:
    """One request."""

    def __init__(self, name: str, **fields: JsonValue) -> None:
        """Leave out fields that are None. Raises: KeyError, ValueError for what FIELDS does not list."""
        if unlisted := fields.keys() - FIELDS[name]:
            raise ValueError(f"{name} has no field {sorted(unlisted)}")
        self.name = name
        self._fields = {key: value for key, value in fields.items() if value is not None}

    def encode(self, request_id: str) -> bytes:
        """One line of JSON."""
        request: JsonObject = {"id": request_id, "action": self.name, **self._fields}
        return json.dumps(request).encode("ascii") + b"\n"


def driver_actions(plan: BrowserCommand, *, wait_ms: int) -> Sequence[Action]:
    """Return the requests that carry out one plan, in order. `wait_ms` bounds a `wait`."""
    if plan.name == "wait":
        return [_wait(plan, wait_ms)]
    if plan.name == "type":
        return _type(plan)
    return [_BUILDERS[plan.name](plan)]


def file_action(plan: BrowserCommand, *, path: str, image_format: str, image_quality: int) -> Action:
    """Return the request for a `screenshot` or `pdf`. The server chooses the path, format and quality (percent)."""
    if plan.name == "pdf":
        return Action("pdf", path=path)
    return Action(
        "screenshot",
        path=path,
        fullPage="full" in plan.options,
        annotate="annotate" in plan.options,
        format=image_format,
        quality=image_quality,
        selector=_selector(plan) if plan.operands else None,
    )


def requested_sleep_ms(plan: BrowserCommand) -> int | None:
    """The milliseconds of a `wait MS`; None for every other command."""
    operand = plan.operands[0] if plan.name == "wait" and plan.operands else ""
    return int(operand) if operand.isascii() and operand.isdigit() else None


def driver_selector(selector: str) -> str:
    """Translate a selector for the driver, which understands refs, CSS and `xpath=`."""
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
        return [Action("focus", selector=_selector(plan)), Action("keyboard", subaction="insertText", text=text)]
    return [Action("type", selector=_selector(plan), text=text)]


def _get(plan: BrowserCommand) -> Action:
    match plan.operands:
        case ("text", selector):
            return Action("gettext", selector=driver_selector(selector))
        case ("title",):
            return Action("title")
        case _:
            return Action("url")


def _is(plan: BrowserCommand) -> Action:
    names = {"visible": "isvisible", "enabled": "isenabled", "checked": "ischecked"}
    question, selector = plan.operands
    return Action(names[question], selector=driver_selector(selector))


def _snapshot(plan: BrowserCommand) -> Action:
    depth, options = plan.options.get("depth"), plan.options
    return Action(
        "snapshot",
        interactive="interactive" in options,
        compact="compact" in options,
        urls="urls" in options,
        cursor="cursor" in options,
        # A full snapshot is a kind of delta: it sets the state that the next delta is compared with.
        delta="delta" in options or "full" in options,
        full="full" in options,
        maxDepth=int(depth) if depth is not None else None,
        selector=_selector_option(plan),
    )


def _scroll(plan: BrowserCommand) -> Action:
    direction, pixels = (*plan.operands, *("down", str(_DEFAULT_SCROLL_PIXELS))[len(plan.operands) :])
    return Action("scroll", direction=direction, amount=int(pixels), selector=_selector_option(plan))


def _wait(plan: BrowserCommand, wait_ms: int) -> Action:
    options, sleep_ms = plan.options, requested_sleep_ms(plan)
    if sleep_ms is not None:
        return Action("wait", timeout=min(sleep_ms, wait_ms))
    if plan.operands:
        return Action("wait", timeout=wait_ms, selector=plan.operands[0], state=options.get("state", "visible"))
    if "text" in options:
        return Action("wait", timeout=wait_ms, text=options["text"])
    if "url" in options:
        return Action("waitforurl", timeout=wait_ms, url=options["url"])
    return Action("waitforloadstate", timeout=wait_ms, state=options["load"])


_BUILDERS: dict[str, Callable[[BrowserCommand], Action]] = {
    **dict.fromkeys(("back", "forward", "reload"), lambda plan: Action(plan.name)),
    **dict.fromkeys(
        ("click", "dblclick", "hover", "focus", "check", "uncheck"),
        lambda plan: Action(plan.name, selector=_selector(plan)),
    ),
    "open": lambda plan: Action("navigate", url=plan.operands[0]),
    "get": _get,
    "is": _is,
    "snapshot": _snapshot,
    "fill": lambda plan: Action("fill", selector=_selector(plan), value=plan.operands[1]),
    "press": lambda plan: Action("press", key=plan.operands[0]),
    "select": lambda plan: Action("select", selector=_selector(plan), values=list(plan.operands[1:])),
    "scroll": _scroll,
}
"""Builders of the commands that are one action without a timeout."""
