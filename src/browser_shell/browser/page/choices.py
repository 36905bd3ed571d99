"""Commands that choose: `check`, `uncheck` and `select`. Each ends in the state that it names, or fails."""

from __future__ import annotations

from browser_shell.browser.devtools.client import DevToolsError
from browser_shell.browser.page.elements import Element
from browser_shell.browser.page.field_errors import field_error, short
from browser_shell.browser.page.keyboard import SPACE, chord_requests, send_input
from browser_shell.browser.page.page import Page
from browser_shell.browser.page.pointer import click_element, point_of
from browser_shell.core.calls import BrowserCommand
from browser_shell.core.errors import ActFailed, ErrorCode
from browser_shell.core.json_values import JsonObject, JsonValue

_MAX_LABELS = 3

_CHECKABLE = "function () { return browserShell.fields.checkable(this) }"
_BEGIN_CHECK = "function () { return browserShell.fields.beginCheck(this) }"
_LABEL_OF = "function (index) { return browserShell.fields.labelOf(this, index) }"
_SAFE_POINT = "function () { return browserShell.fields.safePoint(this) }"
_FOCUS = "function () { return browserShell.fields.focus(this) }"
_AWAIT_CHECKED = "function (wanted) { return browserShell.fields.awaitChecked(this, wanted) }"
_SELECT = "function (values) { return browserShell.fields.select(this, values) }"

_INSTEAD_OF_SELECT = {
    "combobox": "Use click {0}, take a snapshot, and click the option in it.",
    "checkable": "Use check {0} or uncheck {0}.",
    "text": "Use fill {0} TEXT.",
    "other": "Take a snapshot (snapshot -i) and use the ref of a combobox or list.",
}


async def check(page: Page, plan: BrowserCommand) -> JsonObject:
    """Run `check SEL`. Raises: ActFailed when the box does not end up checked."""
    await _set_checked(page, plan.operands[0], wanted=True)
    return {"checked": plan.operands[0]}


async def uncheck(page: Page, plan: BrowserCommand) -> JsonObject:
    """Run `uncheck SEL`. Raises: ActFailed when the box does not end up unchecked."""
    await _set_checked(page, plan.operands[0], wanted=False)
    return {"unchecked": plan.operands[0]}


async def select(page: Page, plan: BrowserCommand) -> JsonObject:
    """Run `select SEL VALUE...`: select the options with these values or labels, and no others. Raises: ActFailed."""
    selector, *values = plan.operands
    element = await page.element(selector)
    result = await element.act(_SELECT, list(values))
    found = result if isinstance(result, dict) else {}
    if "problem" in found:
        raise _select_error(selector, found)
    if not found.get("holds"):
        raise ActFailed(
            ErrorCode.COMMAND_FAILED,
            f"the page changed the selection of {selector} again; selected now: {_listed(found.get('labels'))}",
            advice="Take a snapshot; another field may decide which options are possible.",
        )
    return {"selected": found.get("selected")}


async def _set_checked(page: Page, selector: str, *, wanted: bool) -> None:
    box = await _box_of(page, selector)
    found = await box.call(_BEGIN_CHECK)
    facts = found if isinstance(found, dict) else {}
    if "problem" in facts:
        raise field_error(selector, facts)
    state = facts.get("state")
    if state is wanted:
        return
    if facts.get("radio") and not wanted:
        raise ActFailed(
            ErrorCode.COMMAND_FAILED,
            f"{selector} is a radio button, which cannot be unchecked",
            advice="Use check on another button of its group.",
        )
    # The first click on a mixed check box may check or uncheck it.
    for _ in range(2 if state == "mixed" else 1):
        await _click(page, box, concealed=bool(facts.get("concealed")), transparent=bool(facts.get("transparent")))
        state = await _state_after_click(page, box, selector, wanted=wanted)
        if state is wanted:
            return
    raise ActFailed(
        ErrorCode.COMMAND_FAILED,
        f"{selector} was clicked and is still {'not checked' if wanted else 'checked'}; the page did not allow it",
        advice="Take a snapshot; a message or another field may say what is required first.",
    )


async def _box_of(page: Page, selector: str) -> Element:
    element = await page.element(selector)
    box = await page.element_from(element.frame, _CHECKABLE, this=element, label=selector)
    if box is None:
        raise ActFailed(
            ErrorCode.NOT_EDITABLE,
            f"{selector} is not a check box, radio button or switch",
            advice=f"Use the ref of the check box itself (snapshot -i lists it), or click {selector}.",
        )
    return box


async def _click(page: Page, box: Element, *, concealed: bool, transparent: bool) -> None:
    """Click a check box or one of its labels, or press Space in a check box that is not visible.

    Raises: ActFailed when none of these is possible.
    """
    problem = ActFailed(ErrorCode.COMMAND_FAILED, f"{box.label} is not visible, and it has no visible label")
    if not concealed:
        try:
            await point_of(page, box)
        except ActFailed as unreachable:
            problem = unreachable
        else:
            return await click_element(page, box)
    for index in range(_MAX_LABELS):
        label = await page.element_from(box.frame, _LABEL_OF, index, this=box, label=box.label)
        point = await label.call(_SAFE_POINT) if label is not None else None
        if label is None:
            break
        if isinstance(point, list):
            right, down = (int(str(part)) for part in point)
            return await click_element(page, label, offset=(right, down))
    if concealed or transparent:
        focused = await box.call(_FOCUS)
        if isinstance(focused, dict) and "problem" not in focused:
            return await send_input(page, chord_requests(SPACE))
    raise problem


async def _state_after_click(page: Page, box: Element, selector: str, *, wanted: bool) -> JsonValue:
    """Return true, false or "mixed". If the page replaced the node, a selector is resolved again and a ref is not.

    Raises: ActFailed when the state is not known.
    """
    try:
        found = await box.call(_AWAIT_CHECKED, wanted)
        if isinstance(found, dict) and found.get("connected"):
            return found.get("state")
        if not selector.startswith("@"):
            found = await (await _box_of(page, selector)).call(_AWAIT_CHECKED, wanted)
            return found.get("state") if isinstance(found, dict) else None
    except DevToolsError as cause:
        raise ActFailed(
            ErrorCode.PAGE_CHANGED,
            f"{selector} was clicked, and the page was replaced",
            advice="Take a new snapshot and check the state of the box.",
        ) from cause
    raise ActFailed(
        ErrorCode.ELEMENT_GONE,
        f"{selector} was clicked, and the page drew it again as another element",
        advice="Take a new snapshot and check the state of the box.",
    )


def _select_error(selector: str, found: JsonObject) -> ActFailed:
    match found.get("problem"):
        case "options":
            options, count = found.get("shown"), int(str(found.get("count", 0)))
            more = count - len(options) if isinstance(options, list) else 0
            return ActFailed(
                ErrorCode.COMMAND_FAILED,
                f"{selector} has no option {_listed(found.get('missing'))}; nothing was selected",
                advice=f"Use one of: {_listed(options)}" + (f" and {more} more." if more else "."),
            )
        case "option disabled":
            return ActFailed(
                ErrorCode.COMMAND_FAILED,
                f"the option {short(str(found.get('label') or found.get('value')))} of {selector} is disabled",
                advice="Choose another option, or do first what enables it.",
            )
        case "single":
            return ActFailed(
                ErrorCode.COMMAND_FAILED,
                f"{selector} takes one option only; nothing was selected",
                advice="Repeat the command with one value.",
            )
        case "not a select":
            return ActFailed(
                ErrorCode.NOT_EDITABLE,
                f"{selector} is not a <select> element",
                advice=_INSTEAD_OF_SELECT.get(str(found.get("kind")), _INSTEAD_OF_SELECT["other"]).format(selector),
            )
        case _:
            return field_error(selector, found)


def _listed(values: JsonValue) -> str:
    return ", ".join(short(str(value)) for value in values) if isinstance(values, list) and values else "none"
