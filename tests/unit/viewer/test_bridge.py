"""A viewer's WebSocket end to end, with a fake display that records the bytes it receives."""

from __future__ import annotations

import json
import struct
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Subprotocol

from browser_shell.browser.chromium.display import PARKED_POINTER
from browser_shell.core.access import Activity, SessionWindow, TicketGrant, ViewMode
from browser_shell.core.records import RecordKind
from browser_shell.viewer import bridge
from support.fakes import FakeClock, FullDiskAudit, RecordingAudit
from support.live_view import GREETING, FakeDisplay, LiveView, running_display, serving_app, until

HANDSHAKE = b"RFB 003.008\n\x01\x01"
KEY = struct.pack(">BBxxI", 4, 1, 0x61)
PRESS = struct.pack(">BBHH", 5, 1, 10, 20)
MOTION = struct.pack(">BBHH", 5, 0, 10, 20)
CUT_TEXT = struct.pack(">BxxxI", 6, 5) + b"hello"
DESKTOP_SIZE = struct.pack(">BxHHBx", 251, 800, 600, 0)
QEMU_KEY = struct.pack(">BBHII", 255, 0, 1, 0x61, 30)
UPDATE_REQUEST = struct.pack(">BBHHHH", 3, 1, 0, 0, 1280, 1024)
WITH_MESSAGES = "browser-shell.v1"


class RealClock(FakeClock):
    def monotonic(self) -> float:
        return time.monotonic()


@dataclass
class Box:
    """A served live view with its fake display."""

    view: LiveView
    display: FakeDisplay
    address: str

    @asynccontextmanager
    async def viewer(self, *subprotocols: str) -> AsyncIterator[ClientConnection]:
        async with connect(
            f"ws://{self.address}/vnc/websockify",
            subprotocols=[Subprotocol(name) for name in subprotocols] or None,
            proxy=None,
            compression=None,
        ) as socket:
            yield socket


@pytest.fixture
def directory() -> Iterator[Path]:
    # A socket's path must be short.
    with TemporaryDirectory(prefix="lv-", dir="/tmp") as name:
        yield Path(name)


@asynccontextmanager
async def a_box(view: LiveView) -> AsyncIterator[Box]:
    async with running_display(view.display_socket) as display, serving_app(view.app()) as address:
        yield Box(view, display, address)


def a_grant(mode: ViewMode = ViewMode.VIEW, *, subject: str = "alice", ends_at: float | None = None) -> TicketGrant:
    return TicketGrant(subject=subject, mode=mode, ends_at=ends_at)


@dataclass
class Messages:
    """The text frames of a socket."""

    socket: ClientConnection

    async def wait_for(self, kind: str, **facts: object) -> dict[str, Any]:
        """Return the next message of this type with these fields."""
        with anyio.fail_after(5):
            while True:
                frame = await self.socket.recv()
                if isinstance(frame, str):
                    message: dict[str, Any] = json.loads(frame)
                    if message["type"] == kind and facts.items() <= message.items():
                        return message

    async def send(self, **message: object) -> None:
        await self.socket.send(json.dumps(message))


async def close_of(socket: ClientConnection) -> tuple[int, str]:
    with anyio.fail_after(5), suppress(ConnectionClosed):
        while True:
            await socket.recv()
    return int(socket.close_code or 0), str(socket.close_reason)


async def test_picture_data_is_relayed_in_both_directions(directory: Path) -> None:
    async with a_box(LiveView(directory)) as box, box.viewer() as viewer:
        assert await viewer.recv() == GREETING
        await viewer.send(HANDSHAKE + UPDATE_REQUEST)
        assert await box.display.wait_for(lambda data: len(data) >= 24) == HANDSHAKE + UPDATE_REQUEST
        await box.display.clients[0].send(b"pixels" * 50_000)
        received = b""
        while len(received) < 300_000:
            part = await viewer.recv()
            assert isinstance(part, bytes)
            received += part
        assert received == b"pixels" * 50_000


@pytest.mark.promise("view:server-side")
@pytest.mark.parametrize("subprotocol", [None, "binary", WITH_MESSAGES])
async def test_view_socket_sends_no_input_to_the_display(directory: Path, subprotocol: str | None) -> None:
    async with a_box(LiveView(directory)) as box, box.viewer(*filter(None, [subprotocol])) as viewer:
        attempts = KEY + PRESS + MOTION + CUT_TEXT + DESKTOP_SIZE + QEMU_KEY
        await viewer.send(HANDSHAKE)
        for place in range(len(attempts)):
            await viewer.send(attempts[place : place + 1])
        await viewer.send(attempts + UPDATE_REQUEST)
        received = await box.display.wait_for(lambda data: data.endswith(UPDATE_REQUEST))
        assert received == HANDSHAKE + UPDATE_REQUEST
        assert box.view.takeover.seconds_left() == 0


async def test_control_socket_sends_input_and_takes_control(directory: Path) -> None:
    audit = RecordingAudit()
    view = LiveView(directory, audit=audit, grant=a_grant(ViewMode.CONTROL))
    async with a_box(view) as box, box.viewer() as viewer:
        await viewer.send(HANDSHAKE + KEY + MOTION + PRESS + QEMU_KEY)
        received = await box.display.wait_for(lambda data: data.endswith(QEMU_KEY))
        assert received == HANDSHAKE + KEY + MOTION + PRESS + QEMU_KEY
        assert box.view.takeover.seconds_left() == 10
        assert audit.records[-1].kind is RecordKind.TAKEOVER_BEGUN


async def test_control_socket_cannot_change_clipboard_or_size(directory: Path) -> None:
    view = LiveView(directory, grant=a_grant(ViewMode.CONTROL))
    async with a_box(view) as box, box.viewer() as viewer:
        await viewer.send(HANDSHAKE + CUT_TEXT + DESKTOP_SIZE + UPDATE_REQUEST)
        assert await box.display.wait_for(lambda data: data.endswith(UPDATE_REQUEST)) == HANDSHAKE + UPDATE_REQUEST


async def test_pointer_motion_alone_is_dropped(directory: Path) -> None:
    view = LiveView(directory, grant=a_grant(ViewMode.CONTROL))
    async with a_box(view) as box, box.viewer() as viewer:
        await viewer.send(HANDSHAKE + MOTION + UPDATE_REQUEST)
        assert await box.display.wait_for(lambda data: data.endswith(UPDATE_REQUEST)) == HANDSHAKE + UPDATE_REQUEST
        assert view.takeover.seconds_left() == 0


@pytest.mark.promise("view:strict-reader")
async def test_unknown_message_closes_the_socket(directory: Path) -> None:
    view = LiveView(directory, grant=a_grant(ViewMode.CONTROL))
    async with a_box(view) as box, box.viewer() as viewer:
        await viewer.send(HANDSHAKE)
        await box.display.wait_for(lambda data: data == HANDSHAKE)
        await viewer.send(b"\x07" + KEY)
        assert (await close_of(viewer))[0] == 1008
        assert bytes(box.display.received) == HANDSHAKE


@pytest.mark.promise("view:grant")
async def test_socket_without_a_grant_is_refused(directory: Path) -> None:
    async with a_box(LiveView(directory, grant=None)) as box:
        with pytest.raises(InvalidStatus) as refused:
            async with box.viewer():
                pass
        assert refused.value.response.status_code == 403
        assert box.display.clients == []


async def test_unknown_subprotocol_is_refused(directory: Path) -> None:
    async with a_box(LiveView(directory)) as box:
        with pytest.raises(InvalidStatus):
            async with box.viewer("mqtt"):
                pass


@pytest.mark.promise("view:expiry")
async def test_expired_token_closes_the_viewer_socket(directory: Path) -> None:
    clock = RealClock()
    view = LiveView(directory, clock=clock, grant=a_grant(ends_at=clock.monotonic() + 0.5))
    async with a_box(view) as box, box.viewer() as viewer:
        assert (await close_of(viewer))[0] == 4401


async def test_already_expired_token_closes_the_viewer_socket_at_once(directory: Path) -> None:
    clock = RealClock()
    view = LiveView(directory, clock=clock, grant=a_grant(ends_at=clock.monotonic() - 1))
    async with a_box(view) as box, box.viewer() as viewer:
        assert (await close_of(viewer))[0] == 4401


async def test_display_restart_closes_the_socket_and_a_new_one_works(directory: Path) -> None:
    async with a_box(LiveView(directory)) as box:
        async with box.viewer() as viewer:
            await viewer.recv()
            await box.display.end_all()
            assert (await close_of(viewer))[0] == 1012
        async with box.viewer() as viewer:
            assert await viewer.recv() == GREETING


async def test_viewer_waits_for_a_display_that_starts_late(directory: Path) -> None:
    view = LiveView(directory)
    async with serving_app(view.app()) as address, connect(f"ws://{address}/websockify", proxy=None) as viewer:
        await anyio.sleep(0.3)
        async with running_display(view.display_socket):
            assert await viewer.recv() == GREETING


async def test_missing_display_closes_the_socket_after_the_timeout(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridge, "DISPLAY_SECONDS", 0.3)
    view = LiveView(directory)
    async with serving_app(view.app()) as address, connect(f"ws://{address}/websockify", proxy=None) as viewer:
        assert (await close_of(viewer))[0] == 1013


async def test_viewer_connect_and_disconnect_are_recorded(directory: Path) -> None:
    audit = RecordingAudit()
    async with a_box(LiveView(directory, audit=audit)) as box:
        async with box.viewer() as viewer:
            await viewer.recv()
            assert audit.kinds == ["VIEWER_CONNECTED"]
        await until(lambda: audit.kinds == ["VIEWER_CONNECTED", "VIEWER_LEFT"])
    assert {(record.subject, record.call_id, record.subcommand) for record in audit.records} == {
        ("alice", "viewer-1", "view")
    }


@pytest.mark.promise("audit:no-record-no-run")
async def test_viewer_without_a_record_is_not_connected(directory: Path) -> None:
    view = LiveView(directory, audit=FullDiskAudit(full_at=RecordKind.VIEWER_CONNECTED))
    async with a_box(view) as box, box.viewer() as viewer:
        assert (await close_of(viewer))[0] == 1011
        assert box.display.clients == []


@pytest.mark.promise("audit:no-record-no-run")
async def test_input_without_a_record_does_not_reach_the_display(directory: Path) -> None:
    audit = FullDiskAudit(full_at=RecordKind.TAKEOVER_BEGUN)
    view = LiveView(directory, audit=audit, grant=a_grant(ViewMode.CONTROL))
    async with a_box(view) as box, box.viewer() as viewer:
        await viewer.send(HANDSHAKE)
        await box.display.wait_for(lambda data: data == HANDSHAKE)
        await viewer.send(KEY)
        assert (await close_of(viewer))[0] == 1011
        assert bytes(box.display.received) == HANDSHAKE


async def test_text_frame_on_a_binary_socket_closes_it(directory: Path) -> None:
    view = LiveView(directory, grant=a_grant(ViewMode.CONTROL))
    async with a_box(view) as box, box.viewer("binary") as viewer:
        await viewer.send('{"type":"take_over"}')
        assert (await close_of(viewer))[0] == 1008
        assert view.takeover.seconds_left() == 0


@pytest.mark.promise("view:server-side")
async def test_takeover_request_closes_a_view_socket(directory: Path) -> None:
    view = LiveView(directory)
    async with a_box(view) as box, box.viewer(WITH_MESSAGES) as viewer:
        await viewer.send('{"type":"take_over"}')
        assert (await close_of(viewer))[0] == 1008
        assert view.takeover.seconds_left() == 0


async def test_oversized_frame_closes_the_socket(directory: Path) -> None:
    async with a_box(LiveView(directory)) as box, box.viewer() as viewer:
        await viewer.send(bytes(bridge.MAX_FRAME_BYTES + 1))
        assert (await close_of(viewer))[0] == 1009


async def test_takeover_and_hand_back_are_shown_to_all_viewers(directory: Path) -> None:
    view = LiveView(directory, grant=a_grant(ViewMode.CONTROL))
    async with a_box(view) as box, box.viewer(WITH_MESSAGES) as controlling:
        control = Messages(controlling)
        assert (await control.wait_for("hello"))["mode"] == "control"
        view.grant = a_grant()
        async with box.viewer(WITH_MESSAGES) as watching:
            watch = Messages(watching)
            assert (await watch.wait_for("hello"))["mode"] == "view"
            await watch.wait_for("situation", person_in_control=False)
            await control.send(type="take_over")
            await control.wait_for("situation", person_in_control=True, you=True, held=True)
            await watch.wait_for("situation", person_in_control=True, you=False, held=False)
            assert view.takeover.seconds_left() > 0
            await control.send(type="hand_back")
            await control.wait_for("situation", person_in_control=False, you=False, held=False)
            await watch.wait_for("situation", person_in_control=False)
            assert view.takeover.seconds_left() == 0


async def test_end_of_idle_control_is_recorded(directory: Path) -> None:
    clock, audit = FakeClock(), RecordingAudit()
    view = LiveView(directory, clock=clock, audit=audit, grant=a_grant(ViewMode.CONTROL))
    async with a_box(view) as box, box.viewer(WITH_MESSAGES) as viewer:
        messages = Messages(viewer)
        await viewer.send(HANDSHAKE + KEY)
        await messages.wait_for("situation", you=True, held=False)
        clock.advance(10)
        await messages.wait_for("situation", you=False)
        await until(lambda: audit.records[-1].kind is RecordKind.TAKEOVER_ENDED)
        assert audit.records[-1].subcommand == "idle"


async def test_pointer_is_parked_when_a_person_hands_back(directory: Path) -> None:
    view = LiveView(directory, grant=a_grant(ViewMode.CONTROL))
    async with a_box(view) as box, box.viewer(WITH_MESSAGES) as viewer:
        messages = Messages(viewer)
        await messages.send(type="take_over")
        await messages.send(type="hand_back")  # Before the handshake with the display, so nothing may be sent to it.
        await viewer.send(HANDSHAKE + PRESS)
        await messages.wait_for("situation", you=True)
        await messages.send(type="hand_back")
        received = await box.display.wait_for(lambda data: data.endswith(PARKED_POINTER))
        assert received == HANDSHAKE + PRESS + PARKED_POINTER


async def test_pointer_is_parked_after_idle_control(directory: Path) -> None:
    clock = FakeClock()
    view = LiveView(directory, clock=clock, grant=a_grant(ViewMode.CONTROL))
    async with a_box(view) as box, box.viewer(WITH_MESSAGES) as viewer:
        await viewer.send(HANDSHAKE + KEY + MOTION)
        await Messages(viewer).wait_for("situation", you=True)
        clock.advance(10)
        await box.display.wait_for(lambda data: data.endswith(MOTION + PARKED_POINTER))


async def test_pointer_is_parked_when_a_viewer_in_control_leaves(directory: Path) -> None:
    async with a_box(LiveView(directory, grant=a_grant(ViewMode.CONTROL))) as box:
        async with box.viewer() as viewer:
            await viewer.send(HANDSHAKE + PRESS)
            await box.display.wait_for(lambda data: data.endswith(PRESS))
        await box.display.wait_for(lambda data: data.endswith(PRESS + PARKED_POINTER))


async def test_viewer_receives_earlier_and_new_calls_of_its_subject(directory: Path) -> None:
    def an_activity(subject: str, what: str) -> Activity:
        return Activity(at=1.0, subject=subject, session_id="s1", what=what, result="ok", duration_ms=1.0)

    view = LiveView(directory)
    view.activity.add(an_activity("alice", "open"))
    view.activity.add(an_activity("bob", "fill"))
    async with a_box(view) as box, box.viewer(WITH_MESSAGES) as viewer:
        messages = Messages(viewer)
        first = await messages.wait_for("activity")
        assert [entry["what"] for entry in first["entries"]] == ["open"]
        view.activity.add(an_activity("bob", "press"))
        view.activity.add(an_activity("alice", "click"))
        second = await messages.wait_for("activity")
        assert [entry["what"] for entry in second["entries"]] == ["click"]


async def test_control_socket_can_raise_an_open_session(directory: Path) -> None:
    view = LiveView(directory, grant=a_grant(ViewMode.CONTROL))
    async with a_box(view) as box, box.viewer(WITH_MESSAGES) as viewer:
        messages = Messages(viewer)
        await messages.wait_for("situation", open_sessions=0, sessions=[])
        view.windows.open.append(
            SessionWindow(session_id="s1", host="a.example", title="A", last_used=1000.0, in_front=False)
        )
        state = await messages.wait_for("situation", open_sessions=1)
        assert state["sessions"][0]["id"] == "s1"
        await messages.send(type="raise", session="s1")
        await until(lambda: view.windows.raised)
        assert view.windows.raised == [("alice", "s1")]


async def test_viewer_that_reads_nothing_is_disconnected(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridge, "STALL_SECONDS", 0.5)
    audit = RecordingAudit()
    sent = [0]

    async def flood(display: FakeDisplay) -> None:
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            while True:
                await display.clients[0].send(bytes(65536))
                sent[0] += 65536

    async with (
        a_box(LiveView(directory, audit=audit)) as box,
        await anyio.connect_tcp(*split(box.address)) as raw,
        anyio.create_task_group() as tasks,
    ):
        await raw.send(
            f"GET /websockify HTTP/1.1\r\nHost: {box.address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode()
        )
        await until(lambda: box.display.clients)
        tasks.start_soon(flood, box.display)
        await until(lambda: "VIEWER_LEFT" in audit.kinds)
        tasks.cancel_scope.cancel()
    # The kernel's socket buffers hold the rest; the server buffers nothing.
    assert sent[0] < 64 * 1024 * 1024


def split(address: str) -> tuple[str, int]:
    host, _, port = address.partition(":")
    return host, int(port)
