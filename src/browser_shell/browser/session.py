"""One session: the context it lives in, the tab it works on, and the way back after a failure."""

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
from browser_shell.browser.devtools.client import DevTools, DevToolsRefused
from browser_shell.browser.tabs import ContextTabs, OpenTab, TabTracker
from browser_shell.core.access import SessionWindow
from browser_shell.core.errors import BrowserUnavailable, SandboxUnavailable, SessionGone
from browser_shell.core.pages import Dialog, Tab
from browser_shell.core.ports import DriverProcesses

_CLOSE_SECONDS = 2.0
_CRASH_SECONDS = 0.3
_TITLE_CHARACTERS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionKey:
    """Who, and which of their sessions."""

    subject: str
    session_id: str

    def internal_name(self) -> str:
        """The driver's session name. There it is a file name, so it is never the client's own words."""
        text = f"{len(self.subject)}:{self.subject}:{self.session_id}"
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


@dataclass(slots=True, kw_only=True, eq=False)
class Session:
    """Use only while `lock` is held."""

    key: SessionKey
    name: str
    supervisor: BrowserSupervisor
    tracker: TabTracker
    driver: DriverProcesses
    directory: Path
    proxy_address: str
    """Where only this session dials the egress proxy, so that each connection has an owner."""
    proxy_port: int
    last_used: float
    why_ended: str = ""
    """Why the session of this id before this one ended without being closed; told once."""
    ended: bool = False
    recorded_at: float | None = None
    """When the audit log was told that it is open; None as long as it was not."""
    lock: anyio.Lock = field(default_factory=lambda: anyio.Lock(fast_acquire=True))
    """Protects everything below: one command at a time in a session."""
    context_id: str = ""
    generation: int = 0
    active: str = ""
    """Target of the tab that commands act on."""
    denials_told: float = 0.0
    """Refused connections before this moment have been told to the agent."""
    watched: ContextTabs | None = None
    abandoned: bool = False
    """Whether the page was closed because a call was cut short, and the agent was not told of it since."""
    bound: str = ""
    """Target that the driver's daemon acts on; brought in line with `active` before each command."""

    async def prepare(self, *, starts_page: bool) -> list[str]:
        """Makes sure that there is a page to act on and that it is in front. Returns notices for the agent.

        Raises: SessionGone when the page that this command means was lost, BrowserUnavailable.
        """
        connection = await self.supervisor.connection()
        notices: list[str] = []
        if self.context_id and self.generation != connection.generation:
            await self.forget_browser()
            self.why_ended = self.why_ended or "was lost when the browser was restarted"
        if self.why_ended:
            why, self.why_ended = self.why_ended, ""
            if not starts_page:
                raise SessionGone(f"this session {why}; nothing is open in it now", rule_id="sessions.gone")
            notices.append(f"this session {why}; it starts clean")
        if not self.context_id:
            await self._make_context(connection.devtools)
            self.generation = connection.generation
        notices += await self._choose_tab(connection.devtools)
        if self.abandoned and not starts_page:
            notices.append("the page was closed because a call on it was cut short; now on another one")
        self.abandoned = False
        return notices

    def raise_window(self, devtools: DevTools) -> None:
        """For people who watch: nobody waits for it, and no command needs it."""
        self.tracker.front = self.context_id
        devtools.post("Target.activateTarget", {"targetId": self.active})

    def window(self) -> SessionWindow:
        """As people who watch are told of it."""
        tab = self._context().tabs.get(self.active)
        return SessionWindow(
            session_id=self.key.session_id,
            host=(urlsplit(tab.url).hostname or "") if tab else "",
            title=tab.title[:_TITLE_CHARACTERS] if tab else "",
            last_used=self.last_used,
            in_front=bool(self.context_id) and self.tracker.front == self.context_id,
        )

    async def _make_context(self, devtools: DevTools) -> None:
        # Dies with our connection: a killed server leaves no context behind.
        made = await devtools.call(
            "Target.createBrowserContext",
            {
                "disposeOnDetach": True,
                "proxyServer": f"http://{self.proxy_address}:{self.proxy_port}",
                "proxyBypassList": NO_BYPASS,
            },
        )
        self.context_id = str(made["browserContextId"])
        await devtools.call("Browser.setDownloadBehavior", {"behavior": "deny", "browserContextId": self.context_id})

    async def _choose_tab(self, devtools: DevTools) -> list[str]:
        tabs = self._context().tabs
        notices: list[str] = []
        if self.active and self.active not in tabs and tabs:
            newest = next(reversed(tabs.values()))
            self.active = newest.target_id
            notices.append(f"the tab closed itself; now on {newest.tab_id}")
        elif self.active not in tabs:
            if self.active:
                notices.append("the last tab closed itself; now on an empty one")
            made = await devtools.call(
                "Target.createTarget",
                {"url": "about:blank", "browserContextId": self.context_id, "newWindow": True},
            )
            self.active = str(made["targetId"])
        if len(tabs) > 1:
            # A tab behind another one draws nothing: clicks there take 5 s and screenshots fail.
            try:
                await devtools.call("Target.activateTarget", {"targetId": self.active})
            except DevToolsRefused:
                # It is closing itself at this moment, and the browser's word of it is on its way.
                tabs.pop(self.active, None)
                notices += await self._choose_tab(devtools)
        return notices

    def _context(self) -> ContextTabs:
        return self.tracker.of_context(self.context_id)

    async def refresh_tabs(self) -> None:
        """Titles change without an event. Raises: BrowserUnavailable."""
        connection = await self.supervisor.connection()
        self.tracker.note_all(await connection.devtools.call("Target.getTargets"))

    def tabs(self) -> list[Tab]:
        return [tab.shown(active=tab.target_id == self.active) for tab in self._context().tabs.values()]

    def target_of(self, tab_id: str) -> str | None:
        tab = self._context().named(tab_id)
        return tab.target_id if tab is not None else None

    def dialog(self) -> Dialog | None:
        """The dialog that has to be answered first."""
        asking = self._asking()
        return asking.dialog if asking is not None else None

    def take_alerts(self) -> list[str]:
        """What pages said in alerts since this was asked last, the last few."""
        alerts = self._context().alerts
        said = list(dict.fromkeys(alerts))
        alerts.clear()
        return said

    def _asking(self) -> OpenTab | None:
        """The tab that shows a dialog: the active one before any other. Pages that opened each other all stand still
        while one of them asks, so a dialog of another tab blocks the active one too.
        """
        tabs = self._context().tabs
        ordered = sorted(tabs.values(), key=lambda tab: tab.target_id != self.active)
        return next((tab for tab in ordered if tab.dialog is not None), None)

    def watch(self, on_trouble: Callable[[], None] | None) -> None:
        """Calls it whenever a dialog opens or a tab goes, and at once where that has happened already.

        Until another one is given, or None.
        """
        if self.watched is not None:
            self.watched.on_trouble = None
        self.watched = None
        if on_trouble is not None:
            self.watched = self._context()
            self.watched.on_trouble = on_trouble
            if self.active not in self.watched.tabs or self.dialog() is not None:
                on_trouble()

    async def tab_closing(self) -> None:
        """Waits until the tab that commands act on is gone."""
        await self._context().closed(self.active)

    async def answer_dialog(self, *, accept: bool, text: str | None) -> None:
        """Answers over DevTools, not through the driver, whose daemon may be waiting for this very answer.

        Raises: BrowserUnavailable, DevToolsRefused.
        """
        connection = await self.supervisor.connection()
        tab = self._asking()
        if tab is None:
            return
        await connection.devtools.call(
            "Page.handleJavaScriptDialog",
            {"accept": accept, "promptText": tab.default_answer if text is None else text},
            session=tab.attachment,
        )
        tab.dialog = None

    async def close_tab(self, target_id: str) -> None:
        """Returns when the tab is gone, or stays although it was asked to go. Raises: BrowserUnavailable."""
        connection = await self.supervisor.connection()
        with suppress(DevToolsRefused), anyio.move_on_after(_CLOSE_SECONDS):  # Refused: it was gone already.
            await connection.devtools.call("Target.closeTarget", {"targetId": target_id}, seconds=_CLOSE_SECONDS)
            await self._context().closed(target_id)

    async def abandon_page(self) -> None:
        """After a timeout: the page and the daemon may both be stuck. Cookies stay, the page does not."""
        await self.driver.kill(self.name)
        self.bound = ""
        target, self.active = self.active, ""
        self.abandoned = True
        if target and self.supervisor.is_current(self.generation):
            try:
                await self._crash(target)
                await self.close_tab(target)
            except BrowserUnavailable:
                return

    async def _crash(self, target_id: str) -> None:
        """A page whose script never ends is not asked to close: the browser would wait for its answer."""
        tab = self._context().tabs.get(target_id)
        if tab is not None and tab.attachment is not None:
            connection = await self.supervisor.connection()
            with suppress(BrowserUnavailable, DevToolsRefused):  # A page that crashed cannot say so.
                await connection.devtools.call("Page.crash", session=tab.attachment, seconds=_CRASH_SECONDS)

    async def browser_is_gone(self) -> bool:
        """Whether the browser that held this session's pages has ended, or does so within a moment."""
        return await self.supervisor.ends_soon(self.generation)

    async def forget_browser(self) -> None:
        """The browser that held this session's context is gone."""
        await self.driver.kill(self.name)
        self.context_id = self.active = self.bound = ""

    async def dispose(self) -> None:
        await self.driver.kill(self.name)
        context_id, self.context_id = self.context_id, ""
        if context_id and self.supervisor.is_current(self.generation):
            try:
                connection = await self.supervisor.connection(seconds=0.1)
                await connection.devtools.call(
                    "Target.disposeBrowserContext", {"browserContextId": context_id}, seconds=_CLOSE_SECONDS
                )
            except (SandboxUnavailable, DevToolsRefused):
                return  # The browser is going down; the context goes with it.
            finally:
                self.tracker.forget_context(context_id)
