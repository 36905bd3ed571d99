"""`scroll`: move the nearest scrollable element, and report where it is."""

from __future__ import annotations

from contextlib import suppress

from browser_shell.browser.devtools.client import DevToolsError
from browser_shell.browser.page.elements import Element
from browser_shell.browser.page.frames import Frame
from browser_shell.browser.page.page import Page
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
_VISIBLE_AREA = """function () {
  const box = this.getBoundingClientRect();
  const width = Math.min(box.right, innerWidth) - Math.max(box.left, 0);
  const height = Math.min(box.bottom, innerHeight) - Math.max(box.top, 0);
  return browserShell.isVisible(this) ? Math.max(0, width) * Math.max(0, height) : 0;
}"""


async def scroll(page: Page, plan: BrowserCommand) -> JsonObject:
    """Run `scroll [DIRECTION] [PX] [-s SEL]`: scroll what contains the element, or the page."""
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
    while True:
        moved = await _scroll(page, element.frame, element, right, down)
        owner = await page.owner(element.frame)
        if owner is None:
            return moved
        if moved is not None:
            return await _in_frame(moved, owner)
        element = owner


async def _scroll(page: Page, frame: Frame, element: Element | None, right: int, down: int) -> JsonObject | None:
    moved = await page.call_function(frame, load_script("scroll"), right, down, this=element)
    return moved if isinstance(moved, dict) else None


async def _in_frame(moved: JsonObject, owner: Element) -> JsonObject:
    return {**moved, "of": str(await owner.call(_DESCRIBE))} if moved.get("of") == "page" else moved
