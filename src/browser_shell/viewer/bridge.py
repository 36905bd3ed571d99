"""Connects a viewer's WebSocket to the display and drops the input of viewers that may only watch."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio
import structlog
from anyio.abc import ByteStream
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from browser_shell.browser.chromium.display import PARKED_POINTER
from browser_shell.core.access import TicketGrant, ViewMode
from browser_shell.core.errors import AuditUnavailable, BrowserUnavailable
from browser_shell.core.ports import AuditLog, Clock, NewId, SessionWindows
from browser_shell.core.records import AuditRecord, RecordKind
from browser_shell.viewer.messages import (
    RecentActivity,
    RequestRefused,
    ViewerRequest,
    ViewerState,
    activity_message,
    hello_message,
    parse_request,
    state_message,
)
from browser_shell.viewer.rfb import ClientMessage, ClientStream, Effect, RfbRefused
from browser_shell.viewer.takeover import TOOL, Takeover, ViewerControl

WITH_MESSAGES = "browser-shell.v1"
"""Subprotocol of our page: RFB in binary frames, the messages of `messages.py` in text frames."""
RFB_ONLY = "binary"
"""Subprotocol of other VNC clients. Most of them request none, and get the same."""

MAX_FRAME_BYTES = 256 * 1024
DISPLAY_SECONDS = 10.0
"""Timeout for a display that is being restarted."""
STALL_SECONDS = 30.0
"""Send timeout towards the viewer and towards the display."""
_RETRY_SECONDS = 0.1
_POLL_SECONDS = 0.25
_CHUNK_BYTES = 64 * 1024
_FINAL_RECORD_SECONDS = 5
_CLOSE_SECONDS = 1
_DISPLAY_ERRORS = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError)

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class CloseReason:
    """Close code and reason of a socket. 4401 is private: connect again with a ticket from a new token."""

    code: int
    reason: str = ""


CLIENT_LEFT = CloseReason(1000)
NOT_UNDERSTOOD = CloseReason(1008, "this server does not understand the viewer")
VIEW_ONLY = CloseReason(1008, "a view socket cannot take over")
TOO_LONG = CloseReason(1009, "the frame is too long")
UNRECORDED = CloseReason(1011, "viewers cannot be recorded, so there are none")
DISPLAY_ENDED = CloseReason(1012, "the display was restarted")
NO_DISPLAY = CloseReason(1013, "the display is not there")
TOO_SLOW = CloseReason(1013, "the viewer is too slow")
EXPIRED = CloseReason(4401, "the token has expired")


@dataclass(slots=True, kw_only=True)
class _Viewer:
    """One open socket."""

    socket: WebSocket
    grant: TicketGrant
    display: ByteStream
    control: ViewerControl | None
    """None for a view socket. Without it no input reaches the display."""
    has_messages: bool
    stream: ClientStream = field(default_factory=ClientStream)
    sending: anyio.Lock = field(default_factory=anyio.Lock)
    """Held while a message is sent to the display."""
    has_sent_input: bool = False
    """Whether input reached the display since its pointer was parked."""
    sent_entry_number: int = 0
    sent_state: ViewerState | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VncBridge:
    """An ASGI application for WebSockets. A socket without a grant in the scope is refused."""

    display_socket: Path
    takeover: Takeover
    activity: RecentActivity
    windows: SessionWindows
    audit: AuditLog
    clock: Clock
    new_id: NewId

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        socket = WebSocket(scope, receive, send)
        grant = scope.get("state", {}).get("grant")
        offered = scope.get("subprotocols", [])
        chosen = next((name for name in (WITH_MESSAGES, RFB_ONLY) if name in offered), None)
        if not isinstance(grant, TicketGrant) or (offered and chosen is None):
            await socket.close()
            return
        try:
            await socket.accept(subprotocol=chosen)
            end = await self._serve(socket, grant, has_messages=chosen == WITH_MESSAGES)
        except WebSocketDisconnect:
            return
        # The client may have disconnected or sent its own close frame first.
        with suppress(WebSocketDisconnect, RuntimeError), anyio.move_on_after(_CLOSE_SECONDS):
            await socket.close(end.code, end.reason)

    async def _serve(self, socket: WebSocket, grant: TicketGrant, *, has_messages: bool) -> CloseReason:
        viewer_id = self.new_id()
        try:
            async with self._recorded(grant, viewer_id), AsyncExitStack() as stack:
                control = None
                if grant.mode is ViewMode.CONTROL:
                    control = await stack.enter_async_context(
                        self.takeover.viewer_control(subject=grant.subject, viewer_id=viewer_id)
                    )
                display = await stack.enter_async_context(await self._connect_display())
                return await self._relay(
                    _Viewer(socket=socket, grant=grant, display=display, control=control, has_messages=has_messages)
                )
        except AuditUnavailable:
            return UNRECORDED
        except BrowserUnavailable:
            return NO_DISPLAY

    @asynccontextmanager
    async def _recorded(self, grant: TicketGrant, viewer_id: str) -> AsyncIterator[None]:
        """Record that the viewer connects and that it disconnects. Raises: AuditUnavailable."""
        connected_at = self.clock.monotonic()
        record = AuditRecord(
            kind=RecordKind.VIEWER_CONNECTED,
            call_id=viewer_id,
            subject=grant.subject,
            tool=TOOL,
            subcommand=grant.mode.value,
        )
        await self.audit.record(record)
        try:
            yield
        finally:
            duration_ms = round((self.clock.monotonic() - connected_at) * 1000, 1)
            with anyio.move_on_after(_FINAL_RECORD_SECONDS, shield=True):
                try:
                    await self.audit.record(replace(record, kind=RecordKind.VIEWER_LEFT, duration_ms=duration_ms))
                except AuditUnavailable:
                    log.exception("viewer_left_not_recorded", viewer_id=viewer_id)

    async def _connect_display(self) -> ByteStream:
        """Raises: BrowserUnavailable."""
        with anyio.move_on_after(DISPLAY_SECONDS):
            while True:
                try:
                    return await anyio.connect_unix(self.display_socket)
                except OSError:
                    await anyio.sleep(_RETRY_SECONDS)
        raise BrowserUnavailable("the display does not accept viewers")

    async def _relay(self, viewer: _Viewer) -> CloseReason:
        """Run four tasks and return the reason of the first that ends."""
        ends: list[CloseReason] = []

        async def run_until_end(work: Callable[[_Viewer], Awaitable[CloseReason]]) -> None:
            ends.append(await _close_reason(work, viewer))
            tasks.cancel_scope.cancel()

        try:
            async with anyio.create_task_group() as tasks:
                for work in (self._to_display, self._to_viewer, self._send_updates, self._wait_for_expiry):
                    tasks.start_soon(run_until_end, work)
            return ends[0]
        finally:
            with anyio.move_on_after(_CLOSE_SECONDS, shield=True), suppress(*_DISPLAY_ERRORS):
                await _park_pointer(viewer)

    async def _to_viewer(self, viewer: _Viewer) -> CloseReason:
        while True:
            # One chunk at a time: a slow viewer causes backpressure on the display, and nothing is buffered here.
            data = await viewer.display.receive(_CHUNK_BYTES)
            with anyio.fail_after(STALL_SECONDS):
                await viewer.socket.send_bytes(data)

    async def _to_display(self, viewer: _Viewer) -> CloseReason:
        while True:
            frame = await viewer.socket.receive()
            if frame["type"] == "websocket.disconnect":
                return CLIENT_LEFT
            text = frame.get("text")
            if text is not None:
                end = await self._handle_request(viewer, text)
                if end is not None:
                    return end
                continue
            content: bytes = frame["bytes"]
            if len(content) > MAX_FRAME_BYTES:
                return TOO_LONG
            passed = [message.content for message in viewer.stream.feed(content) if await _may_pass(viewer, message)]
            if passed:
                await _send_to_display(viewer, b"".join(passed))

    async def _handle_request(self, viewer: _Viewer, text: str) -> CloseReason | None:
        if not viewer.has_messages:
            return NOT_UNDERSTOOD
        request, session_id = parse_request(text)
        if viewer.control is None:
            return VIEW_ONLY
        match request:
            case ViewerRequest.TAKE_OVER:
                await viewer.control.take_over()
            case ViewerRequest.HAND_BACK:
                if await viewer.control.release("handed back"):
                    await _park_pointer(viewer)
            case ViewerRequest.RAISE:
                await self.windows.bring_to_front(viewer.grant.subject, session_id)
        return None

    async def _send_updates(self, viewer: _Viewer) -> CloseReason:
        """Poll for changes. Polling is cheaper than a wake-up for every key."""
        now, idle_seconds = self.clock.monotonic(), self.takeover.idle_seconds
        if viewer.has_messages:
            await self._send_text(viewer, hello_message(viewer.grant, now=now, control_idle_seconds=idle_seconds))
        while True:
            if viewer.control is not None and await viewer.control.record_end():
                await _park_pointer(viewer)
            await self.windows.show_latest()
            if viewer.has_messages:
                await self._send_changes(viewer)
            await anyio.sleep(_POLL_SECONDS)

    async def _send_changes(self, viewer: _Viewer) -> None:
        entries = self.activity.entries_after(viewer.grant.subject, viewer.sent_entry_number)
        if entries:
            viewer.sent_entry_number = entries[-1].number
            await self._send_text(viewer, activity_message(entries))
        state = self._state(viewer)
        if state != viewer.sent_state:
            viewer.sent_state = state
            await self._send_text(viewer, state_message(state, now=self.clock.monotonic()))

    def _state(self, viewer: _Viewer) -> ViewerState:
        control = viewer.control
        return ViewerState(
            person_in_control=self.takeover.seconds_left() > 0,
            you=control is not None and control.in_control,
            held=control is not None and control.has_taken_over,
            open_sessions=self.windows.count(),
            windows=tuple(self.windows.windows(viewer.grant.subject)),
        )

    async def _send_text(self, viewer: _Viewer, text: str) -> None:
        with anyio.fail_after(STALL_SECONDS):
            await viewer.socket.send_text(text)

    async def _wait_for_expiry(self, viewer: _Viewer) -> CloseReason:
        if viewer.grant.ends_at is None:
            await anyio.sleep_forever()
        else:
            await anyio.sleep(max(0.0, viewer.grant.ends_at - self.clock.monotonic()))
        return EXPIRED


async def _send_to_display(viewer: _Viewer, content: bytes) -> None:
    with anyio.fail_after(STALL_SECONDS):
        async with viewer.sending:
            await viewer.display.send(content)


async def _park_pointer(viewer: _Viewer) -> None:
    """Move the pointer away from the page at which the person left it, and release its buttons."""
    if viewer.has_sent_input:
        viewer.has_sent_input = False
        await _send_to_display(viewer, PARKED_POINTER)


async def _may_pass(viewer: _Viewer, message: ClientMessage) -> bool:
    """Decide whether the display receives this message. Viewers reach the display in no other way."""
    match message.effect:
        case Effect.PICTURE:
            return True
        case Effect.INPUT if viewer.control is not None:
            await viewer.control.on_input()
            viewer.has_sent_input = True
            return True
        case Effect.MOTION if viewer.control is not None:
            passes = viewer.control.on_motion()
            viewer.has_sent_input |= passes
            return passes
        case _:
            return False


async def _close_reason(work: Callable[[_Viewer], Awaitable[CloseReason]], viewer: _Viewer) -> CloseReason:
    """Run one task of a viewer and map its failures to a close reason."""
    try:
        return await work(viewer)
    except WebSocketDisconnect:
        return CLIENT_LEFT
    except (RfbRefused, RequestRefused):
        return NOT_UNDERSTOOD
    except _DISPLAY_ERRORS:
        return DISPLAY_ENDED
    except TimeoutError:
        return TOO_SLOW
    except AuditUnavailable:
        return UNRECORDED
