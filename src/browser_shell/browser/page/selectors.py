"""Find the element that a selector names: a ref, CSS, XPath, a text, or a role with a name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from browser_shell.browser.devtools.client import DevToolsError
from browser_shell.browser.page.elements import Element
from browser_shell.browser.page.look_capture import capture_tree
from browser_shell.browser.page.look_items import Item, has_role
from browser_shell.browser.page.look_outline import View
from browser_shell.browser.page.look_selection import select_items
from browser_shell.browser.page.scripts import load_script
from browser_shell.core.errors import ActFailed, ErrorCode
from browser_shell.policy.roles import RoleSelector, is_role_selector, parse_role_selector

if TYPE_CHECKING:
    from browser_shell.browser.page.page import Page

_MAX_CANDIDATES = 20
_APPEAR_SECONDS = 0.5
"""How long to wait for an element to appear, for example after the previous step."""
_POLL_SECONDS = 0.1


async def find_element(page: Page, selector: str) -> Element:
    """Return the element that a selector names, the first visible one in document order, frames included.

    Waits up to 0.5 s for an element that is missing. Raises: ActFailed when nothing matches, or when a ref is not
    valid any more.
    """
    if selector.startswith("@"):
        return await page.element_of_ref(selector)
    end = anyio.current_time() + _APPEAR_SECONDS
    while True:
        element = await (_find_by_role if is_role_selector(selector) else _find_in_frames)(page, selector)
        if element is not None:
            return element
        if anyio.current_time() >= end:
            raise await _not_found(page, selector)
        await anyio.sleep(_POLL_SECONDS)


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
    if is_role_selector(selector):
        return len(await _items_by_role(page, parse_role_selector(selector)))
    total = 0
    for frame in await page.frames():
        with suppress(DevToolsError), _selector_errors(selector):  # The document of the frame is being replaced.
            count = await page.call_function(frame, load_script("find"), *_kind(selector), "count")
            total += int(str(count))
    return total


async def _find_in_frames(page: Page, selector: str) -> Element | None:
    kind, wanted = _kind(selector)
    for frame in await page.frames():
        with suppress(DevToolsError), _selector_errors(selector):  # The document of the frame is being replaced.
            element = await page.element_from(frame, load_script("find"), kind, wanted, "first", label=selector)
            if element is None:
                continue
            if kind == "text":
                matches = await page.call_function(frame, load_script("find"), kind, wanted, "equal matches")
                _note_choice(page, selector, count=int(str(matches)))
            return element
    return None


async def _find_by_role(page: Page, selector: str) -> Element | None:
    wanted = parse_role_selector(selector)
    items = await _items_by_role(page, wanted)
    taken: tuple[Element, Item] | None = None
    for item in items[:_MAX_CANDIDATES]:
        with suppress(ActFailed):  # The node was removed in the meantime.
            element = await page.element_of(item.target.frame, item.target.backend_node_id, selector)
            taken = taken or (element, item)
            if await element.call("function () { return browserShell.isVisible(this) }"):
                taken = (element, item)
                break
    if taken is None:
        return None
    element, item = taken
    if wanted.name and _normal(item.name) != _normal(wanted.name):
        page.notes.append(f'nothing has exactly this name; {item.role} "{_normal(item.name)[:80]}" was taken')
    _note_choice(page, selector, count=len(items))
    return element


def _note_choice(page: Page, selector: str, *, count: int) -> None:
    if count > 1:
        page.notes.append(f"{selector} matches {count} elements; the first visible one was taken")


@contextmanager
def _selector_errors(selector: str) -> Iterator[None]:
    """Raise INVALID_ARGUMENTS for a selector that the browser cannot parse."""
    try:
        yield
    except ActFailed as problem:
        if not problem.public_message.startswith("SyntaxError"):
            raise
        kind = "an XPath expression" if _kind(selector)[0] == "xpath" else "a CSS selector"
        raise ActFailed(
            ErrorCode.INVALID_ARGUMENTS,
            f"{selector} is not {kind}",
            advice="Correct it, or use a ref of snapshot -i, text=TEXT or role=ROLE name=NAME.",
        ) from problem


def _kind(selector: str) -> tuple[str, str]:
    if selector.startswith(("//", "(")):
        return "xpath", selector
    kind, separator, rest = selector.partition("=")
    return (kind, rest) if separator and kind in ("xpath", "text") else ("css", selector)


async def _items_by_role(page: Page, wanted: RoleSelector) -> list[Item]:
    """Return the items of a look with this role: those with exactly this name, else those that contain it."""
    tree = await capture_tree(page)
    items = await to_thread.run_sync(select_items, tree, View())
    items = [item for item in items if has_role(item, wanted.role)]
    if wanted.name:
        name = _normal(wanted.name)
        exact = [item for item in items if _normal(item.name) == name]
        items = exact or [item for item in items if name.casefold() in _normal(item.name).casefold()]
    return items


def _normal(text: str) -> str:
    return " ".join(text.split())


async def _not_found(page: Page, selector: str) -> ActFailed:
    state = await page.call_function(await page.top_frame(), "function () { return document.readyState }")
    if state == "loading":
        return ActFailed(ErrorCode.PAGE_LOADING, f"{selector} matches nothing yet, and the page is still loading")
    return ActFailed(
        ErrorCode.ELEMENT_NOT_FOUND,
        f"{selector} matches nothing on this page",
        advice="Look for it with snapshot -i or find TEXT, or wait for it with wait.",
    )
