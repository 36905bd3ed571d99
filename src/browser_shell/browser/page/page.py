"""One tab of a session, over the session's own DevTools connection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio

from browser_shell.browser.devtools.client import DevTools, DevToolsError, DevToolsEvent
from browser_shell.browser.page.elements import Element
from browser_shell.browser.page.frames import Frame, Navigations, frames_in
from browser_shell.browser.page.refs import NodeRef, RefTable
from browser_shell.browser.page.scripts import library
from browser_shell.browser.page.selectors import count_elements, find_element
from browser_shell.core.calls import Attachment
from browser_shell.core.errors import ActFailed, ErrorCode
from browser_shell.core.json_values import JsonObject, JsonValue
from browser_shell.policy.document import OutputSection

if TYPE_CHECKING:
    from browser_shell.browser.page.looks import LastLook

WORLD = "browser-shell"
"""Name of the isolated world. It shares the DOM with the page, and none of its objects."""
_CALL_SECONDS = 125.0
"""Longer than any call: the deadline of the call ends a request to a page that does not reply."""
_FRAME_ATTEMPTS = 3
_MAX_REASON_CHARACTERS = 200
_LOCATION = "function () { return [location.href, document.title] }"
_FRAME_TAGS = ("IFRAME", "FRAME")
_FRAMES_ONLY: JsonObject = {"type": "iframe"}


class Page:
    """One tab. Page functions run in the isolated world of a frame; input events go to the tab's top target."""

    def __init__(
        self, devtools: DevTools, *, target_id: str, cdp_session: str, refs: RefTable, output: OutputSection
    ) -> None:
        self.refs = refs
        self.output = output
        self.notes: list[str] = []
        """Notes for the agent about the command that runs."""
        self.seconds_left = 0.0
        """Time that the command may take, from its start."""
        self.attachments: list[Attachment] = []
        """Pictures that the command has taken."""
        self.last_look: LastLook | None = None
        """The page at the last look, for the next `snapshot --delta`."""
        self.navigations = Navigations(top_frame_id=target_id)  # The id of a page target is that of its top frame.
        self.open_requests: set[str] = set()
        """Ids of script requests that have not ended yet, while `Network` is enabled."""
        self.dragged: JsonObject | None = None
        """Data of a drag that Chromium reported instead of starting it, while drags are intercepted."""
        self._devtools = devtools
        self._target_id = target_id
        self._top_session = cdp_session
        self._sessions = [cdp_session]
        self._frames: Sequence[Frame] | None = None
        """None until they are fetched, and after an event that may have changed them."""
        self._frames_version = 0
        self._contexts: dict[tuple[str, str], int] = {}
        """Execution context of the isolated world, by frame id and loader id."""
        self._event = anyio.Event()

    @classmethod
    async def attach(cls, devtools: DevTools, target_id: str, refs: RefTable, output: OutputSection) -> Page:
        """Attach to a tab. Raises: BrowserUnavailable, DevToolsError when the tab is gone."""
        reply = await devtools.call("Target.attachToTarget", {"targetId": target_id, "flatten": True})
        page = cls(devtools, target_id=target_id, cdp_session=str(reply["sessionId"]), refs=refs, output=output)
        page._prepare(page._top_session)
        return page

    @property
    def sessions(self) -> Sequence[str]:
        """CDP sessions of this tab: the tab's own, then those of frames with a target of their own."""
        return self._sessions

    def add_session(self, cdp_session: str) -> None:
        """Add the target of a frame of another site."""
        self._sessions.append(cdp_session)
        self._forget_frames()
        self._prepare(cdp_session)

    def remove_session(self, cdp_session: str) -> None:
        if cdp_session in self._sessions:
            self._sessions.remove(cdp_session)
            self._forget_frames()

    def _forget_frames(self) -> None:
        self._frames = None
        self._frames_version += 1

    def _prepare(self, cdp_session: str) -> None:
        self.post("Page.enable", session=cdp_session)
        # The library runs before the scripts of the page, so that its event listeners are called first.
        self.post(
            "Page.addScriptToEvaluateOnNewDocument",
            {"source": library(), "worldName": WORLD, "runImmediately": True},
            session=cdp_session,
        )
        self.post(
            "Target.setAutoAttach",
            {"autoAttach": True, "waitForDebuggerOnStart": False, "flatten": True, "filter": [_FRAMES_ONLY]},
            session=cdp_session,
        )

    def handle(self, event: DevToolsEvent) -> None:
        """Process one event of a CDP session of this tab."""
        match event.method:
            case "Page.domContentEventFired" if event.session == self._top_session:
                self.navigations.top_document_parsed()
            case "Network.requestWillBeSent" if event.params.get("type") in ("Fetch", "XHR"):
                self.open_requests.add(str(event.params.get("requestId")))
            case "Network.loadingFinished" | "Network.loadingFailed":
                self.open_requests.discard(str(event.params.get("requestId")))
            case "Input.dragIntercepted":
                data = event.params.get("data")
                self.dragged = data if isinstance(data, dict) else None
            case _:
                if self.navigations.handle(event):
                    self._forget_frames()
        self._event.set()
        self._event = anyio.Event()

    def stop_counting_requests(self) -> None:
        """Undo the `Network.enable` of a step that counts requests."""
        self.post("Network.disable")
        self.open_requests.clear()

    async def wait_for_event(self, *, seconds: float) -> None:
        """Wait until the next DevTools event of this tab, or until the time is over."""
        event = self._event
        with anyio.move_on_after(seconds):
            await event.wait()

    async def send(
        self,
        method: str,
        params: JsonObject | None = None,
        *,
        session: str | None = None,
        seconds: float = _CALL_SECONDS,
    ) -> JsonObject:
        """Send a DevTools command, by default to the tab's own target, and return its result.

        Raises: BrowserUnavailable, DevToolsError.
        """
        return await self._devtools.call(method, params, session=session or self._top_session, seconds=seconds)

    def post(self, method: str, params: JsonObject | None = None, *, session: str | None = None) -> None:
        """Send a DevTools command and ignore its reply."""
        self._devtools.post(method, params, session=session or self._top_session)

    async def frames(self) -> Sequence[Frame]:
        """Return all frames, the top frame first and parents before children.

        Raises: BrowserUnavailable, DevToolsError when the tab is gone.
        """
        for attempt in range(_FRAME_ATTEMPTS):
            if self._frames is not None:
                break
            version = self._frames_version
            found = await self._fetch_frames()
            # An event may have made the result stale while it was fetched. A page that never rests gets the last one.
            if version == self._frames_version or attempt == _FRAME_ATTEMPTS - 1:
                self._frames = found
                current = {(frame.frame_id, frame.loader_id) for frame in found}
                self._contexts = {key: context for key, context in self._contexts.items() if key in current}
        return self._frames or ()

    async def top_frame(self) -> Frame:
        return (await self.frames())[0]

    async def _fetch_frames(self) -> Sequence[Frame]:
        if self._top_session not in self._sessions:
            raise DevToolsError("the tab was closed")
        found: dict[str, Frame] = {}
        for session in tuple(self._sessions):
            try:
                reply = await self.send("Page.getFrameTree", session=session)
            except DevToolsError:
                if session == self._top_session:
                    raise
                continue  # The target of the frame is closing.
            found |= {frame.frame_id: frame for frame in frames_in(reply, session)}
        for frame in found.values():
            parent = found.get(frame.parent_id)
            if parent is not None:
                found[frame.frame_id] = replace(frame, owner_backend_node_id=await self._fetch_owner(frame, parent))
        return tuple(found.values())

    async def _fetch_owner(self, frame: Frame, parent: Frame) -> int | None:
        try:
            reply = await self.send("DOM.getFrameOwner", {"frameId": frame.frame_id}, session=parent.cdp_session)
        except DevToolsError:
            return None  # The frame was removed in the meantime.
        return int(str(reply["backendNodeId"]))

    async def owner(self, frame: Frame) -> Element | None:
        """Return the `iframe` element of a frame; None for the top frame. Raises: ActFailed."""
        parent = next((other for other in await self.frames() if other.frame_id == frame.parent_id), None)
        if parent is None or frame.owner_backend_node_id is None:
            return None
        return await self.element_of(parent, frame.owner_backend_node_id, "the frame")

    async def content_frame(self, owner: Element) -> Frame | None:
        """Return the frame inside an `iframe` element; None for other elements. Raises: BrowserUnavailable."""
        reply = await self.send("DOM.describeNode", {"objectId": owner.object_id}, session=owner.frame.cdp_session)
        node = reply.get("node")
        frame_id = node.get("frameId") if isinstance(node, dict) and node.get("nodeName") in _FRAME_TAGS else None
        return next((frame for frame in await self.frames() if frame.frame_id == frame_id), None)

    async def call_function(
        self,
        frame: Frame,
        function: str,
        *args: JsonValue | Element,
        this: Element | None = None,
        by_user: bool = False,
    ) -> JsonValue:
        """Call a function in the isolated world of a frame and return its result by value. Promises are awaited.

        `by_user` gives the frame a user activation, as a click would.

        Raises: ActFailed when the function throws, BrowserUnavailable, DevToolsError when the document is gone.
        """
        return (await self._call(frame, function, args, this=this, by_value=True, by_user=by_user)).get("value")

    async def element_from(
        self, frame: Frame, function: str, *args: JsonValue | Element, this: Element | None = None, label: str
    ) -> Element | None:
        """Call a function that returns an element or null. Raises: as `call_function`."""
        result = await self._call(frame, function, args, this=this, by_value=False)
        return self._element(frame, str(result["objectId"]), label) if result.get("subtype") == "node" else None

    async def _call(
        self,
        frame: Frame,
        function: str,
        args: Sequence[JsonValue | Element],
        *,
        this: Element | None,
        by_value: bool,
        by_user: bool = False,
    ) -> JsonObject:
        params: JsonObject = {
            "functionDeclaration": function,
            "arguments": [{"objectId": arg.object_id} if isinstance(arg, Element) else {"value": arg} for arg in args],
            "returnByValue": by_value,
            "awaitPromise": True,
            "userGesture": by_user,
        }
        if this is None:
            params["executionContextId"] = await self._context(frame)
        else:
            params["objectId"] = this.object_id
        reply = await self.send("Runtime.callFunctionOn", params, session=frame.cdp_session)
        exception, result = reply.get("exceptionDetails"), reply.get("result")
        if isinstance(exception, dict):
            raise ActFailed(ErrorCode.COMMAND_FAILED, _exception_text(exception))
        return result if isinstance(result, dict) else {}

    async def _context(self, frame: Frame) -> int:
        """Return the execution context of the frame's isolated world; create it when the document is new."""
        key = (frame.frame_id, frame.loader_id)
        if key not in self._contexts:
            created = await self.send(
                "Page.createIsolatedWorld",
                {"frameId": frame.frame_id, "worldName": WORLD},
                session=frame.cdp_session,
            )
            context = int(str(created["executionContextId"]))
            # A document that was loaded before the tab was attached may lack the library.
            await self.send(
                "Runtime.evaluate",
                {"expression": library(), "contextId": context},
                session=frame.cdp_session,
            )
            self._contexts[key] = context
        return self._contexts[key]

    def _element(self, frame: Frame, object_id: str, label: str) -> Element:
        return Element(frame=frame, object_id=object_id, label=label, call_function=self.call_function)

    async def element_of(self, frame: Frame, backend_node_id: int, label: str) -> Element:
        """Return a node of a frame as an element. Raises: ActFailed when it was removed."""
        context = await self._context(frame)
        try:
            reply = await self.send(
                "DOM.resolveNode",
                {"backendNodeId": backend_node_id, "executionContextId": context},
                session=frame.cdp_session,
            )
        except DevToolsError as cause:
            raise ActFailed(ErrorCode.ELEMENT_GONE, f"{label} is no longer on the page") from cause
        remote = reply.get("object")
        element = self._element(frame, str(remote["objectId"]) if isinstance(remote, dict) else "", label)
        if not await element.call("function () { return this.isConnected }"):
            raise ActFailed(ErrorCode.ELEMENT_GONE, f"{label} is no longer on the page")
        return element

    async def element_of_ref(self, ref: str) -> Element:
        """Return the element that a ref was given to.

        Raises: ActFailed when the ref is unknown, when its document was replaced, or when its node was removed.
        """
        node = self.refs.get(ref)
        frames = await self.frames()
        frame = next((frame for frame in frames if frame.frame_id == node.frame_id), None)
        if frame is None or frame.loader_id != node.loader_id:
            where = "the page" if node.frame_id == self._target_id or frame is None else "the frame"
            raise ActFailed(
                ErrorCode.PAGE_CHANGED, f"{describe_ref(node)} was shown on an earlier page; {where} has changed since"
            )
        try:
            return replace(await self.element_of(frame, node.backend_node_id, describe_ref(node)), label=ref)
        except DevToolsError as cause:
            raise ActFailed(ErrorCode.PAGE_CHANGED, f"{describe_ref(node)}: its page is being replaced") from cause

    async def element(self, selector: str) -> Element:
        """Return the element that a selector names. Raises: ActFailed."""
        return await find_element(self, selector)

    async def count(self, selector: str) -> int:
        """Return how many elements a selector matches. Raises: ActFailed."""
        return await count_elements(self, selector)

    async def location(self) -> tuple[str, str]:
        """Return URL and title of the document. Raises: BrowserUnavailable, DevToolsError when the tab is gone."""
        try:
            found = await self.call_function(await self.top_frame(), _LOCATION)
        except (DevToolsError, ActFailed):
            found = None  # The document is being replaced.
        if isinstance(found, list):
            return str(found[0]), str(found[1])
        info = (await self.send("Target.getTargetInfo", {"targetId": self._target_id})).get("targetInfo")
        return (str(info.get("url", "")), str(info.get("title", ""))) if isinstance(info, dict) else ("", "")


def describe_ref(node: NodeRef) -> str:
    return f'@{node.ref} ({node.role} "{node.name[:60]}")' if node.name else f"@{node.ref} ({node.role})"


def _exception_text(details: JsonObject) -> str:
    exception = details.get("exception")
    text = exception.get("description") if isinstance(exception, dict) else None
    first_line = str(text or details.get("text", "failed")).partition("\n")[0]
    return first_line.removeprefix("Error: ")[:_MAX_REASON_CHARACTERS]
