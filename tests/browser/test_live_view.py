"""The live view in a second real browser, which opens the view link of a real server."""

from __future__ import annotations

import base64
import http.client
import io
import json
import os
import signal
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest
from PIL import Image
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from browser_shell.http.tokens import make_private_key, make_token, public_pem
from support.in_flight import InFlight
from support.pages import Site
from support.server import Server, Session, running_server
from support.viewer_browser import ViewerBrowser, ViewerPage, eventually, running_viewer_browser

IDLE_SECONDS = 3
GREEN, BLUE = (26, 143, 76), (16, 64, 192)
QUARTERS = """<!doctype html><title>Quarters</title>
<body style="margin:0;height:100vh;display:grid;grid-template:1fr 1fr/1fr 1fr">
<div style="background:#c02020"></div><div style="background:#20a040"></div>
<div style="background:#2040c0"></div><div style="background:#e0c020"></div>"""
LISTENING = """<body style="margin:0;background:#1a8f4c"><textarea id=words autofocus
  style="position:fixed;inset:40px;font-size:40px"></textarea>
<script>for (const kind of ['keydown', 'mousedown', 'wheel', 'paste', 'mousemove'])
  addEventListener(kind, event => report(kind + ':' + (event.key ?? '')))
addEventListener('input', () => report('text:' + words.value))</script>"""


def plain(colour: tuple[int, int, int]) -> str:
    return f"<!doctype html><title>Plain</title><body style='background:rgb{colour}'>"


@dataclass(frozen=True)
class Box:
    """A server whose private key the test has, so that it can make any token."""

    server: Server
    private_key: Any

    def token(self, *, subject: str = "alice", seconds: int = 3600) -> str:
        return make_token(self.private_key, subject=subject, seconds=seconds, now=time.time())

    def link(self, **token: Any) -> str:
        """Return a view link like the one that the server prints."""
        return f"http://127.0.0.1:{self.server.port}/vnc/#token={self.token(**token)}"

    def ticket(self, mode: str = "view", **token: Any) -> str:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=10)
        try:
            headers = {"Authorization": f"Bearer {self.token(**token)}", "Content-Type": "application/json"}
            connection.request("POST", "/tickets", json.dumps({"mode": mode}), headers)
            response = connection.getresponse()
            assert response.status == 200
            return str(json.loads(response.read())["ticket"])
        finally:
            connection.close()

    def raw_viewer(self, mode: str, **token: Any) -> ClientConnection:
        """Open a socket without the page, as an attacker would."""
        return self.socket(f"/vnc/websockify?ticket={self.ticket(mode, **token)}")

    def socket(self, path: str) -> ClientConnection:
        origin = Origin(f"http://127.0.0.1:{self.server.port}")
        address = f"ws://127.0.0.1:{self.server.port}{path}"
        return connect(address, origin=origin, max_size=None, compression=None, proxy=None)

    def session(self, session_id: str) -> Session:
        return self.server.session(session_id)

    def audit(self) -> list[dict[str, Any]]:
        (path,) = self.server.state.glob("*/audit.jsonl")
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def box(site: Site) -> Iterator[Box]:
    key = make_private_key("RS256")
    policy = {
        "open": {"unsafe_allow_addresses": [f"127.0.0.1:{site.port}"]},
        "viewing": {"control_idle_seconds": IDLE_SECONDS, "control_subjects": ["alice"]},
        "output": {"screenshot_format": "png"},
    }
    env = {"JWT_PUBLIC_KEY": base64.b64encode(public_pem(key)).decode()}
    with running_server(policy, env=env) as server:
        running = Box(server, key)
        server.token = running.token()
        yield running


@pytest.fixture(scope="module")
def viewer_browser() -> Iterator[ViewerBrowser]:
    with running_viewer_browser() as browser:
        yield browser


@pytest.fixture
def viewer(viewer_browser: ViewerBrowser) -> Iterator[ViewerPage]:
    with viewer_browser.page() as page:
        yield page


@pytest.fixture
def session(box: Box) -> Iterator[Session]:
    session = box.session("shown")
    yield session
    eventually(lambda: session.run("close").exit_code == 0, "a person stayed in control")


def shows(viewer: ViewerPage, colour: tuple[int, int, int], *, at: tuple[int, int] = (640, 700)) -> bool:
    pixel = viewer.picture().getpixel(at)
    assert isinstance(pixel, tuple)
    return all(abs(a - b) < 16 for a, b in zip(pixel, colour, strict=True))


def wait_for_title(viewer: ViewerPage, title: str) -> None:
    script = f"document.querySelector('#overlay-title')?.innerText === {json.dumps(title)}"
    viewer.wait_for(script, f"the page does not show {title!r}")


def wait_for_colour(viewer: ViewerPage, colour: tuple[int, int, int]) -> None:
    eventually(lambda: shows(viewer, colour), f"the picture never became {colour}")


def place_of(page: Image.Image, display: Image.Image) -> tuple[int, int]:
    """Return the top left corner of the page on the display, below the browser's own bars."""
    left = (display.width - page.width) // 2
    top = display.height - page.height - left
    return left, top


def test_view_link_shows_the_page_that_the_agent_opened(
    box: Box, viewer: ViewerPage, session: Session, site: Site
) -> None:
    viewer.visit(box.link())
    viewer.wait_until_live()
    wait_for_title(viewer, "No session is open yet")
    assert viewer.text("#mode") == "VIEW"
    assert viewer.evaluate("location.href") == f"http://127.0.0.1:{box.server.port}/vnc/"

    session.ok("open", site.add("/quarters", QUARTERS))
    page = Image.open(io.BytesIO(session.run("screenshot").attachments[0][1])).convert("RGB")
    viewer.wait_for("document.querySelector('#overlay').hidden", "the empty state stayed")

    def same_picture() -> bool:
        display = viewer.picture()
        left, top = place_of(page, display)
        spots = [(x, y) for x in range(20, page.width, 97) for y in range(20, page.height, 97)]
        return all(
            abs(a - b) < 24
            for x, y in spots
            for a, b in zip(page.getpixel((x, y)), display.getpixel((left + x, top + y)), strict=True)  # type: ignore[arg-type]  # Pillow's pixels may be single numbers
        )

    eventually(same_picture, "the picture is not the page")
    viewer.wait_for("document.querySelector('#activity').innerText.includes('screenshot')", "the call is not listed")
    assert viewer.text("#activity li:last-child .what") == "open · shown"
    assert "quarters" not in viewer.text("#activity")
    assert viewer.console == []
    elsewhere = [
        url for url in viewer.requests if not url.startswith((f"http://127.0.0.1:{box.server.port}/", "data:"))
    ]
    assert elsewhere == []
    assert not any("eyJ" in url for url in viewer.requests), "the token was sent in a URL"


KEY_X = struct.pack(">BBxxI", 4, 1, ord("x")) + struct.pack(">BBxxI", 4, 0, ord("x"))
PRESS = struct.pack(">BBHH", 5, 1, 640, 600) + struct.pack(">BBHH", 5, 0, 640, 600)
CUT_TEXT = struct.pack(">BxxxI", 6, 6) + b"secret"


def send_handshake(viewer: ClientConnection) -> None:
    viewer.send(b"RFB 003.008\n\x01\x01")


def test_input_reaches_the_page_from_control_sockets_only(
    box: Box, viewer: ViewerPage, session: Session, site: Site
) -> None:
    page = site.watch(LISTENING)
    session.ok("open", page.url)
    viewer.visit(box.link())
    viewer.wait_until_live()
    wait_for_green_margin(viewer)
    page.reports.clear()

    viewer.click(*viewer.display_point(640, 600))
    viewer.type("abc")
    with box.raw_viewer("view") as watching, box.raw_viewer("control") as controlling:
        send_handshake(watching)
        watching.send(KEY_X + PRESS + CUT_TEXT + with_control("v"))
        assert watching.ping().wait(10), "the server did not read the messages of the view socket"
        send_handshake(controlling)
        controlling.send(PRESS + struct.pack(">BBxxI", 4, 1, ord("k")) + struct.pack(">BBxxI", 4, 0, ord("k")))
        page.wait_for("keydown:k", "mousedown:")
    assert [event for event in page.reports if event.startswith("keydown")] == ["keydown:k"]
    assert page.reports.count("mousedown:") == 1
    assert "paste:" not in page.reports


def read_exactly(viewer: ClientConnection, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = viewer.recv(timeout=10)
        assert isinstance(part, bytes)
        data += part
    assert len(data) == size, "the display sent more than expected"
    return data


def test_clipboard_of_a_page_is_not_sent_to_viewers(box: Box, session: Session, site: Site) -> None:
    page = site.watch(LISTENING + "<script>addEventListener('copy', () => report('copy:'))</script>")
    session.ok("open", page.url)
    session.ok("fill", "#words", "secret")
    with box.raw_viewer("control") as viewer:
        send_handshake(viewer)
        # Version, one security type, its result, and the display with its name.
        head = b""
        while len(head) < 12 + 2 + 4 + 24:
            part = viewer.recv(timeout=10)
            assert isinstance(part, bytes)
            head += part
        (name_length,) = struct.unpack_from(">I", head, 12 + 2 + 4 + 20)
        read_exactly(viewer, 12 + 2 + 4 + 24 + name_length - len(head))
        viewer.send(PRESS + with_control("a") + with_control("c"))
        page.wait_for("copy:")
        # No picture was requested yet, so the next message is the reply to this request or a clipboard.
        viewer.send(struct.pack(">BBHHHH", 3, 0, 0, 0, 1, 1))
        reply = viewer.recv(timeout=10)
        assert reply[0] == 0, "the display sent its clipboard"


def with_control(letter: str) -> bytes:
    keys = ((1, 0xFFE3), (1, ord(letter)), (0, ord(letter)), (0, 0xFFE3))
    return b"".join(struct.pack(">BBxxI", 4, down, symbol) for down, symbol in keys)


def wait_for_green_margin(viewer: ViewerPage) -> None:
    """Wait for the margin of the page above its text field."""
    eventually(lambda: any(shows(viewer, GREEN, at=(12, y)) for y in range(200, 1000, 50)), "the page is not shown")


def test_agents_wait_from_takeover_until_hand_back(
    box: Box, viewer: ViewerPage, viewer_browser: ViewerBrowser, session: Session, site: Site
) -> None:
    page = site.watch(LISTENING)
    session.ok("open", page.url)
    viewer.visit(box.link())
    viewer.wait_until_live()
    assert viewer.text("#control") == "Take over"
    viewer.click_element("#control")
    viewer.wait_for("document.body.dataset.you === 'yes'", "the person is not in control")
    assert viewer.text("#mode") == "CONTROL"

    refused = session.run("get", "title")
    assert (refused.exit_code, refused.is_error) == (75, True)
    assert refused.stderr.startswith("HUMAN_IN_CONTROL: ")
    assert refused.meta["name"] == "HUMAN_IN_CONTROL"
    assert 0 < refused.meta["retry_after"] <= 30
    assert session.run("close").exit_code == 75
    viewer.wait_for("document.querySelector('#activity').innerText.includes('HUMAN_IN_CONTROL')", "not listed")

    with viewer_browser.page() as colleague:
        colleague.visit(box.link())
        colleague.wait_until_live()
        colleague.wait_for("document.querySelector('#turn').innerText.startsWith('A person')", "no takeover shown")

    page.reports.clear()
    viewer.click(*viewer.display_point(640, 600))
    viewer.type("hi")
    page.wait_for("mousedown:", "keydown:h", "keydown:i")
    viewer.evaluate("document.querySelector('#text').value = ' Hello, {World}!'")
    viewer.click_element("#typing button")
    page.wait_for("text:hi Hello, {World}!")

    viewer.click_element("#control")
    viewer.wait_for("document.body.dataset.you === 'no'", "the person is still in control")
    assert session.ok("get", "title") == {"title": "watched"}
    kinds = [(record["kind"], record.get("subcommand")) for record in box.audit() if record.get("tool") == "viewer"]
    assert ("TAKEOVER_BEGUN", "button") in kinds
    assert ("TAKEOVER_ENDED", "handed back") in kinds
    assert ("VIEWER_CONNECTED", "control") in kinds
    assert ("VIEWER_LEFT", "view") in kinds


def test_input_alone_gives_control_until_idle(box: Box, session: Session, site: Site) -> None:
    session.ok("open", site.watch(LISTENING).url)
    with box.raw_viewer("control") as viewer:
        send_handshake(viewer)
        viewer.send(KEY_X)
        eventually(lambda: session.run("get", "title").exit_code == 75, "the agent did not have to wait")
        refused = session.run("get", "title")
        if refused.exit_code == 75:
            assert 0 < refused.meta["retry_after"] <= IDLE_SECONDS
        eventually(lambda: session.run("get", "title").exit_code == 0, "the person stayed in control")


def test_running_call_finishes_after_a_takeover(box: Box, session: Session, site: Site) -> None:
    session.ok("open", site.add("/waiting", plain(BLUE)))
    with box.raw_viewer("control") as viewer:
        send_handshake(viewer)
        call = InFlight(session, "wait", 1500)
        # The audit log shows when the call has started.
        eventually(
            lambda: any(r["kind"] == "SANDBOX_EXEC" and r["subcommand"] == "wait" for r in box.audit()),
            "the call did not start",
        )
        viewer.send(KEY_X)
        eventually(lambda: session.run("get", "title").exit_code == 75, "the agent did not have to wait")
        assert call.outcome().exit_code == 0


def test_a_takeover_stops_the_steps_of_a_running_call(box: Box, session: Session, site: Site) -> None:
    page = site.watch("<button id=b onclick='report(1)'>b</button>")
    session.ok("open", page.url)
    with box.raw_viewer("control") as viewer:
        send_handshake(viewer)
        call = InFlight(session, "hover", "#b", then=[["wait", 1500], ["click", "#b"], ["close"]])
        eventually(
            lambda: any(r["kind"] == "SANDBOX_EXEC" and r.get("step") == 2 for r in box.audit()),
            "the second step did not start",
        )
        viewer.send(KEY_X)
        outcome = call.outcome()
    assert (outcome.exit_code, outcome.meta["name"]) == (75, "HUMAN_IN_CONTROL")
    assert outcome.stderr.startswith("HUMAN_IN_CONTROL: step 3 of 4 (click): ")
    assert "1 step did not run" in outcome.stderr
    assert len(json.loads(outcome.stdout)) == 2
    assert page.reports == []


def test_expired_token_closes_the_viewer_socket(box: Box, viewer: ViewerPage) -> None:
    with box.raw_viewer("view", seconds=4) as socket:
        viewer.visit(box.link(seconds=4))
        with suppress(ConnectionClosed):
            while True:
                socket.recv(timeout=20)
        assert socket.close_code == 4401
    wait_for_title(viewer, "This link has ended")
    assert viewer.evaluate("sessionStorage.length") == 0


def test_several_viewers_see_the_session_that_is_in_use(
    box: Box, viewer: ViewerPage, viewer_browser: ViewerBrowser, session: Session, site: Site
) -> None:
    other = box.session("other")
    session.ok("open", site.add("/green", plain(GREEN)))
    other.ok("open", site.add("/blue", plain(BLUE)))
    viewer.visit(f"{box.link()}&mode=control")
    viewer.wait_until_live()
    with viewer_browser.page() as colleague:
        colleague.visit(box.link(subject="bob"))
        colleague.wait_until_live()
        for watcher in (viewer, colleague):
            wait_for_colour(watcher, BLUE)
        session.ok("get", "title")
        for watcher in (viewer, colleague):
            wait_for_colour(watcher, GREEN)
        viewer.wait_for("document.querySelectorAll('#sessions button').length === 2", "not both sessions are listed")
        viewer.click_element("#sessions button[data-session=other]")
        for watcher in (viewer, colleague):
            wait_for_colour(watcher, BLUE)
        # Bob watches the same display, but sees no sessions or calls of other subjects.
        assert colleague.evaluate("document.querySelectorAll('#sessions button, #activity li').length") == 0
        # The policy gives Bob no control.
        colleague.click_element("#control")
        colleague.wait_for("document.querySelector('#control').disabled", "the button is not disabled")
        colleague.wait_until_live()
        assert colleague.text("#mode") == "VIEW"
    other.ok("close")


def test_page_reconnects_after_a_restart_of_the_display(
    box: Box, viewer: ViewerPage, session: Session, site: Site
) -> None:
    page = site.add("/green", plain(GREEN))
    session.ok("open", page)
    viewer.visit(box.link())
    viewer.wait_until_live()
    wait_for_colour(viewer, GREEN)
    os.kill(box.server.mark("xvnc"), signal.SIGKILL)
    viewer.wait_for("document.body.dataset.state !== 'connected'", "the page did not notice")
    viewer.wait_until_live()
    eventually(lambda: session.run("open", page).exit_code == 0, "the browser did not come back", 60)
    wait_for_colour(viewer, GREEN)


def test_novnc_style_url_with_a_ticket_works_once(
    box: Box, viewer: ViewerPage, viewer_browser: ViewerBrowser, session: Session, site: Site
) -> None:
    session.ok("open", site.add("/green", plain(GREEN)))
    ticket = box.ticket()
    url = (
        f"http://127.0.0.1:{box.server.port}/vnc/index.html?ticket={ticket}"
        f"&path=websockify%3Fticket%3D{ticket}&autoconnect=true"
    )
    viewer.visit(url)
    viewer.wait_until_live()
    wait_for_colour(viewer, GREEN)
    assert ticket not in viewer.evaluate("location.href")
    assert viewer.evaluate("document.querySelector('#control').hidden")
    with viewer_browser.page() as second:
        second.visit(url.replace(f"ticket={ticket}&", "", 1))
        wait_for_title(second, "This link was already used")


def test_page_without_a_link_shows_what_it_needs(box: Box, viewer: ViewerPage) -> None:
    viewer.visit(f"http://127.0.0.1:{box.server.port}/vnc")
    wait_for_title(viewer, "This page needs a link")


def test_page_fits_a_phone(box: Box, viewer: ViewerPage, session: Session, site: Site) -> None:
    session.ok("open", site.add("/green", plain(GREEN)))
    viewer.resize(390, 844, phone=True)
    viewer.visit(f"{box.link()}&mode=control")
    viewer.wait_until_live()
    wait_for_colour(viewer, GREEN)
    assert viewer.evaluate("document.documentElement.scrollWidth") <= 390
    width, height = viewer.evaluate(
        "(box => [box.width, box.height])(document.querySelector('#screen canvas').getBoundingClientRect())"
    )
    assert 380 <= width <= 390
    assert height > 250
    smallest = viewer.evaluate(
        "Math.min(...[...document.querySelectorAll('button:not(nav *)')].filter(b => b.offsetParent)"
        ".map(b => b.getBoundingClientRect().height))"
    )
    assert smallest >= 44, "a button is too small for a finger"


def test_tickets_and_tokens_are_not_logged(box: Box) -> None:
    ticket = box.ticket()
    token = box.token()
    with box.socket(f"/websockify?ticket={ticket}") as viewer:
        viewer.recv(timeout=10)
    written = "".join(box.server.lines) + json.dumps(box.audit())
    assert ticket not in written
    assert token.rpartition(".")[2] not in written
