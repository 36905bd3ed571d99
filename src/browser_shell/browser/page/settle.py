"""Wait for the effect of an act, and report what changed.

A started navigation is waited for. Otherwise the wait ends with the first change of the document, or after 100 ms.
Before a further step of the same call, the wait continues until the page is quiet, for a bounded time.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import anyio

from browser_shell.browser.devtools.client import DevToolsError
from browser_shell.browser.page.frames import Frame
from browser_shell.browser.page.page import Page
from browser_shell.core.errors import ActFailed
from browser_shell.core.json_values import JsonObject

FIRST_CHANGE_MS = 100
"""How long to wait for the first change after an act."""
_QUIET_MS = 80
_QUIET_CAP_MS = 1_000
_NAVIGATION_SECONDS = 10.0
_NAVIGATION_START_SECONDS = 0.02
"""A navigation that a script starts is reported some milliseconds after the first change."""
_REQUESTS_SECONDS = 1.0
_MAX_FRAMES = 8


@dataclass(slots=True, kw_only=True)
class Change:
    """The effect of an act on the page."""

    document: bool = False
    """Whether the tab shows another document."""
    url: bool = False
    changed: bool = False
    focus: str = ""
    """Description of the field that has the focus now; empty unless it moved."""
    on_canvas: bool = False
    """Whether a canvas received the act. It may have been redrawn, which changes no element."""
    still_loading: bool = False
    before: Sequence[Frame] = field(default_factory=tuple)


class ChangeWatch:
    """Records the changes of a page from its start until `settle`."""

    def __init__(self, page: Page, frames: Sequence[Frame]) -> None:
        self._page = page
        self._frames = frames
        self._started = page.navigations.started

    async def settle(self, *, waits_for_change: bool, quiet: bool) -> Change:
        """Wait as described at the top of this module. Without `waits_for_change`, do not wait for a first change.

        Raises: BrowserUnavailable.
        """
        change = Change(before=self._frames)
        reports: list[JsonObject] = []
        first = FIRST_CHANGE_MS if waits_for_change else 0
        async with anyio.create_task_group() as tasks:
            for frame in self._frames[:_MAX_FRAMES]:
                tasks.start_soon(self._settle_frame, frame, first, quiet, reports, tasks.cancel_scope)
        change.changed = any(report.get("changed") for report in reports)
        change.on_canvas = any(report.get("drawn") for report in reports)
        change.focus = next((str(report["focus"]) for report in reports if report.get("focus")), "")
        if waits_for_change or quiet or self._page.navigations.started != self._started:
            await self._wait_for_navigation(change, quiet=quiet)
        return await self._compare_documents(change)

    async def _settle_frame(
        self, frame: Frame, first_ms: int, quiet: bool, reports: list[JsonObject], scope: anyio.CancelScope
    ) -> None:
        """Wait in one frame. The first frame that changed ends the wait in the others, unless all must be quiet."""
        arguments = (first_ms, _QUIET_MS if quiet else 0, _QUIET_CAP_MS if quiet else max(first_ms, 1))
        try:
            function = "function (...args) { return browserShell.settle(...args) }"
            report = await self._page.call_function(frame, function, *arguments)
        except (DevToolsError, ActFailed):
            report = {"changed": True}  # The document was replaced.
        if isinstance(report, dict):
            reports.append(report)
            if report.get("changed") and not quiet:
                scope.cancel()

    async def _wait_for_navigation(self, change: Change, *, quiet: bool) -> None:
        page = self._page
        if change.changed and page.navigations.started == self._started:
            await page.wait_for_event(seconds=_NAVIGATION_START_SECONDS)
        change.still_loading = not await wait_for_documents(page)
        if quiet:
            await self._wait_for_requests()

    async def _wait_for_requests(self) -> None:
        """Wait, for a bounded time, for the requests that scripts started since the act, and for their effect."""
        page = self._page
        if page.open_requests:
            with anyio.move_on_after(_REQUESTS_SECONDS):
                while page.open_requests:
                    await page.wait_for_event(seconds=1.0)
            await anyio.sleep(_QUIET_MS / 1000)

    async def _compare_documents(self, change: Change) -> Change:
        with suppress(DevToolsError):
            before, now = self._frames[0], await self._page.top_frame()
            change.document = before.loader_id != now.loader_id
            change.url = before.url != now.url
            loaders = {frame.loader_id for frame in self._frames}
            others = {frame.loader_id for frame in await self._page.frames()}
            change.changed = change.changed or change.document or change.url or loaders != others
        return change


async def wait_for_documents(page: Page) -> bool:
    """Wait, for a bounded time, until no navigation is under way. Return whether none is."""
    with anyio.move_on_after(_NAVIGATION_SECONDS):
        while page.navigations.pending:
            await page.wait_for_event(seconds=1.0)
    return not page.navigations.pending


async def wait_for_next_document(page: Page, documents: int, *, seconds: float) -> bool:
    """Wait for the next document of the tab, if its navigation begins within `seconds`.

    `documents` is `page.navigations.documents` before the act. Return whether there is a new document.
    """
    begins_until = anyio.current_time() + seconds
    with anyio.move_on_after(_NAVIGATION_SECONDS):
        while page.navigations.documents == documents and (
            page.navigations.pending or anyio.current_time() < begins_until
        ):
            await page.wait_for_event(seconds=seconds)
    await wait_for_documents(page)
    return page.navigations.documents != documents


async def watch_changes(page: Page, *, counts_requests: bool) -> ChangeWatch:
    """Begin to record the changes of all frames, and with `counts_requests` the requests of scripts."""
    frames = await page.frames()
    if counts_requests:
        page.open_requests.clear()
        await page.send("Network.enable", {"maxTotalBufferSize": 0, "maxResourceBufferSize": 0})
    for frame in frames[:_MAX_FRAMES]:
        with suppress(DevToolsError, ActFailed):  # The document of the frame is being replaced.
            await page.call_function(frame, "function () { browserShell.arm(null) }")
    return ChangeWatch(page, frames)
