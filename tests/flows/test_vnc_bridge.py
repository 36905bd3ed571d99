"""A viewer's socket from end to end, with a stand-in for the display that remembers what reached it."""

from __future__ import annotations

import json
import struct
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import httpx2
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Subprotocol

from browser_shell.core.access import Activity, SessionWindow, TicketGrant, ViewMode
from browser_shell.core.records import RecordKind
from browser_shell.viewer import bridge as vnc_bridge
from support.fakes import FakeClock, FullDiskAudit, RecordingAudit
from support.live_view import GREETING, LiveView, StandInDisplay, running_display, serving_app, until

HANDSHAKE = b"RFB 003.008\n\x01\x01"
KEY = struct.pack(">BBxxI", 4, 1, 0x61)
PRESS = struct.pack(">BBHH", 5, 1, 10, 20)
MOTION = struct.pack(">BBHH", 5, 0, 10, 20)
CUT_TEXT = struct.pack(">BxxxI", 6, 5) + b"hello"
DESKTOP_SIZE = struct.pack(">BxHHBx", 251, 800, 600, 0)
QEMU_KEY = struct.pack(">BBHII", 255, 0, 1, 0x61, 30)
UPDATE_REQUEST = struct.pack(">BBHHHH", 3, 1, 0, 0, 1280, 1024)
WITH_WORDS = "browser-shell.v1"


class RealClock(FakeClock):
    def monotonic(self) -> float:
        return time.monotonic()


@dataclass
class Box:
    """A live view that is being served."""

    view: LiveView
    display: StandInDisplay
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
class Words:
    """The text frames of a socket, sorted by type."""

    socket: ClientConnection
    heard: list[dict[str, Any]] = field(default_factory=list)

    async def wait_for(self, kind: str, **facts: object) -> dict[str, Any]:
        """The next message of this kind in which these facts hold."""
        with anyio.fail_after(5):
            while True:
                frame = await self.socket.recv()
                if isinstance(frame, str):
                    message: dict[str, Any] = json.loads(frame)
                    self.heard.append(message)
                    if message["type"] == kind and facts.items() <= message.items():
                        return message

    async def say(self, **message: object) -> None:
        await self.socket.send(json.dumps(message))


async def ending(socket: ClientConnection) -> tuple[int, str]:
    with anyio.fail_after(5), suppress(ConnectionClosed):
        while True:
            await socket.recv()
    return int(socket.close_code or 0), str(socket.close_reason)


async def test_the_picture_flows_in_both_directions(directory: Path) -> None:
    async with a_box(LiveView(directory)) as box, box.viewer() as viewer:
        assert await viewer.recv() == GREETING
        await viewer.send(HANDSHAKE + UPDATE_REQUEST)
        assert await box.display.wait_for(lambda got: len(got) >= 24) == HANDSHAKE + UPDATE_REQUEST
        await box.display.clients[0].send(b"pixels" * 50_000)
        received = b""
        while len(received) < 300_000:
            part = await viewer.recv()
            assert isinstance(part, bytes)
            received += part
        assert received == b"pixels" * 50_000


@pytest.mark.promise("view:server-side")
@pytest.mark.parametrize("subprotocol", [None, "binary", WITH_WORDS])
async def test_nothing_a_view_socket_sends_touches_the_display(directory: Path, subprotocol: str | None) -> None:
    async with a_box(LiveView(directory)) as box, box.viewer(*filter(None, [subprotocol])) as viewer:
        attempts = KEY + PRESS + MOTION + CUT_TEXT + DESKTOP_SIZE + QEMU_KEY
        await viewer.send(HANDSHAKE)
        for place in range(len(attempts)):
            await viewer.send(attempts[place : place + 1])
        await viewer.send(attempts + UPDATE_REQUEST)
        got = await box.display.wait_for(lambda got: got.endswith(UPDATE_REQUEST))
        assert got == HANDSHAKE + UPDATE_REQUEST
        assert box.view.takeover.seconds_left() == 0


async def test_a_control_socket_touches_the_display_and_the_person_is_in_control(directory: Path) -> None:
    audit = RecordingAudit()
    view = LiveView(directory, audit=audit, grant=a_grant(ViewMode.CONTROL))
    async with a_box(view) as box, box.viewer() as viewer:
        await viewer.send(HANDSHAKE + KEY + MOTION + PRESS + QEMU_KEY)
        got = await box.display.wait_for(lambda got: got.endswith(QEMU_KEY))
        assert got == HANDSHAKE + KEY + MOTION + PRESS + QEMU_KEY
        assert box.view.takeover.seconds_left() == 10
        assert audit.records[-1].kind is RecordKind.TAKEOVER_BEGUN


async def test_even_in_control_mode_clipboard_and_size_stay_here(directory: Path) -> None:
    view = LiveView(directory, grant=a_grant(ViewMode.CONTROL))
    async with a_box(view) as box, box.viewer() as viewer:
        await viewer.send(HANDSHAKE + CUT_TEXT + DESKTOP_SIZE + UPDATE_REQUEST)
        assert await box.display.wait_for(lambda got: got.endswith(UPDATE_REQUEST)) == HANDSHAKE + UPDATE_REQUEST


async def test_a_mouse_that_merely_rests_on_the_picture_disturbs_nobody(directory: Path) -> None:
    view = LiveView(directory, grant=a_grant(ViewMode.CONTROL))
    async with a_box(view) as box, box.viewer() as viewer:
        await viewer.send(HANDSHAKE + MOTION + UPDATE_REQUEST)
        assert await box.display.wait_for(lambda got: got.endswith(UPDATE_REQUEST)) == HANDSHAKE + UPDATE_REQUEST
        assert view.takeover.seconds_left() == 0


@pytest.mark.promise("view:strict-reader")
async def test_a_message_of_unknown_length_ends_the_socket_and_reaches_nothing(directory: Path) -> None:
    view = LiveView(directory, grant=a_grant(ViewMode.CONTROL))
    async with a_box(view) as box, box.viewer() as viewer:
        await viewer.send(HANDSHAKE)
        await box.display.wait_for(lambda got: got == HANDSHAKE)
        await viewer.send(b"\x07" + KEY)
        assert (await ending(viewer))[0] == 1008
        assert bytes(box.display.received) == HANDSHAKE


@pytest.mark.promise("view:grant")
async def test_without_a_grant_there_is_no_socket(directory: Path) -> None:
    async with a_box(LiveView(directory, grant=None)) as box:
        with pytest.raises(InvalidStatus) as refused:
            async with box.viewer():
                pass
        assert refused.value.response.status_code == 403
        assert box.display.clients == []


async def test_a_viewer_that_speaks_only_something_else_is_refused(directory: Path) -> None:
    async with a_box(LiveView(directory)) as box:
        with pytest.raises(InvalidStatus):
            async with box.viewer("mqtt"):
                pass


@pytest.mark.promise("view:expiry")
async def test_the_socket_is_cut_when_the_token_expires(directory: Path) -> None:
    clock = RealClock()
    view = LiveView(directory, clock=clock, grant=a_grant(ends_at=clock.monotonic() + 0.5))
    async with a_box(view) as box, box.viewer() as viewer:
        assert (await ending(viewer))[0] == 4401


async def test_a_token_that_has_expired_already_shows_nothing(directory: Path) -> None:
    clock = RealClock()
    view = LiveView(directory, clock=clock, grant=a_grant(ends_at=clock.monotonic() - 1))
    async with a_box(view) as box, box.viewer() as viewer:
        assert (await ending(viewer))[0] == 4401


async def test_when_the_display_ends_the_viewer_is_told_and_a_new_socket_works(directory: Path) -> None:
    async with a_box(LiveView(directory)) as box:
        async with box.viewer() as viewer:
            await viewer.recv()
            await box.display.end_all()
            assert (await ending(viewer))[0] == 1012
        async with box.viewer() as viewer:
            assert await viewer.recv() == GREETING


async def test_a_display_that_comes_late_is_waited_for(directory: Path) -> None:
    view = LiveView(directory)
    async with serving_app(view.app()) as address, connect(f"ws://{address}/websockify", proxy=None) as viewer:
        await anyio.sleep(0.3)
        async with running_display(view.display_socket):
            assert await viewer.recv() == GREETING


async def test_a_display_that_never_comes_is_not_waited_for_for_ever(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vnc_bridge, "DISPLAY_SECONDS", 0.3)
    view = LiveView(directory)
    async with serving_app(view.app()) as address, connect(f"ws://{address}/websockify", proxy=None) as viewer:
        assert (await ending(viewer))[0] == 1013


async def test_there_are_so_many_viewers_and_no_more_and_a_seat_becomes_free(directory: Path) -> None:
    async with a_box(LiveView(directory)) as box, anyio.create_task_group() as tasks:
        seated = [0]

        async def watch() -> None:
            async with box.viewer() as viewer:
                assert await viewer.recv() == GREETING
                seated[0] += 1
                await anyio.sleep_forever()

        for _ in range(vnc_bridge.MAX_VIEWERS_OF_A_SUBJECT):
            tasks.start_soon(watch)
        await until(lambda: seated[0] == vnc_bridge.MAX_VIEWERS_OF_A_SUBJECT)
        async with box.viewer() as viewer:
            assert (await ending(viewer))[0] == 1013
        box.view.grant = a_grant(subject="bob")
        async with box.viewer() as viewer:
            assert await viewer.recv() == GREETING
        box.view.grant = a_grant()
        tasks.cancel_scope.cancel()


async def test_one_subject_cannot_take_the_seats_of_all(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vnc_bridge, "MAX_VIEWERS", 1)
    async with a_box(LiveView(directory)) as box, box.viewer() as first:
        await first.recv()
        box.view.grant = a_grant(subject="bob")
        async with box.viewer() as second:
            assert (await ending(second))[0] == 1013
        await first.close()
        with anyio.fail_after(5):
            while True:
                async with box.viewer() as third:
                    if await third.recv() == GREETING:
                        return


async def test_viewers_are_recorded_when_they_come_and_when_they_leave(directory: Path) -> None:
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
async def test_a_viewer_that_cannot_be_recorded_sees_nothing(directory: Path) -> None:
    view = LiveView(directory, audit=FullDiskAudit(full_at=RecordKind.VIEWER_CONNECTED))
    async with a_box(view) as box, box.viewer() as viewer:
        assert (await ending(viewer))[0] == 1011
        assert box.display.clients == []


@pytest.mark.promise("audit:no-record-no-run")
async def test_input_that_cannot_be_recorded_does_not_reach_the_display(directory: Path) -> None:
    audit = FullDiskAudit(full_at=RecordKind.TAKEOVER_BEGUN)
    view = LiveView(directory, audit=audit, grant=a_grant(ViewMode.CONTROL))
    async with a_box(view) as box, box.viewer() as viewer:
        await viewer.send(HANDSHAKE)
        await box.display.wait_for(lambda got: got == HANDSHAKE)
        await viewer.send(KEY)
        assert (await ending(viewer))[0] == 1011
        assert bytes(box.display.received) == HANDSHAKE


async def test_words_on_a_socket_that_has_none_end_it(directory: Path) -> None:
    view = LiveView(directory, grant=a_grant(ViewMode.CONTROL))
    async with a_box(view) as box, box.viewer("binary") as viewer:
        await viewer.send('{"type":"take_over"}')
        assert (await ending(viewer))[0] == 1008
        assert view.takeover.seconds_left() == 0


@pytest.mark.promise("view:server-side")
async def test_a_view_socket_cannot_take_over_by_asking(directory: Path) -> None:
    view = LiveView(directory)
    async with a_box(view) as box, box.viewer(WITH_WORDS) as viewer:
        await viewer.send('{"type":"take_over"}')
        assert (await ending(viewer))[0] == 1008
        assert view.takeover.seconds_left() == 0


async def test_frames_have_a_largest_size(directory: Path) -> None:
    async with a_box(LiveView(directory)) as box, box.viewer() as viewer:
        await viewer.send(bytes(vnc_bridge.MAX_FRAME_BYTES + 1))
        assert (await ending(viewer))[0] == 1009


async def test_take_over_and_hand_back_are_shown_to_everyone_who_watches(directory: Path) -> None:
    view = LiveView(directory, grant=a_grant(ViewMode.CONTROL))
    async with a_box(view) as box, box.viewer(WITH_WORDS) as controlling:
        control = Words(controlling)
        assert (await control.wait_for("hello"))["mode"] == "control"
        view.grant = a_grant()
        async with box.viewer(WITH_WORDS) as watching:
            watch = Words(watching)
            assert (await watch.wait_for("hello"))["mode"] == "view"
            await watch.wait_for("situation", person_in_control=False)
            await control.say(type="take_over")
            await control.wait_for("situation", person_in_control=True, you=True, held=True)
            await watch.wait_for("situation", person_in_control=True, you=False, held=False)
            assert view.takeover.seconds_left() > 0
            await control.say(type="hand_back")
            await control.wait_for("situation", person_in_control=False, you=False, held=False)
            await watch.wait_for("situation", person_in_control=False)
            assert view.takeover.seconds_left() == 0


async def test_the_end_of_control_by_idleness_is_recorded(directory: Path) -> None:
    clock, audit = FakeClock(), RecordingAudit()
    view = LiveView(directory, clock=clock, audit=audit, grant=a_grant(ViewMode.CONTROL))
    async with a_box(view) as box, box.viewer(WITH_WORDS) as viewer:
        words = Words(viewer)
        await viewer.send(HANDSHAKE + KEY)
        await words.wait_for("situation", you=True, held=False)
        clock.advance(10)
        await words.wait_for("situation", you=False)
        await until(lambda: audit.records[-1].kind is RecordKind.TAKEOVER_ENDED)
        assert audit.records[-1].subcommand == "idle"


async def test_the_list_shows_the_subjects_own_calls_old_and_new(directory: Path) -> None:
    def an_activity(subject: str, what: str) -> Activity:
        return Activity(at=1.0, subject=subject, session_id="s1", what=what, result="ok", duration_ms=1.0)

    view = LiveView(directory)
    view.activity.add(an_activity("alice", "open"))
    view.activity.add(an_activity("bob", "fill"))
    async with a_box(view) as box, box.viewer(WITH_WORDS) as viewer:
        words = Words(viewer)
        first = await words.wait_for("activity")
        assert [entry["what"] for entry in first["entries"]] == ["open"]
        view.activity.add(an_activity("bob", "press"))
        view.activity.add(an_activity("alice", "click"))
        second = await words.wait_for("activity")
        assert [entry["what"] for entry in second["entries"]] == ["click"]


async def test_open_sessions_are_told_and_a_control_socket_can_raise_one(directory: Path) -> None:
    view = LiveView(directory, grant=a_grant(ViewMode.CONTROL))
    async with a_box(view) as box, box.viewer(WITH_WORDS) as viewer:
        words = Words(viewer)
        await words.wait_for("situation", open_sessions=0, sessions=[])
        view.windows.shown.append(
            SessionWindow(session_id="s1", host="a.example", title="A", last_used=1000.0, in_front=False)
        )
        told = await words.wait_for("situation", open_sessions=1)
        assert told["sessions"][0]["id"] == "s1"
        await words.say(type="raise", session="s1")
        await until(lambda: view.windows.raised)
        assert view.windows.raised == [("alice", "s1")]


async def test_a_viewer_that_reads_nothing_is_given_up(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vnc_bridge, "STALL_SECONDS", 0.5)
    audit = RecordingAudit()
    sent = [0]

    async def flood(display: StandInDisplay) -> None:
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
    # What piled up lies in the kernel's buffers, not in the server.
    assert sent[0] < 64 * 1024 * 1024


def split(address: str) -> tuple[str, int]:
    host, _, port = address.partition(":")
    return host, int(port)


async def test_the_page_and_its_files_are_there_for_everyone(directory: Path) -> None:
    view = LiveView(directory, grant=None)
    async with serving_app(view.app()) as address, httpx2.AsyncClient(base_url=f"http://{address}") as http:
        for path, kind in (
            ("/vnc/", "text/html"),
            ("/vnc/index.html?ticket=T&path=websockify%3Fticket%3DT&autoconnect=true", "text/html"),
            ("/vnc/viewer.js", "text/javascript"),
            ("/vnc/viewer.css", "text/css"),
            ("/vnc/novnc/core/rfb.js", "text/javascript"),
        ):
            answer = await http.get(path)
            assert answer.status_code == 200
            assert answer.headers["content-type"].startswith(kind)
            assert "script-src 'self';" in answer.headers["content-security-policy"]
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["referrer-policy"] == "no-referrer"
            again = await http.get(path, headers={"If-None-Match": answer.headers["etag"]})
            assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    "path",
    ["/vnc/novnc", "/vnc/novnc/core/", "/vnc/../settings.py", "/vnc/novnc/../secret", "/vnc/page_files.py", "/x"],
)
async def test_nothing_else_is_a_file(directory: Path, path: str) -> None:
    (directory / "secret").write_text("secret", encoding="utf-8")
    view = LiveView(directory)
    async with serving_app(view.app()) as address:
        host, port = split(address)
        async with await anyio.connect_tcp(host, port) as raw:
            await raw.send(f"GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n".encode())
            assert (await raw.receive()).startswith(b"HTTP/1.1 404")


async def test_a_missing_slash_is_added_and_the_ticket_stays(directory: Path) -> None:
    view = LiveView(directory)
    async with serving_app(view.app()) as address, httpx2.AsyncClient(base_url=f"http://{address}") as http:
        answer = await http.get("/vnc?ticket=T")
        assert (answer.status_code, answer.headers["location"]) == (307, "vnc/?ticket=T")
        assert (await http.post("/vnc/")).status_code == 405
