"""What is open in the browser, learned from its events: tabs per context, and the dialogs that block them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import anyio

from browser_shell.browser.devtools.client import DevTools, DevToolsEvent
from browser_shell.core.json_values import JsonObject
from browser_shell.core.pages import Dialog, Tab

_ALERTS_KEPT = 3
_ALERT_CHARACTERS = 300


@dataclass(slots=True)
class OpenTab:
    """A page target of one context."""

    tab_id: str
    target_id: str
    url: str
    title: str
    attachment: str | None = None
    """The flat DevTools session that watches this page."""
    dialog: Dialog | None = None
    default_answer: str = ""
    """What a prompt would return if it were simply accepted."""

    def shown(self, *, active: bool) -> Tab:
        return Tab(tab_id=self.tab_id, url=self.url, title=self.title, active=active)


@dataclass(slots=True)
class ContextTabs:
    """The tabs of one browser context, in the order in which they were opened. Ids are never used twice."""

    tabs: dict[str, OpenTab] = field(default_factory=dict)
    opened: int = 0
    tab_closed: anyio.Event = field(default_factory=anyio.Event)
    """Set, and replaced, whenever one of the tabs is gone."""
    alerts: deque[str] = field(default_factory=lambda: deque(maxlen=_ALERTS_KEPT))
    """What pages said in dialogs that ask nothing. They are gone before anybody could look at them."""
    on_trouble: Callable[[], None] | None = None
    """Called whenever a tab is gone or a dialog opens: a command may be waiting for an answer that will not come."""

    def add(self, target_id: str, url: str, title: str) -> OpenTab:
        self.opened += 1
        tab = OpenTab(tab_id=f"t{self.opened}", target_id=target_id, url=url, title=title)
        self.tabs[target_id] = tab
        return tab

    async def closed(self, target_id: str) -> None:
        """Waits until the browser has said that this tab is gone."""
        while target_id in self.tabs:
            await self.tab_closed.wait()

    def note_closed(self) -> None:
        self.tab_closed.set()
        self.tab_closed = anyio.Event()
        self.note_trouble()

    def note_trouble(self) -> None:
        if self.on_trouble is not None:
            self.on_trouble()

    def named(self, tab_id: str) -> OpenTab | None:
        return next((tab for tab in self.tabs.values() if tab.tab_id == tab_id), None)


class TabTracker:
    """Follows the events of one browser connection."""

    def __init__(self) -> None:
        self._contexts: dict[str, ContextTabs] = {}
        self._by_attachment: dict[str, OpenTab] = {}
        self.front = ""
        """The context whose window was raised last; '' when nobody knows."""

    def forget_everything(self) -> None:
        """The browser is gone, and its tabs with it."""
        gone = list(self._contexts.values())
        self._contexts.clear()
        self.front = ""
        self._by_attachment.clear()
        for context in gone:
            context.tabs.clear()
            context.note_closed()

    def of_context(self, context_id: str) -> ContextTabs:
        known = self._contexts.get(context_id)
        if known is None:
            known = self._contexts[context_id] = ContextTabs()
        return known

    def forget_context(self, context_id: str) -> None:
        self._contexts.pop(context_id, None)
        if self.front == context_id:
            self.front = ""

    async def watch(self, devtools: DevTools) -> None:
        """Asks the browser to report every page, and attaches to each so that its dialogs are seen."""
        pages: JsonObject = {"type": "page"}
        await devtools.call("Target.setDiscoverTargets", {"discover": True, "filter": [pages]})
        await devtools.call(
            "Target.setAutoAttach",
            {"autoAttach": True, "waitForDebuggerOnStart": False, "flatten": True, "filter": [pages]},
        )

    def handle(self, devtools: DevTools, event: DevToolsEvent) -> None:
        """Takes in one event."""
        match event.method:
            case "Target.targetCreated" | "Target.targetInfoChanged":
                self._note_target(event.params)
            case "Target.targetDestroyed":
                self._drop_target(event.params)
            case "Target.attachedToTarget":
                self._note_attachment(devtools, event.params)
            case "Page.javascriptDialogOpening":
                self._note_dialog(event)
            case "Page.javascriptDialogClosed":
                tab = self._by_attachment.get(event.session or "")
                if tab is not None:
                    tab.dialog = None
            case _:
                pass

    def note_all(self, answer: JsonObject) -> None:
        """Takes in the browser's own list of targets."""
        infos = answer.get("targetInfos")
        for info in infos if isinstance(infos, list) else []:
            self._note_target({"targetInfo": info})

    def _note_target(self, params: JsonObject) -> OpenTab | None:
        info = params.get("targetInfo")
        if not isinstance(info, dict) or info.get("type") != "page":
            return None
        target_id, context_id = str(info.get("targetId")), str(info.get("browserContextId"))
        url, title = str(info.get("url", "")), str(info.get("title", ""))
        context = self.of_context(context_id)
        tab = context.tabs.get(target_id)
        if tab is None:
            self.front = context_id  # New windows come up in front of the others.
            return context.add(target_id, url, title)
        tab.url, tab.title = url, title
        return tab

    def _drop_target(self, params: JsonObject) -> None:
        target_id = str(params.get("targetId"))
        for context in self._contexts.values():
            tab = context.tabs.pop(target_id, None)
            if tab is None:
                continue
            if tab.attachment is not None:
                self._by_attachment.pop(tab.attachment, None)
            context.note_closed()

    def _note_attachment(self, devtools: DevTools, params: JsonObject) -> None:
        tab = self._note_target(params)
        if tab is None:
            return
        tab.attachment = str(params.get("sessionId"))
        self._by_attachment[tab.attachment] = tab
        devtools.post("Page.enable", session=tab.attachment)
        # One window has the display's focus; without this, pages in the others would see no focus and blur events.
        devtools.post("Emulation.setFocusEmulationEnabled", {"enabled": True}, session=tab.attachment)
        # Nothing may be uploaded, and a native file dialog that nobody can answer would block the page.
        devtools.post("Page.setInterceptFileChooserDialog", {"enabled": True}, session=tab.attachment)
        # The driver asks for every popup to wait and then forgets those that are not its own tab; a popup that shares a
        # process with its opener would stop both. Last, so that a dialog of its first script is seen.
        devtools.post("Runtime.runIfWaitingForDebugger", session=tab.attachment)

    def _note_dialog(self, event: DevToolsEvent) -> None:
        tab = self._by_attachment.get(event.session or "")
        if tab is None:
            return
        tab.dialog = Dialog(kind=str(event.params.get("type")), message=str(event.params.get("message", "")))
        tab.default_answer = str(event.params.get("defaultPrompt", ""))
        for context in self._contexts.values():
            if tab.target_id in context.tabs:
                if tab.dialog.kind == "alert":
                    context.alerts.append(tab.dialog.message[:_ALERT_CHARACTERS])
                context.note_trouble()
