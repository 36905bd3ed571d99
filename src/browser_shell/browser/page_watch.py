"""Ends the wait for the driver when only another call, or nobody, could make it answer."""

from __future__ import annotations

import asyncio
from types import TracebackType

import anyio

from browser_shell.core.pages import Dialog
from browser_shell.core.ports import BrowserSession

DIALOG_GRACE_SECONDS = 0.5
"""What a command still gets to finish after it opened a dialog."""
GONE_GRACE_SECONDS = 0.5
"""What a command still gets to finish after its tab has closed."""


class PageWatch:
    """Of one command: by timers that only trouble sets. Tasks that watch for it would cost every call 0.4 ms."""

    def __init__(self, session: BrowserSession) -> None:
        self._session = session
        self._waiting = anyio.CancelScope()
        self._tab_timer: asyncio.TimerHandle | None = None
        self._dialog_timer: asyncio.TimerHandle | None = None
        """One of each kind: a page may open any number of dialogs."""
        self.dialog: Dialog | None = None
        """That blocks the page. When the block was cut short and there is none, the tab has gone."""

    def __enter__(self) -> None:
        """Trouble ends the block without an exception."""
        self._waiting.__enter__()
        self._session.watch(self._look)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> bool | None:
        self._session.watch(None)
        for timer in (self._tab_timer, self._dialog_timer):
            if timer is not None:
                timer.cancel()
        return self._waiting.__exit__(kind, error, at)

    def _look(self) -> None:
        if self._waiting.cancel_called:
            return
        later = asyncio.get_running_loop().call_later
        if self._tab_timer is None and not any(tab.active for tab in self._session.tabs()):
            self._tab_timer = later(GONE_GRACE_SECONDS, self._waiting.cancel)
        dialog = self._session.dialog()
        if self._dialog_timer is None and dialog is not None:
            self._dialog_timer = later(DIALOG_GRACE_SECONDS, self._give_up_if_it_stays, dialog)

    def _give_up_if_it_stays(self, dialog: Dialog) -> None:
        self._dialog_timer = None
        if self._session.dialog() is not dialog:
            # A page may show one alert after the other, each of which the driver answers; look at the next one.
            self._look()
        elif not self._waiting.cancel_called:
            self.dialog = dialog
            self._waiting.cancel()
