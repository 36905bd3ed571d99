"""End the wait for the driver when a dialog or a closed tab keeps it from replying."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import TypeAlias

import anyio

from browser_shell.browser.dialogs import Dialog
from browser_shell.browser.session import Session

DIALOG_GRACE_SECONDS = 0.5
"""Time that a command has to finish after it opened a dialog. A click is done at that moment; a navigation is not."""
GONE_GRACE_SECONDS = 0.5
"""Time that a command has to finish after its tab has closed."""


CallLater: TypeAlias = Callable[..., asyncio.TimerHandle]
"""Seconds, a function and its arguments."""


class PageWatch:
    """Cancels a block when the active tab closes, or when a dialog stays open.

    Leaving the block early raises no exception. `dialog` is then set, or None when the tab closed. Timers are set only
    when a tab closes or a dialog opens: a task that waits for these events would cost every call 0.4 ms.
    """

    def __init__(
        self,
        session: Session,
        *,
        dialog_grace_seconds: float = DIALOG_GRACE_SECONDS,
        call_later: CallLater | None = None,
    ) -> None:
        self._session = session
        self._dialog_grace_seconds = dialog_grace_seconds
        self._call_later = call_later or asyncio.get_running_loop().call_later
        self._block = anyio.CancelScope()
        self._tab_timer: asyncio.TimerHandle | None = None
        self._dialog_timer: asyncio.TimerHandle | None = None
        self.dialog: Dialog | None = None
        """The dialog that blocks the page; None when the block ended because the tab closed."""

    def __enter__(self) -> None:
        self._block.__enter__()
        self._session.watch_page(self._on_change)

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        self._session.watch_page(None)
        for timer in (self._tab_timer, self._dialog_timer):
            if timer is not None:
                timer.cancel()
        return self._block.__exit__(exc_type, exc_value, traceback)

    def _on_change(self) -> None:
        if self._block.cancel_called:
            return
        if self._tab_timer is None and not self._session.has_active_tab():
            self._tab_timer = self._call_later(GONE_GRACE_SECONDS, self._block.cancel)
        if self._dialog_timer is None and self._session.dialog() is not None:
            self._dialog_timer = self._call_later(self._dialog_grace_seconds, self._cancel_if_dialog_is_open)

    def _cancel_if_dialog_is_open(self) -> None:
        self._dialog_timer = None
        dialog = self._session.dialog()  # A person may have answered it in the live view.
        if dialog is not None and not self._block.cancel_called:
            self.dialog = dialog
            self._block.cancel()
