"""Navigation with the driver: the history of the tab, and the end of the wait for a page that loads slowly.

The driver waits until every image and frame of a page has arrived, and has no limit of its own that fits the call.
"""

from __future__ import annotations

import asyncio
from types import TracebackType

import anyio

from browser_shell.browser.page.page import Page
from browser_shell.core.calls import BrowserCommand, CommandResult
from browser_shell.core.errors import ErrorCode

RESOURCES_SECONDS = 5.0
"""Time for images and frames after the document was parsed."""
DOCUMENT_SECONDS = 10.0
"""Time for the whole document after its first part has arrived."""
_CHECK_SECONDS = 0.25
_STOP_MARGIN_SECONDS = 0.7
"""Time that the driver gets to report that the navigation was stopped."""
_STILL_LOADING = (
    "NOTE: the page is still loading; use wait --load load, or wait for what you need with wait --text TEXT"
)


class LoadWatch:
    """Ends a navigation that takes too long, before the deadline of its call would close the page.

    A page that is there without all of its resources cancels the block: `is_loading` is then true. A navigation without
    any answer is stopped, so that the driver reports its end: `was_stopped` is then true.
    """

    def __init__(self, page: Page, *, seconds: float) -> None:
        """`seconds` are those that the call has left."""
        self.is_loading = self.was_stopped = False
        self._page = page
        self._documents = page.navigations.documents
        self._loop = asyncio.get_running_loop()
        self._ends_at = self._loop.time() + seconds - _STOP_MARGIN_SECONDS
        self._arrived_at: float | None = None
        self._parsed_at: float | None = None
        self._block = anyio.CancelScope()
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> None:
        self._block.__enter__()
        self._timer = self._loop.call_later(_CHECK_SECONDS, self._check)

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        if self._timer is not None:
            self._timer.cancel()
        return self._block.__exit__(exc_type, exc_value, traceback)

    def _check(self) -> None:
        now, navigations = self._loop.time(), self._page.navigations
        if navigations.documents != self._documents:
            self._arrived_at = self._arrived_at or now
            self._parsed_at = self._parsed_at or (None if navigations.pending else now)
        if self._arrived_at is not None:
            ends = [self._ends_at, self._arrived_at + DOCUMENT_SECONDS]
            ends += [self._parsed_at + RESOURCES_SECONDS] if self._parsed_at is not None else []
            if now >= min(ends):
                self.is_loading = True
                self._block.cancel()
                return
        elif now >= self._ends_at and not self.was_stopped:
            self.was_stopped = True
            self._page.post("Page.stopLoading")
        self._timer = self._loop.call_later(_CHECK_SECONDS, self._check)


async def still_loading(page: Page) -> CommandResult:
    """Return the result of a navigation whose page is there without all of its resources."""
    url, title = await page.location()
    return CommandResult(exit_code=0, data={"url": url, "title": title}, message=_STILL_LOADING)


def no_answer(plan: BrowserCommand) -> CommandResult:
    """Return the result of a navigation that was stopped because the server did not answer."""
    return CommandResult(
        exit_code=ErrorCode.TIMEOUT.exit_code,
        error=ErrorCode.TIMEOUT,
        message=f"the server did not answer within {plan.timeout_seconds} s; the page before is still open",
        advice="Repeat it with a larger timeout_sec (at most 120), or open another page.",
    )


async def history_problem(page: Page, plan: BrowserCommand) -> CommandResult | None:
    """Return the error of a `back` or `forward` for which the history of the tab has no page, or None."""
    if plan.name not in ("back", "forward"):
        return None
    history = await page.send("Page.getNavigationHistory")
    index, entries = history.get("currentIndex"), history.get("entries")
    if not isinstance(index, int) or not isinstance(entries, list):
        return None
    is_back = plan.name == "back"
    if 0 <= index + (-1 if is_back else 1) < len(entries):
        return None
    return CommandResult(
        exit_code=ErrorCode.COMMAND_FAILED.exit_code,
        error=ErrorCode.COMMAND_FAILED,
        message=f"the history of this tab has no page {'before' if is_back else 'after'} this one",
        advice="Go on with the page that is open, or use open URL.",
    )
