"""The command `screenshot`: the window, the whole page or one element, with or without numbers on the controls."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
import anyio.to_thread

from browser_shell.browser.devtools.client import DevToolsError
from browser_shell.browser.page.elements import Element
from browser_shell.browser.page.frames import Frame
from browser_shell.browser.page.look_capture import capture_tree
from browser_shell.browser.page.look_items import Item, Kind
from browser_shell.browser.page.look_outline import View
from browser_shell.browser.page.look_selection import select_items
from browser_shell.browser.page.look_tree import Box
from browser_shell.browser.page.looks import ref_assigner
from browser_shell.browser.page.page import Page
from browser_shell.browser.page.scripts import load_script
from browser_shell.core.calls import Attachment, BrowserCommand
from browser_shell.core.errors import ActFailed, ErrorCode, OutputTooLarge
from browser_shell.core.json_values import JsonObject, JsonValue

_MAX_PIXELS = 16_384
"""Width or height of a picture: the largest texture of most graphics drivers. Larger pages are cut."""
_MAX_ANNOTATIONS = 150
_REMOVE_SECONDS = 2.0
_EXTENSIONS = {"jpeg": "jpg", "png": "png"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Area:
    """A rectangle of the top document, in CSS pixels."""

    left: float
    top: float
    width: float
    height: float
    is_visible: bool
    """Whether it lies within the window."""

    def overlaps(self, box: Box) -> bool:
        left, top, width, height = box
        return (
            left < self.left + self.width
            and left + width > self.left
            and top < self.top + self.height
            and top + height > self.top
        )


async def screenshot(page: Page, plan: BrowserCommand) -> JsonObject:
    """Run `screenshot`. The picture is an attachment.

    Raises: ActFailed when the element is missing or hidden, OutputTooLarge, BrowserUnavailable, DevToolsError.
    """
    area = await _area(page, plan)
    data: JsonObject = {}
    if "annotate" in plan.options:
        controls = await _controls(page, area)
        data["annotations"] = [_annotation(page, item, box, area) for item, box in controls]
        async with _overlay(page, data["annotations"], area):
            content = await _capture(page, area)
    else:
        content = await _capture(page, area)
    mime_type = f"image/{page.output.screenshot_format}"
    name = f"screenshot.{_EXTENSIONS[page.output.screenshot_format]}"
    page.attachments.append(Attachment(mime_type=mime_type, content=content, name=name))
    return {**data, "attached": mime_type, "bytes": len(content)}


async def _area(page: Page, plan: BrowserCommand) -> _Area:
    if plan.operands:
        return await _area_of(page, await page.element(plan.operands[0]))
    metrics = await page.send("Page.getLayoutMetrics")
    view = _rectangle(metrics.get("cssVisualViewport"), "pageX", "pageY", "clientWidth", "clientHeight")
    if "full" not in plan.options:
        return _Area(left=view[0], top=view[1], width=view[2], height=view[3], is_visible=True)
    left, top, width, height = _rectangle(metrics.get("cssContentSize"), "x", "y", "width", "height")
    if max(width, height) > _MAX_PIXELS:
        page.notes.append(f"the page has {width:.0f}x{height:.0f} pixels; the picture shows the first {_MAX_PIXELS}")
    return _Area(left=left, top=top, width=min(width, _MAX_PIXELS), height=min(height, _MAX_PIXELS), is_visible=False)


async def _area_of(page: Page, element: Element) -> _Area:
    """Scroll an element into view and return its place. Raises: ActFailed when it has no box."""
    try:
        await page.send(
            "DOM.scrollIntoViewIfNeeded", {"objectId": element.object_id}, session=element.frame.cdp_session
        )
    except DevToolsError as cause:
        raise _hidden(element) from cause
    found = await element.call(load_script("element_box"))
    left, top, width, height = _numbers(found, 4)
    if width < 1 or height < 1:
        raise _hidden(element)
    offset = await _offset_of(page, element.frame)
    metrics = await page.send("Page.getLayoutMetrics")
    view = _rectangle(metrics.get("cssVisualViewport"), "pageX", "pageY", "clientWidth", "clientHeight")
    left, top = left + offset[0], top + offset[1]
    is_visible = left >= 0 and top >= 0 and left + width <= view[2] and top + height <= view[3]
    return _Area(
        left=left + view[0],
        top=top + view[1],
        width=min(width, _MAX_PIXELS),
        height=min(height, _MAX_PIXELS),
        is_visible=is_visible,
    )


async def _offset_of(page: Page, frame: Frame) -> tuple[float, float]:
    """Return the place of a frame's viewport in the viewport of the tab. Raises: ActFailed."""
    left = top = 0.0
    while (owner := await page.owner(frame)) is not None:
        x, y = _numbers(await owner.call(load_script("frame_offset")), 2)
        left, top = left + x, top + y
        frame = owner.frame
    return left, top


async def _capture(page: Page, area: _Area) -> bytes:
    output = page.output
    params: JsonObject = {
        "format": output.screenshot_format,
        "clip": {"x": area.left, "y": area.top, "width": area.width, "height": area.height, "scale": 1},
        # Otherwise Chromium resizes the page for the picture, which the page can notice.
        "captureBeyondViewport": not area.is_visible,
    }
    if output.screenshot_format == "jpeg":
        params["quality"] = output.screenshot_quality
    reply = await page.send("Page.captureScreenshot", params)
    encoded = str(reply.get("data", ""))
    if len(encoded) * 3 // 4 > output.max_image_bytes + 2:
        raise OutputTooLarge(
            f"the picture has {len(encoded) * 3 // 4} bytes; at most {output.max_image_bytes} are returned"
        )
    return await anyio.to_thread.run_sync(base64.b64decode, encoded)


async def _controls(page: Page, area: _Area) -> list[tuple[Item, Box]]:
    """Return the controls inside an area, with their boxes in the top document."""
    tree = await capture_tree(page)
    items = await anyio.to_thread.run_sync(select_items, tree, View(interactive=True, grouped=False))
    top = await page.top_frame()
    offsets: dict[str, tuple[float, float]] = {top.frame_id: (0.0, 0.0)}
    found: list[tuple[Item, Box]] = []
    for item in items:
        box = item.target.box
        if item.kind is not Kind.CONTROL or box is None or len(found) == _MAX_ANNOTATIONS:
            continue
        frame = item.target.frame
        if frame.frame_id not in offsets:
            offsets[frame.frame_id] = await _document_offset(page, frame)
        x, y = offsets[frame.frame_id]
        moved = (box[0] + x, box[1] + y, box[2], box[3])
        if area.overlaps(moved):
            found.append((item, moved))
    return found


async def _document_offset(page: Page, frame: Frame) -> tuple[float, float]:
    """Return the place of a frame's document in the top document; far outside if the frame is gone."""
    try:
        left, top = await _offset_of(page, frame)
        inner = _numbers(await page.call_function(frame, "function () { return [scrollX, scrollY] }"), 2)
        outer = _numbers(
            await page.call_function(await page.top_frame(), "function () { return [scrollX, scrollY] }"), 2
        )
    except (ActFailed, DevToolsError):
        return float("-inf"), float("-inf")
    return left + outer[0] - inner[0], top + outer[1] - inner[1]


def _annotation(page: Page, item: Item, box: Box, area: _Area) -> JsonObject:
    """Describe a control. Its box is relative to the picture."""
    ref = ref_assigner(page)(item)
    left, top, width, height = box
    place: JsonObject = {
        "x": round(left - area.left),
        "y": round(top - area.top),
        "width": round(width),
        "height": round(height),
    }
    annotation: JsonObject = {"box": place, "number": int(ref.removeprefix("e")), "ref": ref, "role": item.role}
    return {**annotation, "name": item.name[:100]} if item.name else annotation


@asynccontextmanager
async def _overlay(page: Page, annotations: JsonValue, area: _Area) -> AsyncIterator[None]:
    """Draw the refs over the page while the block runs. The drawing is in a closed shadow root and takes no clicks."""
    top = await page.top_frame()
    overlay = await page.element_from(
        top, load_script("annotate"), annotations, area.left, area.top, label="the annotations"
    )
    try:
        yield
    finally:
        if overlay is not None:
            with anyio.move_on_after(_REMOVE_SECONDS, shield=True):
                await overlay.call("function () { this.remove() }")


def _hidden(element: Element) -> ActFailed:
    return ActFailed(
        ErrorCode.COMMAND_FAILED,
        f"{element.label} is not visible, so there is no picture of it",
        advice="First do what shows it, for example open its menu or section.",
    )


def _rectangle(value: JsonValue, *keys: str) -> Sequence[float]:
    found = value if isinstance(value, dict) else {}
    return _numbers([found.get(key) for key in keys], len(keys))


def _numbers(value: JsonValue, count: int) -> Sequence[float]:
    """Return a list of numbers. Anything else counts as 0."""
    found = value if isinstance(value, list) else []
    numbers = [float(item) if isinstance(item, int | float) else 0.0 for item in found[:count]]
    return [*numbers, *[0.0] * (count - len(numbers))]
