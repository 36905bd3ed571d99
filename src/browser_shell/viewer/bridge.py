"""Joins a viewer's websocket to the display, and keeps the hands of those who may only watch off it."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import structlog
from anyio.abc import ByteStream
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from browser_shell.core.access import TicketGrant, ViewMode
from browser_shell.core.errors import AuditUnavailable, BrowserUnavailable
from browser_shell.core.ports import AuditLog, Clock, NewId, SessionWindows
from browser_shell.core.records import AuditRecord, RecordKind
from browser_shell.viewer import messages as viewer_words
from browser_shell.viewer.activity import RecentActivity
from browser_shell.viewer.messages import ViewerRequest, ViewerState, WordsRefused
from browser_shell.viewer.rfb import ClientMessage, ClientStream, Effect, RfbRefused
from browser_shell.viewer.takeover import TOOL, Takeover, ViewerControl

WITH_WORDS = "browser-shell.v1"
"""Binary frames as below, and text frames with what the page shows besides the picture."""
PICTURE_ONLY = "binary"
"""What other VNC clients ask for; most of them ask for nothing, and get the same."""

MAX_VIEWERS = 16
MAX_VIEWERS_OF_A_SUBJECT = 8
MAX_FRAME_BYTES = 256 * 1024
DISPLAY_SECONDS = 10.0
"""How long a viewer waits for a display that is being restarted."""
STALL_SECONDS = 30.0
"""A viewer, or a display, that takes nothing for this long is given up."""
_RETRY_SECONDS = 0.1
_PULSE_SECONDS = 0.25
_CHUNK_BYTES = 64 * 1024
_LAST_RECORD_SECONDS = 5
_CLOSE_SECONDS = 1

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class CloseReason:
    """Why a socket ends. 4401 is ours: come back with a new ticket from a new token."""

    code: int
    reason: str = ""


LEFT = CloseReason(1000)
NOT_UNDERSTOOD = CloseReason(1008, "this server does not understand the viewer")
VIEW_ONLY = CloseReason(1008, "a view socket cannot take over")
TOO_LONG = CloseReason(1009, "the frame is too long")
UNRECORDED = CloseReason(1011, "viewers cannot be recorded, so there are none")
DISPLAY_ENDED = CloseReason(1012, "the display was restarted")
NO_DISPLAY = CloseReason(1013, "the display is not there")
FULL = CloseReason(1013, "too many viewers")
TOO_SLOW = CloseReason(1013, "the viewer is too slow")
EXPIRED = CloseReason(4401, "the token has expired")


@dataclass(slots=True, kw_only=True)
class _Viewer:
    """One open socket."""

    socket: WebSocket
    grant: TicketGrant
    display: ByteStream
    hand: ViewerControl | None
    """None for a view socket: there is nothing in it by which it could touch the display."""
    has_words: bool
    stream: ClientStream = field(default_factory=ClientStream)
    told_activity: int = 0
    told_situation: ViewerState | None = None


class VncBridge:
    """An ASGI application for websockets. Who comes without a grant in the scope is refused."""

    def __init__(
        self,
        *,
        display_socket: Path,
        takeover: Takeover,
        activity: RecentActivity,
        windows: SessionWindows,
        audit: AuditLog,
        clock: Clock,
        new_id: NewId,
    ) -> None:
        self._display_socket = display_socket
        self._takeover = takeover
        self._activity = activity
        self._windows = windows
        self._audit = audit
        self._clock = clock
        self._new_id = new_id
        self._seats: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        socket = WebSocket(scope, receive, send)
        grant = scope.get("state", {}).get("grant")
        offered = scope.get("subprotocols", [])
        chosen = next((name for name in (WITH_WORDS, PICTURE_ONLY) if name in offered), None)
        if not isinstance(grant, TicketGrant) or (offered and chosen is None):
            await socket.close()
            return
        try:
            await socket.accept(subprotocol=chosen)
            farewell = await self._serve(socket, grant, has_words=chosen == WITH_WORDS)
        except WebSocketDisconnect:
            return
        # The other side may be gone, or have said goodbye first.
        with suppress(WebSocketDisconnect, RuntimeError), anyio.move_on_after(_CLOSE_SECONDS):
            await socket.close(farewell.code, farewell.reason)

    async def _serve(self, socket: WebSocket, grant: TicketGrant, *, has_words: bool) -> CloseReason:
        if self._seats.total() >= MAX_VIEWERS or self._seats[grant.subject] >= MAX_VIEWERS_OF_A_SUBJECT:
            return FULL
        viewer_id = self._new_id()
        try:
            with self._seated(grant.subject):
                async with self._recorded(grant, viewer_id), AsyncExitStack() as held:
                    hand = None
                    if grant.mode is ViewMode.CONTROL:
                        hand = await held.enter_async_context(
                            self._takeover.hand(subject=grant.subject, viewer_id=viewer_id)
                        )
                    display = await held.enter_async_context(await self._connect_display())
                    return await self._relay(
                        _Viewer(socket=socket, grant=grant, display=display, hand=hand, has_words=has_words)
                    )
        except AuditUnavailable:
            return UNRECORDED
        except BrowserUnavailable:
            return NO_DISPLAY

    @contextmanager
    def _seated(self, subject: str) -> Iterator[None]:
        self._seats[subject] += 1
        try:
            yield
        finally:
            self._seats[subject] -= 1
            if not self._seats[subject]:
                del self._seats[subject]

    @asynccontextmanager
    async def _recorded(self, grant: TicketGrant, viewer_id: str) -> AsyncIterator[None]:
        began = self._clock.monotonic()
        facts = AuditRecord(
            kind=RecordKind.VIEWER_CONNECTED,
            call_id=viewer_id,
            subject=grant.subject,
            tool=TOOL,
            subcommand=grant.mode.value,
        )
        await self._audit.record(facts)
        try:
            yield
        finally:
            with anyio.move_on_after(_LAST_RECORD_SECONDS, shield=True):
                try:
                    await self._audit.record(
                        AuditRecord(
                            kind=RecordKind.VIEWER_LEFT,
                            call_id=viewer_id,
                            subject=grant.subject,
                            tool=TOOL,
                            subcommand=grant.mode.value,
                            duration_ms=round((self._clock.monotonic() - began) * 1000, 1),
                        )
                    )
                except AuditUnavailable:
                    log.exception("viewer_left_not_recorded", viewer_id=viewer_id)

    async def _connect_display(self) -> ByteStream:
        with anyio.move_on_after(DISPLAY_SECONDS):
            while True:
                try:
                    return await anyio.connect_unix(self._display_socket)
                except OSError:
                    await anyio.sleep(_RETRY_SECONDS)
        raise BrowserUnavailable("the display does not accept viewers")

    async def _relay(self, viewer: _Viewer) -> CloseReason:
        """Runs until the first of the four has a reason to end."""
        ends: list[CloseReason] = []

        async def until_end(work: Callable[[_Viewer], Awaitable[CloseReason]]) -> None:
            ends.append(await _ended_in_words(work, viewer))
            tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            for work in (self._to_display, self._to_viewer, self._keep_informed, self._expire):
                tasks.start_soon(until_end, work)
        return ends[0]

    async def _to_viewer(self, viewer: _Viewer) -> CloseReason:
        while True:
            # One chunk is under way at a time: a slow viewer slows the display's sending, and nothing piles up here.
            data = await viewer.display.receive(_CHUNK_BYTES)
            with anyio.fail_after(STALL_SECONDS):
                await viewer.socket.send_bytes(data)

    async def _to_display(self, viewer: _Viewer) -> CloseReason:
        while True:
            frame = await viewer.socket.receive()
            if frame["type"] == "websocket.disconnect":
                return LEFT
            text = frame.get("text")
            if text is not None:
                farewell = await self._fulfil(viewer, text)
                if farewell is not None:
                    return farewell
                continue
            content: bytes = frame["bytes"]
            if len(content) > MAX_FRAME_BYTES:
                return TOO_LONG
            passed = [message.content for message in viewer.stream.feed(content) if await _may_pass(viewer, message)]
            if passed:
                with anyio.fail_after(STALL_SECONDS):
                    await viewer.display.send(b"".join(passed))

    async def _fulfil(self, viewer: _Viewer, text: str) -> CloseReason | None:
        if not viewer.has_words:
            return NOT_UNDERSTOOD
        asked = viewer_words.read_wish(text)
        if viewer.hand is None:
            return VIEW_ONLY
        match asked.wish:
            case ViewerRequest.TAKE_OVER:
                await viewer.hand.take_over()
            case ViewerRequest.HAND_BACK:
                await viewer.hand.hand_back()
            case ViewerRequest.RAISE:
                await self._windows.bring_to_front(viewer.grant.subject, asked.session_id)
        return None

    async def _keep_informed(self, viewer: _Viewer) -> CloseReason:
        """Looks a few times a second: cheaper than to be woken by every key, and nobody sees the difference."""
        if viewer.has_words:
            await self._tell(
                viewer,
                viewer_words.hello(
                    viewer.grant,
                    now=self._clock.monotonic(),
                    control_idle_seconds=self._takeover.idle_seconds,
                ),
            )
        while True:
            if viewer.hand is not None:
                await viewer.hand.settle()
            await self._windows.show_latest()
            if viewer.has_words:
                await self._tell_news(viewer)
            await anyio.sleep(_PULSE_SECONDS)

    async def _tell_news(self, viewer: _Viewer) -> None:
        entries = self._activity.newer(viewer.grant.subject, than=viewer.told_activity)
        if entries:
            viewer.told_activity = entries[-1].number
            await self._tell(viewer, viewer_words.activity_words(entries))
        situation = self._situation(viewer)
        if situation != viewer.told_situation:
            viewer.told_situation = situation
            await self._tell(viewer, viewer_words.situation_words(situation, now=self._clock.monotonic()))

    def _situation(self, viewer: _Viewer) -> ViewerState:
        hand = viewer.hand
        return ViewerState(
            person_in_control=self._takeover.seconds_left() > 0,
            you=hand is not None and hand.in_control,
            held=hand is not None and hand.holds,
            open_sessions=self._windows.count(),
            windows=tuple(self._windows.windows(viewer.grant.subject)),
        )

    async def _tell(self, viewer: _Viewer, text: str) -> None:
        with anyio.fail_after(STALL_SECONDS):
            await viewer.socket.send_text(text)

    async def _expire(self, viewer: _Viewer) -> CloseReason:
        if viewer.grant.ends_at is None:
            await anyio.sleep_forever()
        else:
            await anyio.sleep(max(0.0, viewer.grant.ends_at - self._clock.monotonic()))
        return EXPIRED


async def _may_pass(viewer: _Viewer, message: ClientMessage) -> bool:
    """Whether the display gets this message. It is the only way from a viewer to the display."""
    match message.effect:
        case Effect.PICTURE:
            return True
        case Effect.INPUT if viewer.hand is not None:
            await viewer.hand.touch()
            return True
        case Effect.MOTION if viewer.hand is not None:
            return viewer.hand.move()
        case _:
            return False


async def _ended_in_words(work: Callable[[_Viewer], Awaitable[CloseReason]], viewer: _Viewer) -> CloseReason:
    try:
        return await work(viewer)
    except WebSocketDisconnect:
        return LEFT
    except (RfbRefused, WordsRefused):
        return NOT_UNDERSTOOD
    except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
        return DISPLAY_ENDED
    except TimeoutError:
        return TOO_SLOW
    except AuditUnavailable:
        return UNRECORDED
