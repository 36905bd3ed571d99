"""Track the browser's tabs and dialogs from its DevTools events."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import anyio

from browser_shell.browser.devtools.client import DevTools, DevToolsEvent
from browser_shell.browser.dialogs import Dialog
from browser_shell.core.json_values import JsonObject

_MAX_ALERTS = 3
_ALERT_CHARACTERS = 300


@dataclass(slots=True)
class Tab:
    """A page target of one browser context."""

    tab_id: str
    """t1, t2 and so on. Numbered per session, so it reveals nothing about other sessions."""
    target_id: str
    url: str
    title: str
    cdp_session: str | None = None
    dialog: Dialog | None = None
    default_answer: str = ""
    """The default text of a prompt, used when it is accepted without a text."""


@dataclass(slots=True)
class ContextTabs:
    """The tabs of one browser context, in the order in which they opened. Tab ids are never reused."""

    tabs: dict[str, Tab] = field(default_factory=dict)
    """By target id."""
    opened_count: int = 0
    changed: anyio.Event = field(default_factory=anyio.Event)
    """Set and replaced whenever a tab closes or a dialog opens."""
    alerts: deque[str] = field(default_factory=lambda: deque(maxlen=_MAX_ALERTS))
    """Texts of recent alerts, which are closed before the agent can read them."""
    on_change: Callable[[], None] | None = None
    """Called when a tab closes or a dialog opens."""

    def add(self, target_id: str, url: str, title: str) -> Tab:
        self.opened_count += 1
        tab = Tab(tab_id=f"t{self.opened_count}", target_id=target_id, url=url, title=title)
        self.tabs[target_id] = tab
        return tab

    async def wait_until_closed(self, target_id: str) -> None:
        while target_id in self.tabs:
            await self.changed.wait()

    async def wait_until_closed_or_asked(self, target_id: str) -> None:
        """Wait until the tab is closed or shows a dialog."""
        while (tab := self.tabs.get(target_id)) is not None and tab.dialog is None:
            await self.changed.wait()

    def notify_change(self) -> None:
        self.changed.set()
        self.changed = anyio.Event()
        if self.on_change is not None:
            self.on_change()

    def by_tab_id(self, tab_id: str) -> Tab | None:
        return next((tab for tab in self.tabs.values() if tab.tab_id == tab_id), None)


class TabTracker:
    """The tabs of all contexts of one browser."""

    def __init__(self) -> None:
        self._contexts: dict[str, ContextTabs] = {}
        self._by_cdp_session: dict[str, Tab] = {}
        self.front_context_id = ""
        """The context whose window `raise_window` or a new tab brought to the front last; empty when unknown."""

    def forget_everything(self) -> None:
        """Drop all tabs after the browser has ended."""
        contexts = list(self._contexts.values())
        self._contexts.clear()
        self._by_cdp_session.clear()
        self.front_context_id = ""
        for context in contexts:
            context.tabs.clear()
            context.notify_change()

    def context(self, context_id: str) -> ContextTabs:
        return self._contexts.setdefault(context_id, ContextTabs())

    def forget_context(self, context_id: str) -> None:
        self._contexts.pop(context_id, None)
        if self.front_context_id == context_id:
            self.front_context_id = ""

    async def subscribe(self, devtools: DevTools) -> None:
        """Make the browser report every page, and attach to each page to receive its dialogs."""
        pages: JsonObject = {"type": "page"}
        await devtools.call("Target.setDiscoverTargets", {"discover": True, "filter": [pages]})
        await devtools.call(
            "Target.setAutoAttach",
            {"autoAttach": True, "waitForDebuggerOnStart": False, "flatten": True, "filter": [pages]},
        )

    def handle(self, devtools: DevTools, event: DevToolsEvent) -> None:
        """Process one event."""
        match event.method:
            case "Target.targetCreated" | "Target.targetInfoChanged":
                self._update_target(event.params)
            case "Target.targetDestroyed":
                self._remove_target(str(event.params.get("targetId")))
            case "Target.attachedToTarget":
                self._on_attached(devtools, event.params)
            case "Page.javascriptDialogOpening":
                self._on_dialog(devtools, event)
            case "Page.javascriptDialogClosed":
                tab = self._by_cdp_session.get(event.session or "")
                if tab is not None:
                    tab.dialog = None
            case _:
                pass

    def update_all(self, reply: JsonObject) -> None:
        """Process the reply to `Target.getTargets`."""
        infos = reply.get("targetInfos")
        for info in infos if isinstance(infos, list) else []:
            self._update_target({"targetInfo": info})

    def _update_target(self, params: JsonObject) -> Tab | None:
        info = params.get("targetInfo")
        if not isinstance(info, dict) or info.get("type") != "page":
            return None
        target_id, context_id = str(info.get("targetId")), str(info.get("browserContextId"))
        url, title = str(info.get("url", "")), str(info.get("title", ""))
        context = self.context(context_id)
        tab = context.tabs.get(target_id)
        if tab is None:
            self.front_context_id = context_id  # A new window opens in front of the others.
            return context.add(target_id, url, title)
        tab.url, tab.title = url, title
        return tab

    def _remove_target(self, target_id: str) -> None:
        for context in self._contexts.values():
            tab = context.tabs.pop(target_id, None)
            if tab is None:
                continue
            if tab.cdp_session is not None:
                self._by_cdp_session.pop(tab.cdp_session, None)
            context.notify_change()

    def _on_attached(self, devtools: DevTools, params: JsonObject) -> None:
        tab = self._update_target(params)
        if tab is None:
            return
        tab.cdp_session = str(params.get("sessionId"))
        self._by_cdp_session[tab.cdp_session] = tab
        devtools.post("Page.enable", session=tab.cdp_session)
        # Only one window has the focus of the display. Without this, pages in other windows get no focus events.
        devtools.post("Emulation.setFocusEmulationEnabled", {"enabled": True}, session=tab.cdp_session)
        # Uploads are not supported, and an open native file dialog would block the page.
        devtools.post("Page.setInterceptFileChooserDialog", {"enabled": True}, session=tab.cdp_session)
        # The driver makes every popup wait for a debugger and resumes only its own tab. A popup that shares a process
        # with its opener would stop both. Sent last, so that a dialog of the popup's first script is reported.
        devtools.post("Runtime.runIfWaitingForDebugger", session=tab.cdp_session)

    def _on_dialog(self, devtools: DevTools, event: DevToolsEvent) -> None:
        tab = self._by_cdp_session.get(event.session or "")
        context = next((each for each in self._contexts.values() if tab and tab.target_id in each.tabs), None)
        if tab is None or context is None:
            return
        kind, message = str(event.params.get("type")), str(event.params.get("message", ""))
        if kind == "alert":
            # An alert has one answer only. Every other dialog is a question for the agent.
            devtools.post("Page.handleJavaScriptDialog", {"accept": True}, session=tab.cdp_session)
            context.alerts.append(message[:_ALERT_CHARACTERS])
            return
        tab.dialog = Dialog(kind=kind, message=message)
        tab.default_answer = str(event.params.get("defaultPrompt", ""))
        context.notify_change()
