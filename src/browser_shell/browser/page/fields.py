"""Commands that enter text: `fill`, `type`, `focus` and `select-text`.

Each checks the field before it touches anything, gives it the focus, and reads the result back. While text is entered,
guards in all frames discard input that would reach another element.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import anyio

from browser_shell.browser.devtools.client import DevToolsError
from browser_shell.browser.page.elements import Element
from browser_shell.browser.page.field_errors import field_error, not_kept, short
from browser_shell.browser.page.frames import Frame
from browser_shell.browser.page.keyboard import (
    DELETE,
    SELECT_ALL,
    TO_END,
    InputRequest,
    chord_requests,
    insertion,
    send_input,
    typing_requests,
)
from browser_shell.browser.page.page import WORLD, Page
from browser_shell.browser.page.scripts import load_script
from browser_shell.core.calls import BrowserCommand
from browser_shell.core.errors import ActFailed, ErrorCode
from browser_shell.core.json_values import JsonObject

MAX_TYPED_CHARACTERS = 4_000
"""Two events per character take about 1 ms each, and the default deadline of a call is 30 s."""
_MAX_VALUE_CHARACTERS = 1_000
_REQUESTS_PER_BATCH = 200
_RELEASE_SECONDS = 0.2
_COMPARED_CHARACTERS = 20
_MANY_LINES = 20
_SELECTION_SECONDS = 0.15
"""Slate reads the selection of the browser at most every 100 ms."""

_BEGIN_FILL = "function (text) { return browserShell.fields.beginFill(this, text) }"
_BEGIN_TYPE = "function (text) { return browserShell.fields.beginType(this, text) }"
_PASTE = "function (text) { return browserShell.fields.paste(text) }"
_FINISH = "function (expected) { return browserShell.fields.finish(expected) }"
_FOCUS = "function () { return browserShell.fields.focus(this) }"
_EDITABLE_CONTENT = "function () { return browserShell.fields.editableContent() }"
_BLOCK_INPUT = "function () { browserShell.fields.guardInput(null) }"
_RELEASE_INPUT = "function () { browserShell.fields.releaseGuard() }"


async def fill(page: Page, plan: BrowserCommand) -> JsonObject:
    """Run `fill SEL TEXT`: replace the content of a field. Raises: ActFailed."""
    selector, text = plan.operands
    element, state = await _begin(page, await page.element(selector), _BEGIN_FILL, text)
    _note_other_field(page, selector, state)
    if not state.get("done"):
        old, state = str(state.get("old", "")), await _replace(page, element, state, text)
        if _selection_was_missed(state, old):
            _, state = await _begin(page, element, _BEGIN_FILL, text)
            state = await _replace(page, element, state, text, pause_seconds=_SELECTION_SECONDS)
    return {"filled": selector, **_checked_value(page, _Entry(label=selector, text=text, state=state))}


async def type_(page: Page, plan: BrowserCommand) -> JsonObject:
    """Run `type SEL TEXT`: press the keys of the text, with the caret at the end of the field. Raises: ActFailed."""
    selector, text = plan.operands
    if len(text) > MAX_TYPED_CHARACTERS:
        raise ActFailed(
            ErrorCode.COMMAND_FAILED,
            f"type takes at most {MAX_TYPED_CHARACTERS} characters, and this text has {len(text)}",
            advice=f"Use fill {selector} TEXT, which enters the text at once.",
        )
    element, state = await _begin(page, await page.element(selector), _BEGIN_TYPE, text)
    _note_other_field(page, selector, state)
    old = str(state.get("old", ""))
    requests = [*(chord_requests(TO_END) if state.get("byKey") else []), *typing_requests(text)]
    state = await _enter(page, element, requests, expected=old + text)
    return {"typed": selector, **_checked_value(page, _Entry(label=selector, text=text, state=state, old=old))}


async def focus(page: Page, plan: BrowserCommand) -> JsonObject:
    """Run `focus SEL`. Raises: ActFailed when the element does not get the focus."""
    selector = plan.operands[0]
    await _begin(page, await page.element(selector), _FOCUS)
    return {"focused": selector}


async def select_text(page: Page, plan: BrowserCommand) -> JsonObject:
    """Run `select-text SEL [TEXT]`: select a passage of an element, or all of its text. Raises: ActFailed."""
    selector, *passages = plan.operands
    element = await page.element(selector)
    result = await element.call(load_script("select_text"), passages[0] if passages else None)
    found = result if isinstance(result, dict) else {}
    match found.get("problem"):
        case None:
            return {"selected_text": _shorten(str(found.get("text", "")))}
        case "missing":
            raise ActFailed(
                ErrorCode.COMMAND_FAILED,
                f"{selector} does not contain the text; it begins with {short(str(found.get('text', '')))}",
                advice=f"Copy the passage exactly as get text {selector} shows it.",
            )
        case "whole":
            raise ActFailed(
                ErrorCode.COMMAND_FAILED,
                f"{selector} is a field whose text can be selected only as a whole",
                advice=f"Use select-text {selector} without a text.",
            )
        case "empty" | "secret":
            raise ActFailed(
                ErrorCode.COMMAND_FAILED,
                f"{selector} has no text that can be selected",
                advice="Use the ref or CSS selector of the element that holds the text.",
            )
        case _:
            raise field_error(selector, found)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """Text that was entered, and the state of the field afterwards."""

    label: str
    text: str
    state: JsonObject
    old: str | None = None
    """Content of the field to which the text was added by keys; None if the text replaced it."""

    @property
    def expected(self) -> str:
        return (self.old or "") + self.text


async def _begin(page: Page, element: Element, function: str, *args: str) -> tuple[Element, JsonObject]:
    """Check the field and give it the focus. For an `iframe` element, use the editable content of its document.

    Raises: ActFailed.
    """
    state = await element.act(function, *args)
    if isinstance(state, dict) and state.get("problem") == "frame":
        frame = await page.content_frame(element)
        content = await page.element_from(frame, _EDITABLE_CONTENT, label=element.label) if frame else None
        if content is not None:
            element, state = content, await content.act(function, *args)
    if not isinstance(state, dict):
        state = {"problem": "gone"}
    if "problem" in state:
        raise field_error(element.label, state)
    return element, state


def _note_other_field(page: Page, selector: str, state: JsonObject) -> None:
    if state.get("other"):
        page.notes.append(f"{selector} is not a field itself; its field {state.get('field')} was used")


def _selection_was_missed(state: JsonObject, old: str) -> bool:
    """Whether an editor still has its old text. Some editors read the browser's selection with a delay."""
    is_editor = state.get("kind") in ("editable", "proxy") and not state.get("blocked")
    start = _squeeze(old)[:_COMPARED_CHARACTERS]
    return is_editor and not state.get("holds") and start != "" and start in _squeeze(str(state.get("value", "")))


async def _replace(
    page: Page, element: Element, state: JsonObject, text: str, *, pause_seconds: float = 0.0
) -> JsonObject:
    """Replace the selected content of the field that `_begin` prepared. Raises: ActFailed."""
    requests = chord_requests(SELECT_ALL) if state.get("byKey") else []
    if pause_seconds:
        await send_input(page, requests)
        await anyio.sleep(pause_seconds)
        requests = []
    if state.get("pastes"):
        # A code editor indents lines that are typed. It leaves pasted lines as they are.
        await send_input(page, requests)
        requests = [] if await element.call(_PASTE, text) else [insertion(text)]
    elif text:
        requests.append(insertion(text))
    elif not state.get("empty"):
        requests += chord_requests(DELETE)
    return await _enter(page, element, requests, expected=text)


async def _enter(page: Page, element: Element, requests: Sequence[InputRequest], *, expected: str) -> JsonObject:
    """Send input to the field that `_begin` prepared, and return its state afterwards. Raises: ActFailed."""
    async with _input_only_into(page, element.frame):
        for start in range(0, len(requests), _REQUESTS_PER_BATCH):
            await send_input(page, requests[start : start + _REQUESTS_PER_BATCH])
        try:
            found = await element.call(_FINISH, expected)
        except DevToolsError as cause:
            raise ActFailed(
                ErrorCode.PAGE_CHANGED,
                f"the page was replaced while text was entered into {element.label}",
                advice="Take a new snapshot and check what the page received.",
            ) from cause
    return found if isinstance(found, dict) else {}


@asynccontextmanager
async def _input_only_into(page: Page, target: Frame) -> AsyncIterator[None]:
    """Discard input in all other frames, and in documents that are loaded in the meantime.

    Another frame may take the focus while text is entered, and a new page may focus a field when it loads.
    """
    others = [frame for frame in await page.frames() if frame.frame_id != target.frame_id]
    blocked = [*others, target]
    scripts: list[JsonObject] = []

    async def call(frame: Frame, function: str) -> None:
        with suppress(DevToolsError, ActFailed):  # The frame was removed in the meantime.
            await page.call_function(frame, function)

    async def block_new_documents() -> None:
        source = f"({_BLOCK_INPUT})()"
        params: JsonObject = {"source": source, "worldName": WORLD}
        scripts.append(await page.send("Page.addScriptToEvaluateOnNewDocument", params))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(block_new_documents)
        for frame in others:
            tasks.start_soon(call, frame, _BLOCK_INPUT)
    try:
        yield
        blocked = others  # The target is released when its value is read.
    finally:
        for script in scripts:
            page.post("Page.removeScriptToEvaluateOnNewDocument", {"identifier": script.get("identifier")})
        if blocked:
            # A page with a dialog handles the calls after the dialog is closed.
            with anyio.move_on_after(_RELEASE_SECONDS, shield=True):
                async with anyio.create_task_group() as tasks:
                    for frame in blocked:
                        tasks.start_soon(call, frame, _RELEASE_INPUT)


def _checked_value(page: Page, entry: _Entry) -> JsonObject:
    """Compare the content of the field with the text. Return the value for the answer; nothing for a secret.

    Raises: ActFailed when the text is not there.
    """
    label, state = entry.label, entry.state
    if state.get("blocked"):
        raise _misdirected(label, state)
    value = state.get("value")
    is_gone = not state.get("connected", True)
    if not isinstance(value, str) or (is_gone and not state.get("holds")):
        raise ActFailed(
            ErrorCode.ELEMENT_GONE,
            f"the page removed or replaced {label} while text was entered",
            advice="Take a new snapshot and check whether the page has the text.",
        )
    if not state.get("holds"):
        page.notes += [note] if (note := _note_on_other_form(entry, value)) else []
    if state.get("indented"):
        page.notes.append(f"the editor changed the white space of lines in {label}")
    if is_gone:
        page.notes.append(f"the page replaced the field {label}; its successor holds the text")
    if state.get("invalid"):
        page.notes.append(f"the field reports: {state['invalid']}")
    return {} if state.get("secret") or state.get("kind") in ("other", "terminal") else {"value": _shorten(value)}


def _misdirected(label: str, state: JsonObject) -> ActFailed:
    on = str(state.get("on") or "another frame")
    if on == "gone":
        return ActFailed(
            ErrorCode.ELEMENT_GONE,
            f"the page removed {label} while text was entered; the rest was discarded",
            advice="Take a new snapshot and use the ref of the field that took its place.",
        )
    return ActFailed(
        ErrorCode.COMMAND_FAILED,
        f"the page moved the focus from {label} to {on} while text was entered; the rest was discarded",
        advice=f"Take a snapshot, check what {label} holds, and enter the rest where it belongs.",
    )


def _note_on_other_form(entry: _Entry, value: str) -> str:
    """Return a note on a value that contains the text in another form, for example with separators.

    Raises: ActFailed when the text is missing in the value.
    """
    label, expected, kind = entry.label, entry.expected, entry.state.get("kind")
    if entry.old is not None and kind == "value" and value not in ("", entry.old):
        return ""  # The keys set a date or time. The answer contains its value.
    if entry.old is not None and entry.text.endswith("\n") and not value.strip():
        return f"{label} is empty now: the page took the text when Enter was pressed"
    if entry.old is not None and entry.state.get("sink"):
        return f"the page handles the keys of {label} by itself; take a snapshot to see the effect"
    if kind != "value" and has_same_characters(expected, value):
        return f"the page changed the form of the text in {label}"
    # Code editors render only the visible lines.
    is_long = kind in ("editable", "proxy") and expected.count("\n") >= _MANY_LINES
    if is_long and value.strip() and _squeeze(value) in _squeeze(expected):
        return f"{label} shows only a part of the text, so the rest could not be checked"
    instead = f"type {label} TEXT" if entry.old is None else f"fill {label} TEXT"
    raise not_kept(label, None if entry.state.get("secret") else _shorten(value), instead=instead)


def has_same_characters(expected: str, value: str) -> bool:
    """Whether the letters and digits of a text appear in a value in the same order, as in `5551234` and `555-1234`."""
    wanted = [character for character in expected.casefold() if character.isalnum()]
    remaining = iter(value.casefold())
    return bool(wanted) and all(character in remaining for character in wanted)


def _squeeze(text: str) -> str:
    return "".join(text.split())


def _shorten(text: str) -> str:
    cut = len(text) - _MAX_VALUE_CHARACTERS
    return text if cut <= 0 else f"{text[:_MAX_VALUE_CHARACTERS]}…[{cut} characters cut]"
