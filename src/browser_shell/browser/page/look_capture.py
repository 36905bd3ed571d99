"""Capture the tree of a page for looks: one DevTools snapshot per process of the page, all at the same time.

The accessibility tree would give roles and names, but it is 7 times slower and larger than a DOM snapshot, and not
bounded: 10 MB of text take 6 s (bench/LOG.md). Roles and names are therefore computed from the snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from browser_shell.browser.devtools.client import DevToolsError
from browser_shell.browser.page.frames import Frame
from browser_shell.browser.page.look_internals import add_internals
from browser_shell.browser.page.look_tree import STYLES, Tree, build_tree
from browser_shell.browser.page.scripts import load_script
from browser_shell.core.errors import ActFailed, ErrorCode
from browser_shell.core.json_values import JsonObject

if TYPE_CHECKING:
    from browser_shell.browser.page.page import Page

MAX_ELEMENTS = 250_000
"""Elements of one document. Chromium needs about 2 s to capture them, and the reply has about 25 MB."""
MAX_TEXT_CHARACTERS = 20_000_000
THREAD_NODES = 400
"""Larger trees are built in a worker thread, because building takes about 10 µs per node."""
_CAPTURE: JsonObject = {"computedStyles": list(STYLES)}


async def capture_tree(page: Page) -> Tree:
    """Return the tree of all frames of a page.

    Raises: ActFailed when the page is too large, BrowserUnavailable, DevToolsError when the tab is gone.
    """
    frames = await page.frames()
    top = frames[0]
    facts = await _facts(page, top)
    _refuse_huge_page(facts)
    captures = await _capture(page, frames)
    if _size(captures) > THREAD_NODES:
        tree = await anyio.to_thread.run_sync(build_tree, frames, captures)
    else:
        tree = build_tree(frames, captures)
    await add_internals(page, tree)
    modal = facts.get("modal")
    if isinstance(modal, int) and modal >= 0:
        _mark_modal(tree, top, modal)
    return tree


async def _facts(page: Page, top: Frame) -> JsonObject:
    facts = await page.call_function(top, load_script("look_facts"))
    return facts if isinstance(facts, dict) else {}


def _refuse_huge_page(facts: JsonObject) -> None:
    for what, limit in (("elements", MAX_ELEMENTS), ("characters", MAX_TEXT_CHARACTERS)):
        number = facts.get(what)
        if isinstance(number, int) and number > limit:
            raise ActFailed(
                ErrorCode.OUTPUT_TOO_LARGE,
                f"the page has {number:,} {what}; looks are limited to {limit:,}",
                advice="Read a part of it with get text SEL, and act on it with CSS selectors.",
            )


async def _capture(page: Page, frames: Sequence[Frame]) -> Mapping[str, JsonObject]:
    captures: dict[str, JsonObject] = {}
    top_session = frames[0].cdp_session
    failures: list[DevToolsError] = []

    async def capture(session: str) -> None:
        try:
            captures[session] = await page.send("DOMSnapshot.captureSnapshot", _CAPTURE, session=session)
        except DevToolsError as problem:
            if session == top_session:
                failures.append(problem)
            # Otherwise the frame was removed in the meantime.

    sessions = dict.fromkeys(frame.cdp_session for frame in frames)
    if len(sessions) == 1:
        await capture(top_session)
    else:
        async with anyio.create_task_group() as tasks:
            for session in sessions:
                tasks.start_soon(capture, session)
    if failures:
        raise failures[0]
    return captures


def _size(captures: Mapping[str, JsonObject]) -> int:
    """Return the number of nodes in all captures."""
    total = 0
    for capture in captures.values():
        match capture:
            case {"documents": [*documents]}:
                for document in documents:
                    match document:
                        case {"nodes": {"nodeName": [*names]}}:
                            total += len(names)
    return total


def _mark_modal(tree: Tree, top: Frame, number: int) -> None:
    """Find the open modal dialog by its number among the open dialogs of the top document."""
    dialogs = (node for node in tree.nodes if node.tag == "dialog" and node.frame is top and "open" in node.attributes)
    tree.modal = next((node for index, node in enumerate(dialogs) if index == number), None)
