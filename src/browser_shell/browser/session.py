"""One session: its browser context, its active tab, and the recovery after a failure."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import anyio

from browser_shell.browser.chromium.process import NO_BYPASS
from browser_shell.browser.chromium.supervisor import BrowserSupervisor
from browser_shell.browser.devtools.client import DevTools, DevToolsError
from browser_shell.browser.dialogs import Dialog
from browser_shell.browser.driver.agent_browser import AgentBrowserDriver
from browser_shell.browser.page.connection import PageConnection
from browser_shell.browser.page.page import Page
from browser_shell.browser.tabs import ContextTabs, Tab, TabTracker
from browser_shell.core.access import SessionWindow
from browser_shell.core.errors import BrowserUnavailable, SandboxUnavailable, SessionGone

_CLOSE_SECONDS = 2.0
_CRASH_SECONDS = 0.3
_TITLE_CHARACTERS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionKey:
    """Identifies a session: two subjects may choose the same session id."""

    subject: str
    session_id: str

    def driver_name(self) -> str:
        """The driver's session name. The driver uses it as a file name, so it is a hash of the client's values."""
        text = f"{len(self.subject)}:{self.subject}:{self.session_id}"
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


@dataclass(slots=True, kw_only=True, eq=False)
class Session:
    """One open session. Commands hold `lock`; `window` and `raise_window` need no lock."""

    key: SessionKey
    name: str
    """The session name that the driver uses."""
    supervisor: BrowserSupervisor
    tracker: TabTracker
    driver: AgentBrowserDriver
    directory: Path
    """Holds PDF documents until they are returned."""
    proxy_address: str
    """The proxy address that only this session uses. The egress proxy identifies the session by it."""
    proxy_port: int
    last_used: float
    loss_reason: str = ""
    """Why the pages of this session, or of the previous one with this id, were lost. Reported once."""
    ended: bool = False
    recorded_at: float | None = None
    """Monotonic time of the audit record of the opening; None before."""
    lock: anyio.Lock = field(default_factory=lambda: anyio.Lock(fast_acquire=True))
    """Held by one command at a time."""
    context_id: str = ""
    generation: int = 0
    """Number of the browser process that holds the context."""
    active_target_id: str = ""
    """The tab that commands act on."""
    driver_target_id: str = ""
    """The tab that the driver's daemon acts on; set to `active_target_id` before each command of the driver."""
    denials_reported_until: float = 0.0
    """Monotonic time. Earlier denials have been reported to the agent."""
    page_abandoned: bool = False
    """Whether a page was closed after a timeout or a cancellation, which the agent has not been informed of yet."""
    pages: PageConnection
    """The session's own connection for work in its pages."""
    watched_context: ContextTabs | None = None
    """The tabs whose `on_change` is set by `watch_page`."""

    async def prepare(self, *, opens_page: bool) -> list[str]:
        """Make sure that the session has an active tab, in front of its other tabs. Return notes for the agent.

        Raises: SessionGone when the page was lost and the command does not open a new one; BrowserUnavailable,
        DevToolsError.
        """
        connection = await self.supervisor.connection()
        notes: list[str] = []
        if self.context_id and self.generation != connection.generation:
            await self.forget_browser()
            self.loss_reason = self.loss_reason or "was lost when the browser was restarted"
        if self.loss_reason:
            reason, self.loss_reason = self.loss_reason, ""
            if not opens_page:
                raise SessionGone(f"this session {reason}; nothing is open in it now", rule_id="sessions.gone")
            notes.append(f"this session {reason}; it starts clean")
        if not self.context_id:
            await self._create_context(connection.devtools)
            self.generation = connection.generation
        notes += await self._choose_tab(connection.devtools)
        if self.page_abandoned and not opens_page:
            notes.append("the page was closed because a call on it was cut short; this command ran on another page")
        self.page_abandoned = False
        return notes

    async def page(self) -> Page:
        """Return the active tab for work in it. Raises: BrowserUnavailable, DevToolsError when the tab is gone."""
        return await self.pages.page(self.active_target_id)

    def raise_window(self, devtools: DevTools) -> None:
        """Bring the window to the front for viewers. Commands also work in covered windows."""
        self.tracker.front_context_id = self.context_id
        devtools.post("Target.activateTarget", {"targetId": self.active_target_id})

    def window(self) -> SessionWindow:
        """Describe the session for the viewers' list."""
        tab = self._context().tabs.get(self.active_target_id)
        return SessionWindow(
            session_id=self.key.session_id,
            host=(urlsplit(tab.url).hostname or "") if tab else "",
            title=tab.title[:_TITLE_CHARACTERS] if tab else "",
            last_used=self.last_used,
            in_front=bool(self.context_id) and self.tracker.front_context_id == self.context_id,
        )

    async def _create_context(self, devtools: DevTools) -> None:
        created = await devtools.call(
            "Target.createBrowserContext",
            {
                # The context ends with the server's connection, so a killed server leaves none behind.
                "disposeOnDetach": True,
                "proxyServer": f"http://{self.proxy_address}:{self.proxy_port}",
                "proxyBypassList": NO_BYPASS,
            },
        )
        self.context_id = str(created["browserContextId"])
        await devtools.call("Browser.setDownloadBehavior", {"behavior": "deny", "browserContextId": self.context_id})

    async def _choose_tab(self, devtools: DevTools) -> list[str]:
        tabs = self._context().tabs
        notes: list[str] = []
        if self.active_target_id and self.active_target_id not in tabs and tabs:
            newest = next(reversed(tabs.values()))
            self.active_target_id = newest.target_id
            notes.append(f"the active tab was closed; {newest.tab_id} is now active")
        elif self.active_target_id not in tabs:
            if self.active_target_id:
                notes.append("the last tab was closed; an empty tab is now active")
            created = await devtools.call(
                "Target.createTarget",
                {"url": "about:blank", "browserContextId": self.context_id, "newWindow": True},
            )
            self.active_target_id = str(created["targetId"])
        if len(tabs) > 1:
            # Chromium does not draw a hidden tab: clicks there take 5 s and screenshots fail.
            try:
                await devtools.call("Target.activateTarget", {"targetId": self.active_target_id})
            except DevToolsError:
                # The tab is closing, and the event that reports it has not arrived yet.
                tabs.pop(self.active_target_id, None)
                notes += await self._choose_tab(devtools)
        return notes

    def _context(self) -> ContextTabs:
        return self.tracker.context(self.context_id)

    async def refresh_tabs(self) -> None:
        """Fetch the tabs' titles, which change without an event. Raises: BrowserUnavailable."""
        connection = await self.supervisor.connection()
        self.tracker.update_all(await connection.devtools.call("Target.getTargets"))

    def tabs(self) -> list[Tab]:
        return list(self._context().tabs.values())

    def has_active_tab(self) -> bool:
        return self.active_target_id in self._context().tabs

    def target_of(self, tab_id: str) -> str | None:
        tab = self._context().by_tab_id(tab_id)
        return tab.target_id if tab is not None else None

    def dialog(self) -> Dialog | None:
        """The open dialog, if any."""
        tab = self._tab_with_dialog()
        return tab.dialog if tab is not None else None

    def take_alerts(self) -> list[str]:
        """Return and clear the texts of recent alerts, without duplicates."""
        alerts = self._context().alerts
        texts = list(dict.fromkeys(alerts))
        alerts.clear()
        return texts

    def _tab_with_dialog(self) -> Tab | None:
        """Return a tab with an open dialog, the active tab first. A dialog blocks all pages of its renderer process."""
        tabs = sorted(self._context().tabs.values(), key=lambda tab: tab.target_id != self.active_target_id)
        return next((tab for tab in tabs if tab.dialog is not None), None)

    def watch_page(self, on_change: Callable[[], None] | None) -> None:
        """Call `on_change` when a dialog opens or a tab closes, and now if a dialog is open or the active tab closed.

        It replaces the previous callback; None removes it.
        """
        if self.watched_context is not None:
            self.watched_context.on_change = None
        self.watched_context = None
        if on_change is not None:
            self.watched_context = self._context()
            self.watched_context.on_change = on_change
            if self.active_target_id not in self.watched_context.tabs or self.dialog() is not None:
                on_change()

    async def wait_until_active_tab_closes(self) -> None:
        await self._context().wait_until_closed(self.active_target_id)

    async def answer_dialog(self, *, accept: bool, text: str | None) -> bool:
        """Answer over the server's DevTools connection: the driver's daemon may be waiting for this dialog.

        Return False if the dialog was closed in the meantime, for example by a person. Raises: BrowserUnavailable.
        """
        connection = await self.supervisor.connection()
        tab = self._tab_with_dialog()
        if tab is None or tab.dialog is None:
            return False
        kind, tab.dialog = tab.dialog.kind, None
        try:
            await connection.devtools.call(
                "Page.handleJavaScriptDialog",
                {"accept": accept, "promptText": tab.default_answer if text is None else text},
                session=tab.cdp_session,
            )
        except DevToolsError:
            # A tab that closes because of the answer may close before it replies.
            return accept and kind == "beforeunload"
        return True

    async def request_tab_close(self, target_id: str) -> Dialog | None:
        """Close a tab as its close button would. Return the dialog if the page asks whether to leave it.

        Raises: BrowserUnavailable.
        """
        connection, tab = await self.supervisor.connection(), self._context().tabs.get(target_id)
        if tab is None:
            return None
        if tab.dialog is None:
            connection.devtools.post("Page.close", session=tab.cdp_session)
            with anyio.move_on_after(_CLOSE_SECONDS):
                await self._context().wait_until_closed_or_asked(target_id)
        if tab.dialog is not None and tab.dialog.kind == "beforeunload":
            return tab.dialog
        await self.close_tab(target_id)
        return None

    async def close_tab(self, target_id: str) -> None:
        """Close a tab without asking its page, and wait for it for a bounded time. Raises: BrowserUnavailable."""
        connection = await self.supervisor.connection()
        with suppress(DevToolsError), anyio.move_on_after(_CLOSE_SECONDS):  # Refused: it is closed already.
            await connection.devtools.call("Target.closeTarget", {"targetId": target_id})
            await self._context().wait_until_closed(target_id)

    async def abandon_page(self) -> None:
        """Close the page and kill the daemon: after a timeout or a cancellation both may hang. Cookies are kept."""
        await self.driver.kill(self.name)
        self.driver_target_id = ""
        target_id, self.active_target_id = self.active_target_id, ""
        self.page_abandoned = True
        if target_id and self.supervisor.is_current(self.generation):
            with suppress(BrowserUnavailable):
                await self._crash_renderer(target_id)
                await self.close_tab(target_id)

    async def _crash_renderer(self, target_id: str) -> None:
        """Crash the renderer, because a page in an endless loop does not close."""
        tab = self._context().tabs.get(target_id)
        if tab is not None and tab.cdp_session is not None:
            connection = await self.supervisor.connection()
            with suppress(BrowserUnavailable, DevToolsError):  # A crashed page does not reply.
                await connection.devtools.call("Page.crash", session=tab.cdp_session, seconds=_CRASH_SECONDS)

    async def wait_for_browser_end(self) -> bool:
        """Wait up to 0.5 s for the end of this session's browser. Return whether it has ended."""
        return await self.supervisor.wait_for_end(self.generation)

    async def forget_browser(self) -> None:
        """Kill the daemon and clear the ids that belong to a browser that has ended."""
        await self.driver.kill(self.name)
        await self.pages.close()
        self.context_id = self.active_target_id = self.driver_target_id = ""

    async def dispose(self) -> None:
        """Kill the daemon and dispose of the browser context."""
        await self.driver.kill(self.name)
        await self.pages.close()
        context_id, self.context_id = self.context_id, ""
        if context_id and self.supervisor.is_current(self.generation):
            try:
                connection = await self.supervisor.connection(seconds=0.1)
                await connection.devtools.call(
                    "Target.disposeBrowserContext", {"browserContextId": context_id}, seconds=_CLOSE_SECONDS
                )
            except (SandboxUnavailable, DevToolsError):
                return  # The browser is ending, and the context with it.
            finally:
                self.tracker.forget_context(context_id)
