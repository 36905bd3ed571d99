"""Acts with the mouse: click, double click, hover and drag, with trusted input events.

The element is scrolled into view, its position is checked in every frame around it, and the events that reached it are
compared with the act.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import anyio

from browser_shell.browser.devtools.client import DevToolsError
from browser_shell.browser.page.elements import Element
from browser_shell.browser.page.page import Page
from browser_shell.core.calls import BrowserCommand
from browser_shell.core.errors import ActFailed, ErrorCode
from browser_shell.core.json_values import JsonObject

_STILL_MS = 1_000
"""How long to wait for a moving element to stop. After that it is clicked even if it still moves."""
_STEADY_MS = 500
"""How long to wait until an element has a size, for example while its picture loads, and until animations end."""
_FRAME_TRIES = 10
_FRAME_PAUSE_SECONDS = 0.03
_UNCOVERED_SECONDS = 0.8
"""How long to wait until a covered element is no longer covered."""
_DRAG_STEPS = 12
_DRAG_START_STEP = 2
_DRAG_START_SECONDS = 0.05
_DRAG_REST_SECONDS = 0.12
"""Pause before the button is released. SortableJS polls the pointer every 50 ms and drops at the last polled place."""
_SAME_PIXELS = 0.5
_IS_HOVERED = """function (ms) {
  const isHovered = () =>
    browserShell.events("mouseover").reached > 0 ||
    [this, ...(browserShell.viewOf(this).labels || [])].some((e) => browserShell.viewOf(e).matches(":hover"));
  return browserShell.until(isHovered, ms, true);
}"""
_HOVER_ATTEMPTS = 2
_HOVER_MS = 300
"""Time until the page shows an element as hovered after the mouse has moved there."""
_TAKES_PRESS_ONLY = "function () { return browserShell.viewOf(this).matches('select, iframe, frame, object, embed') }"


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A position in the viewport of the tab, in CSS pixels."""

    x: float
    y: float

    def is_close_to(self, other: Point) -> bool:
        return abs(self.x - other.x) <= _SAME_PIXELS and abs(self.y - other.y) <= _SAME_PIXELS


async def click(page: Page, plan: BrowserCommand) -> JsonObject:
    """Run `click SEL`, `click --at X,Y SEL` or `click --at X,Y`."""
    return await _click(page, plan, clicks=1)


async def dblclick(page: Page, plan: BrowserCommand) -> JsonObject:
    """Run `dblclick SEL`, `dblclick --at X,Y SEL` or `dblclick --at X,Y`: two full clicks."""
    return await _click(page, plan, clicks=2)


async def _click(page: Page, plan: BrowserCommand, *, clicks: int) -> JsonObject:
    if not plan.operands:
        point = await window_point(page, plan.options["at"])
        receiver = await _describe_at(page, point)
        await _move(page, point)
        await _press(page, point, clicks=clicks)
        return {"clicked": plan.options["at"], "on": receiver}
    element = await page.element(plan.operands[0])
    await click_element(page, element, clicks=clicks, offset=_offset(plan))
    return {"clicked": plan.operands[0]}


async def hover(page: Page, plan: BrowserCommand) -> JsonObject:
    """Run `hover SEL`, `hover --at X,Y SEL` or `hover --at X,Y`."""
    if not plan.operands:
        point = await window_point(page, plan.options["at"])
        await _move(page, point)
        return {"hovered": plan.options["at"], "on": await _describe_at(page, point)}
    element = await page.element(plan.operands[0])
    for _ in range(_HOVER_ATTEMPTS):
        # The page may move the element away before the mouse arrives.
        point = await point_of(page, element, offset=_offset(plan))
        await element.call("function () { browserShell.arm(this) }")
        await _move(page, point)
        if await element.call(_IS_HOVERED, _HOVER_MS):
            return {"hovered": plan.operands[0]}
    raise ActFailed(
        ErrorCode.COMMAND_FAILED,
        f"the mouse is at {element.label}, but the page does not show it as hovered; it may have moved",
        advice="Take a snapshot and repeat the command.",
    )


async def drag(page: Page, plan: BrowserCommand) -> JsonObject:
    """Run `drag SEL SEL` or `drag --from X,Y --to X,Y`."""
    if not plan.operands:
        source, target = plan.options["from"], plan.options["to"]
        await _drag(page, await window_point(page, source), await window_point(page, target))
        return {"dragged": source, "to": target}
    first, second = [await page.element(selector) for selector in plan.operands]
    await point_of(page, second)
    start = await point_of(page, first)
    # Scrolling to the first element may have moved the second one, so its position is read again without scrolling.
    end = await _point_without_scrolling(page, second)
    await first.call("function () { browserShell.arm(this) }")
    await _drag(page, start, end)
    await _verify_drag(first)
    return {"dragged": plan.operands[0], "to": plan.operands[1]}


async def click_element(
    page: Page, element: Element, *, clicks: int = 1, offset: tuple[int, int] | None = None
) -> None:
    """Click an element, and check that the page received the click on it.

    Raises: ActFailed when the element cannot be clicked, or when another one received the click.
    """
    point = await point_of(page, element, offset=offset)
    await _move(page, point)
    # The mouse move may have opened or moved something.
    again = await point_of(page, element, offset=offset, scroll=False)
    if not again.is_close_to(point):
        await element.call("function (ms) { return browserShell.waitUntilStill(this, ms) }", _STILL_MS)
        await _move(page, await point_of(page, element, offset=offset))
        # The page may move the element on every mouse move. The old position may then be that of another element.
        again = await point_of(page, element, offset=offset, scroll=False)
    await element.call("function () { browserShell.arm(this) }")
    await _press(page, again, clicks=clicks)
    await _verify_click(element, clicks=clicks)


async def point_of(
    page: Page, element: Element, *, offset: tuple[int, int] | None = None, scroll: bool = True
) -> Point:
    """Return a point of the viewport at which the mouse reaches the element. Scrolls it into view first.

    Raises: ActFailed when the element is hidden, disabled, covered or gone.
    """
    if scroll:
        await _scroll_into_view(page, element)
    try:
        return await _locate_steady(page, element, offset)
    except ActFailed as problem:
        if not scroll or problem.code is not ErrorCode.ELEMENT_COVERED:
            raise
        # For example a fixed header covers the place that the browser has scrolled the element to.
        for block in ("center", "end", "start"):
            await element.call(
                f"function () {{ browserShell.viewOf(this).scrollIntoView({{block: '{block}', behavior: 'instant'}}) }}"
            )
            with suppress(ActFailed):
                return await _locate_steady(page, element, offset)
        return await _locate_when_uncovered(page, element, offset)


async def _locate_when_uncovered(page: Page, element: Element, offset: tuple[int, int] | None) -> Point:
    """Locate an element that is covered for a short time, for example by a list that closes."""
    end = anyio.current_time() + _UNCOVERED_SECONDS
    while True:
        try:
            return await _locate_steady(page, element, offset)
        except ActFailed as problem:
            if problem.code is not ErrorCode.ELEMENT_COVERED or anyio.current_time() >= end:
                raise
        await anyio.sleep(_FRAME_PAUSE_SECONDS)


async def _locate_steady(page: Page, element: Element, offset: tuple[int, int] | None) -> Point:
    """Locate an element after it stops moving. The documents around a frame scroll later than the frame itself."""
    await element.call("function (ms) { return browserShell.untilSteady(this, ms) }", _STEADY_MS)
    point = await _locate(page, element, offset)
    for _ in range(_FRAME_TRIES if element.frame.parent_id else 0):
        await anyio.sleep(_FRAME_PAUSE_SECONDS)
        before, point = point, await _locate(page, element, offset)
        if point.is_close_to(before):
            break
    return point


async def _scroll_into_view(page: Page, element: Element) -> None:
    try:
        await page.send(
            "DOM.scrollIntoViewIfNeeded", {"objectId": element.object_id}, session=element.frame.cdp_session
        )
    except DevToolsError:
        return  # The element has no box or is gone. `_locate` reports which.


async def _point_without_scrolling(page: Page, element: Element) -> Point:
    try:
        return await _locate(page, element, None)
    except ActFailed as failure:
        raise ActFailed(
            failure.code,
            f"{failure.public_message}; both elements of a drag must be visible at the same time",
            advice="Scroll so that both are visible, or drag with --from X,Y --to X,Y.",
        ) from failure


async def _locate(page: Page, element: Element, offset: tuple[int, int] | None) -> Point:
    function = "function (offset) { return browserShell.locate(this, offset) }"
    found = await element.call(function, list(offset) if offset else None)
    frame = element.frame
    while True:
        if not isinstance(found, dict) or "problem" in found:
            raise _unreachable(element, found if isinstance(found, dict) else {})
        point = Point(x=float(str(found["x"])), y=float(str(found["y"])))
        owner = await page.owner(frame)
        if owner is None:
            return point
        found = await owner.call("function (x, y) { return browserShell.outOfFrame(this, x, y) }", point.x, point.y)
        frame = owner.frame


def _unreachable(element: Element, found: JsonObject) -> ActFailed:
    name = element.label
    match found.get("problem"):
        case "gone":
            return ActFailed(ErrorCode.ELEMENT_GONE, f"{name} is no longer on the page")
        case "disabled":
            return ActFailed(
                ErrorCode.COMMAND_FAILED,
                f"{name} is disabled",
                advice="First do what enables it, for example fill in the required fields; then repeat the command.",
            )
        case "covered":
            return ActFailed(ErrorCode.ELEMENT_COVERED, f"{name} is covered by {found.get('by')}")
        case "offset":
            size = f"{found.get('width')}x{found.get('height')}"
            return ActFailed(
                ErrorCode.COMMAND_FAILED,
                f"{name} has only {size} pixels, and --at lies outside of it",
                advice=f"Give an offset within {size} pixels from the top left corner of the element.",
            )
        case "outside":
            return ActFailed(
                ErrorCode.COMMAND_FAILED,
                f"{name} lies outside of the visible part of the page and cannot be scrolled into view",
                advice="First do what moves it into view, for example open the menu that contains it.",
            )
        case _:
            return ActFailed(
                ErrorCode.COMMAND_FAILED,
                f"{name} is not visible",
                advice="First do what shows it, for example open its menu or section; then take a new snapshot.",
            )


async def window_point(page: Page, text: str) -> Point:
    """Return the point "X,Y" of the window. Raises: ActFailed when it lies outside of the page's viewport."""
    x, y = (int(part) for part in text.split(","))
    size = await page.call_function(await page.top_frame(), "function () { return [innerWidth, innerHeight] }")
    width, height = (int(str(part)) for part in size) if isinstance(size, list) else (0, 0)
    if x >= width or y >= height:
        raise ActFailed(
            ErrorCode.COMMAND_FAILED,
            f"{text} lies outside of the page, which shows {width}x{height} pixels",
            advice="Take a screenshot and use coordinates inside of it.",
        )
    return Point(x=x, y=y)


def _offset(plan: BrowserCommand) -> tuple[int, int] | None:
    if "at" not in plan.options:
        return None
    x, y = plan.options["at"].split(",")
    return int(x), int(y)


async def _describe_at(page: Page, point: Point) -> str:
    function = "function (x, y) { return browserShell.describe(browserShell.elementAt(x, y)) }"
    try:
        return str(await page.call_function(await page.top_frame(), function, point.x, point.y))
    except DevToolsError:
        return "a page that was replaced"


MouseEvent = Literal["mouseMoved", "mousePressed", "mouseReleased"]


def _mouse(kind: MouseEvent, point: Point, *, count: int = 0, pressed: bool = False) -> JsonObject:
    has_button = kind != "mouseMoved" or pressed
    return {
        "type": kind,
        "x": point.x,
        "y": point.y,
        "button": "left" if has_button else "none",
        "buttons": 1 if kind == "mousePressed" or pressed else 0,
        "clickCount": count,
        "pointerType": "mouse",
    }


async def _move(page: Page, point: Point, *, pressed: bool = False) -> None:
    await page.send("Input.dispatchMouseEvent", _mouse("mouseMoved", point, pressed=pressed))


async def _press(page: Page, point: Point, *, clicks: int) -> None:
    """Press and release the left button. The page handles the events in order, so only the last one is waited for."""
    for count in range(1, clicks + 1):
        page.post("Input.dispatchMouseEvent", _mouse("mousePressed", point, count=count))
        if count < clicks:
            page.post("Input.dispatchMouseEvent", _mouse("mouseReleased", point, count=count))
    try:
        await page.send("Input.dispatchMouseEvent", _mouse("mouseReleased", point, count=clicks))
    except DevToolsError:
        return  # The press closed or replaced the page.


async def _verify_click(element: Element, *, clicks: int) -> None:
    """Compare the mouse events that the page received with the clicks that were sent. Raises: ActFailed."""
    try:
        if await element.call(_TAKES_PRESS_ONLY):
            return  # The menu of a select, or the document in a frame, receives the press. No click event is expected.
        names = ["mousedown", "mouseup", "click", "dblclick", "pointerdown", "pointerup"]
        seen = await element.call("function (...names) { return names.map((n) => browserShell.events(n)) }", *names)
        connected = await element.call("function () { return browserShell.viewOf(this).isConnected }")
        acts_on_press = await element.call("function () { return browserShell.actsOnPress() }")
    except DevToolsError:
        return  # The click replaced the document.
    entries = [entry if isinstance(entry, dict) else {} for entry in seen] if isinstance(seen, list) else [{}] * 6
    down, up, click, double, pointer_down, pointer_up = entries
    # A page that handles pointer events may suppress the mouse events (Pointer Events §11), as the menus of Lumino do.
    down, up = (down if down.get("count") else pointer_down), (up if up.get("count") else pointer_up)
    # A page that acts on the press or the release may replace the element, and then no click event follows. It may also
    # open a list over the element (Material UI), or close the list around it (Gradio): the release is elsewhere then.
    has_acted = down.get("reached") and (
        not connected or (acts_on_press and not up.get("reached")) or (up.get("reached") and not click.get("count"))
    )
    if (double if clicks > 1 else click).get("reached") or (clicks == 1 and has_acted):
        return
    receiver = (click if click.get("count") else down).get("on") or "no element"
    if down.get("reached") and not connected:
        raise ActFailed(
            ErrorCode.ELEMENT_GONE,
            f"the first click removed {element.label}; {receiver} received the second",
            advice="Take a new snapshot: the page may have used both clicks, or may need one more.",
        )
    if down.get("reached"):
        message = (
            f"{element.label} was pressed, but moved away before the button was released; {receiver} got the click"
        )
    else:
        message = f"the click did not reach {element.label}; {receiver} received it"
    raise ActFailed(ErrorCode.ELEMENT_COVERED, message, advice="Take a new snapshot and repeat the command.")


async def _verify_drag(element: Element) -> None:
    """Check that the drag began on the element. Raises: ActFailed."""
    try:
        # A page that handles pointer events may suppress the mouse events.
        seen = await element.call("function () { return browserShell.events('pointerdown') }")
    except DevToolsError:
        return  # The drop replaced the document.
    if isinstance(seen, dict) and not seen.get("reached"):
        receiver = seen.get("on") or "no element"
        raise ActFailed(
            ErrorCode.ELEMENT_COVERED,
            f"the drag did not begin on {element.label}; {receiver} received the mouse press",
            advice="Take a new snapshot and repeat the command.",
        )


async def _drag(page: Page, start: Point, end: Point) -> None:
    """Drag from one point to another, with the page's own drag and drop when the element has it."""
    page.dragged = None
    await page.send("Input.setInterceptDrags", {"enabled": True})
    try:
        await _move(page, start)
        await page.send("Input.dispatchMouseEvent", _mouse("mousePressed", start, count=1))
        for step in range(1, _DRAG_STEPS + 1):
            share = step / _DRAG_STEPS
            point = Point(x=start.x + (end.x - start.x) * share, y=start.y + (end.y - start.y) * share)
            await _move(page, point, pressed=True)
            if step == _DRAG_START_STEP:
                # Chromium reports a drag with some delay after the mouse has moved far enough.
                await page.wait_for_event(seconds=_DRAG_START_SECONDS)
            if page.dragged is not None:
                break
        else:
            await anyio.sleep(_DRAG_REST_SECONDS)
        if page.dragged is not None:
            await _drop(page, page.dragged, end)
        await page.send("Input.dispatchMouseEvent", _mouse("mouseReleased", end, count=1))
    finally:
        page.post("Input.setInterceptDrags", {"enabled": False})


async def _drop(page: Page, data: JsonObject, point: Point) -> None:
    """Drop data that Chromium would have dragged through the window system."""
    for kind in ("dragEnter", "dragOver", "dragOver", "drop"):
        await page.send("Input.dispatchDragEvent", {"type": kind, "x": point.x, "y": point.y, "data": data})
