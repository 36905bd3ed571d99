"""The DevTools connection of one session for work in its pages. It is opened on first use, and again if it breaks."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeAlias

import anyio

from browser_shell.browser.devtools.client import DevTools, DevToolsEvent
from browser_shell.browser.page.page import Page
from browser_shell.browser.page.refs import RefTable
from browser_shell.policy.document import OutputSection

MAX_MESSAGE_BYTES = 48 * 1024 * 1024
"""A DOM snapshot of the largest page that looks accept has about 25 MB. A longer message ends the connection of this
session only."""
_CLOSE_SECONDS = 1.0

OpenConnection: TypeAlias = Callable[[Callable[[DevToolsEvent], None]], Awaitable[DevTools]]


class PageConnection:
    """The attached tabs of one session."""

    def __init__(self, open_connection: OpenConnection, *, output: OutputSection) -> None:
        self._open = open_connection
        self._output = output
        self._devtools: DevTools | None = None
        self._pages: dict[str, Page] = {}
        """By target id."""
        self._by_session: dict[str, Page] = {}
        self._refs: dict[str, RefTable] = {}
        """By target id. Refs stay valid when the connection is opened again."""
        self._numbers = itertools.count(1)

    async def page(self, target_id: str) -> Page:
        """Return a tab; attach to it on first use. Raises: BrowserUnavailable, DevToolsError when the tab is gone."""
        if self._devtools is None or self._devtools.closed.is_set():
            self._pages.clear()
            self._by_session.clear()
            self._devtools = await self._open(self._on_event)
        if target_id not in self._pages:
            refs = self._refs.setdefault(target_id, RefTable(self._numbers))
            page = await Page.attach(self._devtools, target_id, refs, self._output)
            self._pages[target_id] = page
            self._by_session[page.sessions[0]] = page
        return self._pages[target_id]

    async def close(self) -> None:
        devtools, self._devtools = self._devtools, None
        self._pages.clear()
        self._by_session.clear()
        if devtools is not None:
            with suppress(Exception), anyio.move_on_after(_CLOSE_SECONDS):
                await devtools.close()

    def _on_event(self, event: DevToolsEvent) -> None:
        match event.method:
            case "Target.attachedToTarget":
                page, child = self._by_session.get(event.session or ""), str(event.params.get("sessionId"))
                if page is not None:
                    self._by_session[child] = page
                    page.add_session(child)
            case "Target.detachedFromTarget":
                child = str(event.params.get("sessionId"))
                page = self._by_session.pop(child, None)
                if page is not None:
                    page.remove_session(child)
                    self._pages = {target: kept for target, kept in self._pages.items() if kept.sessions}
            case _:
                page = self._by_session.get(event.session or "")
                if page is not None:
                    page.handle(event)
