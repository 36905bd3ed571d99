"""Find the element that a selector names: a ref, CSS, XPath, a text, or a role with a name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from browser_shell.browser.devtools.client import DevToolsError
from browser_shell.browser.page.elements import Element
from browser_shell.browser.page.frames import Frame
from browser_shell.browser.page.scripts import load_script
from browser_shell.core.errors import ActFailed, ErrorCode
from browser_shell.core.json_values import JsonObject

if TYPE_CHECKING:
    from browser_shell.browser.page.page import Page

_ROLE = re.compile(r"role=([a-z]+)(?:\s+name=(.+))?", re.DOTALL)
_CHROMIUM_ROLES = {
    "img": ("image",),
    "textbox": ("textbox", "searchbox", "spinbutton"),
    "combobox": ("combobox", "ComboBoxMenuButton", "ComboBoxSelect"),
    "listitem": ("listitem",),
    "text": ("StaticText",),
    "iframe": ("Iframe", "IframePresentational"),
}
"""ARIA roles whose nodes have other role names in Chromium's accessibility tree."""
_MAX_CANDIDATES = 20


async def find_element(page: Page, selector: str) -> Element:
    """Return the element that a selector names, the first visible one in document order, frames included.

    Raises: ActFailed when nothing matches, or when a ref is not valid any more.
    """
    if selector.startswith("@"):
        return await page.element_of_ref(selector)
    for frame in await page.frames():
        try:
            element = await _find_in(page, frame, selector)
        except DevToolsError:
            continue  # The document of the frame is being replaced.
        if element is not None:
            return element
    raise await _not_found(page, selector)


async def count_elements(page: Page, selector: str) -> int:
    """Return how many elements a selector matches in all frames; a ref matches one or none."""
    if selector.startswith("@"):
        try:
            await page.element_of_ref(selector)
        except ActFailed as problem:
            if problem.code in (ErrorCode.ELEMENT_GONE, ErrorCode.PAGE_CHANGED):
                return 0
            raise
        return 1
    total = 0
    for frame in await page.frames():
        role = _ROLE.fullmatch(selector)
        if role is not None:
            total += len(await _nodes_by_role(page, frame, role[1], role[2]))
        else:
            count = await page.call_function(frame, load_script("find"), *_kind(selector), "count")
            total += int(str(count))
    return total


async def _find_in(page: Page, frame: Frame, selector: str) -> Element | None:
    role = _ROLE.fullmatch(selector)
    if role is None:
        return await page.element_from(frame, load_script("find"), *_kind(selector), "first", label=selector)
    first: Element | None = None
    for backend_node_id in (await _nodes_by_role(page, frame, role[1], role[2]))[:_MAX_CANDIDATES]:
        element = await page.element_of(frame, backend_node_id, selector)
        first = first or element
        if await element.call("function () { return browserShell.isVisible(this) }"):
            return element
    return first


def _kind(selector: str) -> tuple[str, str]:
    if selector.startswith(("//", "(")):
        return "xpath", selector
    kind, separator, rest = selector.partition("=")
    return (kind, rest) if separator and kind in ("xpath", "text") else ("css", selector)


async def _nodes_by_role(page: Page, frame: Frame, role: str, name: str | None) -> list[int]:
    """Return backend node ids with this role: those with exactly this name, else those that contain it."""
    # `Accessibility.queryAXTree` never answers for a frame of another origin that is scrolled out of view.
    reply = await page.send("Accessibility.getFullAXTree", {"frameId": frame.frame_id}, session=frame.cdp_session)
    found, roles = reply.get("nodes"), _CHROMIUM_ROLES.get(role, (role,))
    nodes = [node for node in found if isinstance(node, dict)] if isinstance(found, list) else []
    nodes = [node for node in nodes if _text(node, "role") in roles]
    visible_nodes = [
        node for node in nodes if not node.get("ignored") and isinstance(node.get("backendDOMNodeId"), int)
    ]
    if name is not None:
        wanted = " ".join(name.split())
        exact = [node for node in visible_nodes if _text(node, "name") == wanted]
        visible_nodes = exact or [node for node in visible_nodes if wanted.casefold() in _text(node, "name").casefold()]
    return [int(str(node["backendDOMNodeId"])) for node in visible_nodes]


def _text(node: JsonObject, key: str) -> str:
    value = node.get(key)
    return " ".join(str(value.get("value", "")).split()) if isinstance(value, dict) else ""


async def _not_found(page: Page, selector: str) -> ActFailed:
    state = await page.call_function(await page.top_frame(), "function () { return document.readyState }")
    if state == "loading":
        return ActFailed(ErrorCode.PAGE_LOADING, f"{selector} matches nothing yet, and the page is still loading")
    return ActFailed(
        ErrorCode.ELEMENT_NOT_FOUND,
        f"{selector} matches nothing on this page",
        advice="Look for it with snapshot -i or find TEXT, or wait for it with wait.",
    )
