"""`scroll`: move the nearest scrollable element, and report where it is."""

from __future__ import annotations

from contextlib import suppress

from browser_shell.browser.devtools.client import DevToolsError
from browser_shell.browser.page.elements import Element
from browser_shell.browser.page.frames import Frame
from browser_shell.browser.page.page import Page
from browser_shell.browser.page.pointer import point_of
from browser_shell.browser.page.scripts import load_script
from browser_shell.core.calls import BrowserCommand
from browser_shell.core.errors import ActFailed
from browser_shell.core.json_values import JsonObject

_DEFAULT_PIXELS = 300
_DIRECTIONS = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}
_EDGES = {"up": "top", "down": "bottom", "left": "left edge", "right": "right edge"}
_MAX_FRAMES = 8
_DESCRIBE = "function () { return browserShell.fields.describeTag(this) }"
_IS_FRAME = "function () { return browserShell.fields.kindOf(this) === 'frame' }"
# The first listener of the window stores the event. The last one prevents the window from scrolling.
_WATCH_WHEEL = """function () {
  const state = (browserShell.wheel = { event: null, isOurs: false });
  const first = (event) => { state.event = event };
  const last = (event) => {
    state.isOurs = !event.defaultPrevented;
    event.preventDefault();
  };
  addEventListener("wheel", first, { once: true, passive: true, capture: true });
  addEventListener("wheel", last, { once: true, passive: false });
  setTimeout(() => removeEventListener("wheel", last), 1000);
}"""
_WHEEL_WAS_HANDLED = """async function () {
  const state = browserShell.wheel;
  await browserShell.until(() => state.event, 200);
  return Boolean(state.event?.defaultPrevented) && !state.isOurs;
}"""
_VISIBLE_AREA = """function () {
  const box = this.getBoundingClientRect();
  const width = Math.min(box.right, innerWidth) - Math.max(box.left, 0);
  const height = Math.min(box.bottom, innerHeight) - Math.max(box.top, 0);
  return browserShell.isVisible(this) ? Math.max(0, width) * Math.max(0, height) : 0;
}"""


async def scroll(page: Page, plan: BrowserCommand) -> JsonObject:
    """Run `scroll [DIRECTION] [PX] [-s SEL]`: scroll the nearest scrollable ancestor, or the page."""
    direction = plan.operands[0] if plan.operands else "down"
    pixels = int(plan.operands[1]) if len(plan.operands) > 1 else _DEFAULT_PIXELS
    right, down = (part * pixels for part in _DIRECTIONS[direction])
    selector = plan.options.get("selector")
    if selector is None:
        moved = await _scroll_page(page, right, down)
    else:
        moved = await _scroll_around(page, await page.element(selector), right, down)
    if moved is None:
        page.notes.append(f"nothing moved: {selector or 'the page'} has nothing to scroll {direction}")
        return {"scrolled": direction, "moved": 0, "position": 0, "max": 0, "of": "page"}
    if moved.get("byScript"):
        page.notes.append(f"the page scrolls {moved.get('of')} by itself; take a snapshot to see its position")
        return {"scrolled": direction, "of": moved.get("of")}
    if not moved.get("moved"):
        page.notes.append(f"nothing moved: {moved.get('of')} is already at its {_EDGES[direction]}")
    return {"scrolled": direction, **moved}


async def _scroll_page(page: Page, right: int, down: int) -> JsonObject | None:
    """Scroll the document, or its largest scrollable element, or its largest frame that can be scrolled."""
    top, *others = (await page.frames())[:_MAX_FRAMES]
    moved = await _scroll(page, top, None, right, down)
    if moved is not None:
        return moved
    owners = []
    for frame in others:
        with suppress(DevToolsError, ActFailed):  # The frame was removed in the meantime.
            owner = await page.owner(frame)
            if owner is not None and frame.parent_id == top.frame_id:
                owners.append((float(str(await owner.call(_VISIBLE_AREA))), frame, owner))
    for _, frame, owner in sorted(owners, key=lambda entry: -entry[0]):
        moved = await _scroll(page, frame, None, right, down)
        if moved is not None:
            return await _in_frame(moved, owner)
    return None


async def _scroll_around(page: Page, element: Element, right: int, down: int) -> JsonObject | None:
    """Scroll the nearest scrollable ancestor of an element, through the frames around it."""
    content = await page.content_frame(element) if await element.call(_IS_FRAME) else None
    moved = await _scroll(page, content, None, right, down) if content is not None else None
    if moved is not None:
        return await _in_frame(moved, element)
    moved = await _scroll_or_turn_wheel(page, element, right, down)
    if moved is not None:
        return moved
    while True:
        moved = await _scroll(page, element.frame, element, right, down)
        owner = await page.owner(element.frame)
        if owner is None:
            return moved
        if moved is not None:
            return await _in_frame(moved, owner)
        element = owner


async def _scroll_or_turn_wheel(page: Page, element: Element, right: int, down: int) -> JsonObject | None:
    """Scroll a scrollable ancestor other than the window. Without one, turn the mouse wheel over the element.

    Return the answer, or None when no script of the page handled the wheel event, as code editors and maps do.
    """
    result = await element.call(load_script("scroll"), right, down, False)
    if not isinstance(result, dict) or not result.get("byScript"):
        return result if isinstance(result, dict) else None
    try:
        point = await point_of(page, element)
    except ActFailed:
        return None
    await element.call(_WATCH_WHEEL)
    wheel: JsonObject = {"type": "mouseWheel", "x": point.x, "y": point.y, "deltaX": right, "deltaY": down}
    await page.send("Input.dispatchMouseEvent", wheel)
    return result if await element.call(_WHEEL_WAS_HANDLED) else None


async def _scroll(page: Page, frame: Frame, element: Element | None, right: int, down: int) -> JsonObject | None:
    moved = await page.call_function(frame, load_script("scroll"), right, down, True, this=element)
    return moved if isinstance(moved, dict) else None


async def _in_frame(moved: JsonObject, owner: Element) -> JsonObject:
    return {**moved, "of": str(await owner.call(_DESCRIBE))} if moved.get("of") == "page" else moved
