"""Ends the wait for the driver when only another call, or nobody, could make it answer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import anyio

from browser_shell.core.pages import Dialog
from browser_shell.core.ports import BrowserSession

DIALOG_GRACE_SECONDS = 0.5
"""What a command still gets to finish after it opened a dialog."""
GONE_GRACE_SECONDS = 0.5
"""What a command still gets to finish after its tab has closed."""


class PageTrouble:
    """Of one command: by timers that only trouble sets, as tasks that watch for it would cost every call a tenth."""

    def __init__(self, session: BrowserSession) -> None:
        self._session = session
        self._waiting = anyio.CancelScope()
        self._timers: list[asyncio.TimerHandle] = []
        self.dialog: Dialog | None = None
        """That blocks the page. When the block was cut short and there is none, the tab has gone."""

    @contextmanager
    def cuts_short(self) -> Iterator[None]:
        """Runs the block, which trouble ends without an exception."""
        try:
            with self._waiting, self._session.watched(self._look):
                yield
        finally:
            for timer in self._timers:
                timer.cancel()

    def _look(self) -> None:
        if self._waiting.cancel_called:
            return
        later = asyncio.get_running_loop().call_later
        if not any(tab.active for tab in self._session.tabs()):
            self._timers.append(later(GONE_GRACE_SECONDS, self._give_up_tab))
        dialog = self._session.dialog()
        if dialog is not None:
            self._timers.append(later(DIALOG_GRACE_SECONDS, self._give_up_if_it_stays, dialog))

    def _give_up_tab(self) -> None:
        if not self._waiting.cancel_called:
            self._waiting.cancel()

    def _give_up_if_it_stays(self, dialog: Dialog) -> None:
        # A page may show one alert after the other, each of which the driver answers.
        shown = self._session.dialog()
        if shown is not dialog:
            self._look()  # At another one, of another tab, that this one hid.
        elif not self._waiting.cancel_called:
            self.dialog = dialog
            self._waiting.cancel()
