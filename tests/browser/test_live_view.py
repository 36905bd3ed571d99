"""People at the live view: a second real browser opens the view link of a real server."""

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
from support.person import Person, PersonsBrowser, eventually, running_persons_browser
from support.server import Server, Session, running_server

IDLE_SECONDS = 3
GREEN, BLUE = (26, 143, 76), (16, 64, 192)
QUARTERS = """<!doctype html><title>Quarters</title>
<body style="margin:0;height:100vh;display:grid;grid-template:1fr 1fr/1fr 1fr">
<div style="background:#c02020"></div><div style="background:#20a040"></div>
<div style="background:#2040c0"></div><div style="background:#e0c020"></div>"""
LISTENING = """<body style="margin:0;background:#1a8f4c"><textarea id=words autofocus
  style="position:fixed;inset:40px;font-size:40px"></textarea>
<script>for (const kind of ['keydown', 'mousedown', 'wheel', 'paste', 'mousemove'])
  addEventListener(kind, event => tell(kind + ':' + (event.key ?? '')))
addEventListener('input', () => tell('text:' + words.value))</script>"""


def plain(colour: tuple[int, int, int]) -> str:
    return f"<!doctype html><title>Plain</title><body style='background:rgb{colour}'>"


@dataclass(frozen=True)
class Box:
    """A server with a key of our own, so that tokens of every kind can be made."""

    server: Server
    private_key: Any

    def token(self, *, subject: str = "alice", seconds: int = 3600) -> str:
        return make_token(self.private_key, subject=subject, seconds=seconds, now=time.time())

    def link(self, **token: Any) -> str:
        """As the server prints it for its throw-away token."""
        return f"http://127.0.0.1:{self.server.port}/vnc/#token={self.token(**token)}"

    def ticket(self, mode: str = "view", **token: Any) -> str:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=10)
        try:
            headers = {"Authorization": f"Bearer {self.token(**token)}", "Content-Type": "application/json"}
            connection.request("POST", "/tickets", json.dumps({"mode": mode}), headers)
            answer = connection.getresponse()
            assert answer.status == 200
            return str(json.loads(answer.read())["ticket"])
        finally:
            connection.close()

    def raw_viewer(self, mode: str, **token: Any) -> ClientConnection:
        """A socket without a page, as somebody would write who wants more than the page offers."""
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
def persons_browser() -> Iterator[PersonsBrowser]:
    with running_persons_browser() as browser:
        yield browser


@pytest.fixture
def person(persons_browser: PersonsBrowser) -> Iterator[Person]:
    with persons_browser.person() as somebody:
        yield somebody


@pytest.fixture
def session(box: Box) -> Iterator[Session]:
    session = box.session("shown")
    yield session
    eventually(lambda: session.run("close").exit_code == 0, "a person stayed in control")


def shows(person: Person, colour: tuple[int, int, int], *, at: tuple[int, int] = (640, 700)) -> bool:
    found = person.picture().getpixel(at)
    assert isinstance(found, tuple)
    return all(abs(one - other) < 16 for one, other in zip(found, colour, strict=True))


def wait_for_colour(person: Person, colour: tuple[int, int, int]) -> None:
    eventually(lambda: shows(person, colour), f"the picture never became {colour}")


def place_of(page: Image.Image, display: Image.Image) -> tuple[int, int]:
    """Where on the display the top left corner of the page lies: below the browser's own bars, left of nothing."""
    left = (display.width - page.width) // 2
    top = display.height - page.height - left
    return left, top


def test_the_view_link_opens_straight_into_the_page_that_was_opened(
    box: Box, person: Person, session: Session, site: Site
) -> None:
    person.visit(box.link())
    person.wait_until_live()
    person.wait_for("document.querySelector('#overlay-title').innerText === 'No session is open yet'", "no empty state")
    assert person.text("#mode") == "VIEW"
    assert person.evaluate("location.href") == f"http://127.0.0.1:{box.server.port}/vnc/"

    session.ok("open", site.add("/quarters", QUARTERS))
    page = Image.open(io.BytesIO(session.run("screenshot").attachments[0][1])).convert("RGB")
    person.wait_for("document.querySelector('#overlay').hidden", "the empty state stayed")

    def same_picture() -> bool:
        display = person.picture()
        left, top = place_of(page, display)
        spots = [(x, y) for x in range(20, page.width, 97) for y in range(20, page.height, 97)]
        return all(
            abs(one - other) < 24
            for x, y in spots
            for one, other in zip(page.getpixel((x, y)), display.getpixel((left + x, top + y)), strict=True)  # type: ignore[arg-type]  # Pillow's pixels may be single numbers
        )

    eventually(same_picture, "the picture is not the page")
    person.wait_for("document.querySelector('#activity').innerText.includes('screenshot')", "the call is not listed")
    assert person.text("#activity li:last-child .what") == "open · shown"
    assert "quarters" not in person.text("#activity")
    assert person.console == []
    elsewhere = [
        url for url in person.requests if not url.startswith((f"http://127.0.0.1:{box.server.port}/", "data:"))
    ]
    assert elsewhere == []
    assert not any("eyJ" in url for url in person.requests), "the token was sent in a URL"


KEY_X = struct.pack(">BBxxI", 4, 1, ord("x")) + struct.pack(">BBxxI", 4, 0, ord("x"))
PRESS = struct.pack(">BBHH", 5, 1, 640, 600) + struct.pack(">BBHH", 5, 0, 640, 600)
CUT_TEXT = struct.pack(">BxxxI", 6, 6) + b"secret"


def shake_hands(viewer: ClientConnection) -> None:
    viewer.send(b"RFB 003.008\n\x01\x01")


def test_view_mode_cannot_touch_and_control_mode_can(box: Box, person: Person, session: Session, site: Site) -> None:
    page = site.watch(LISTENING)
    session.ok("open", page.url)
    person.visit(box.link())
    person.wait_until_live()
    wait_for_colour_or_text(person)
    page.told.clear()

    person.click(*person.on_the_display(640, 600))
    person.type("abc")
    with box.raw_viewer("view") as watching, box.raw_viewer("control") as controlling:
        shake_hands(watching)
        watching.send(KEY_X + PRESS + CUT_TEXT + with_control("v"))
        assert watching.ping().wait(10), "the server did not read what the view socket sent"
        shake_hands(controlling)
        controlling.send(PRESS + struct.pack(">BBxxI", 4, 1, ord("k")) + struct.pack(">BBxxI", 4, 0, ord("k")))
        page.saw("keydown:k", "mousedown:")
    assert [told for told in page.told if told.startswith("keydown")] == ["keydown:k"]
    assert page.told.count("mousedown:") == 1
    assert "paste:" not in page.told


def read_exactly(viewer: ClientConnection, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = viewer.recv(timeout=10)
        assert isinstance(part, bytes)
        data += part
    assert len(data) == size, "the display said more than it was asked"
    return data


def test_what_a_page_copies_is_not_sent_to_viewers(box: Box, session: Session, site: Site) -> None:
    page = site.watch(LISTENING + "<script>addEventListener('copy', () => tell('copy:'))</script>")
    session.ok("open", page.url)
    session.ok("fill", "#words", "secret")
    with box.raw_viewer("control") as viewer:
        shake_hands(viewer)
        # Version, one security type, its result, and the display with its name.
        head = b""
        while len(head) < 12 + 2 + 4 + 24:
            part = viewer.recv(timeout=10)
            assert isinstance(part, bytes)
            head += part
        (name_length,) = struct.unpack_from(">I", head, 12 + 2 + 4 + 20)
        read_exactly(viewer, 12 + 2 + 4 + 24 + name_length - len(head))
        viewer.send(PRESS + with_control("a") + with_control("c"))
        page.saw("copy:")
        # Nobody has asked for a picture yet. The next words of the display are an answer to this, or a clipboard.
        viewer.send(struct.pack(">BBHHHH", 3, 0, 0, 0, 1, 1))
        answer = viewer.recv(timeout=10)
        assert answer[0] == 0, "the display sent its clipboard"


def with_control(letter: str) -> bytes:
    keys = ((1, 0xFFE3), (1, ord(letter)), (0, ord(letter)), (0, 0xFFE3))
    return b"".join(struct.pack(">BBxxI", 4, down, symbol) for down, symbol in keys)


def wait_for_colour_or_text(person: Person) -> None:
    """The page's own margin, above its text field."""
    eventually(lambda: any(shows(person, GREEN, at=(12, y)) for y in range(200, 1000, 50)), "the page is not shown")


def test_taking_over_makes_agents_wait_until_it_is_handed_back(
    box: Box, person: Person, persons_browser: PersonsBrowser, session: Session, site: Site
) -> None:
    page = site.watch(LISTENING)
    session.ok("open", page.url)
    person.visit(box.link())
    person.wait_until_live()
    assert person.text("#control") == "Take over"
    person.press("#control")
    person.wait_for("document.body.dataset.you === 'yes'", "the person is not in control")
    assert person.text("#mode") == "CONTROL"

    refused = session.run("get", "title")
    assert (refused.exit_code, refused.is_error) == (75, True)
    assert refused.stderr.startswith("HUMAN_IN_CONTROL: ")
    assert refused.meta["name"] == "HUMAN_IN_CONTROL"
    assert 0 < refused.meta["retry_after"] <= 30
    assert session.run("close").exit_code == 75
    person.wait_for("document.querySelector('#activity').innerText.includes('HUMAN_IN_CONTROL')", "not listed")

    with persons_browser.person() as colleague:
        colleague.visit(box.link())
        colleague.wait_until_live()
        colleague.wait_for("document.querySelector('#turn').innerText.startsWith('A person')", "nobody is told")

    page.told.clear()
    person.click(*person.on_the_display(640, 600))
    person.type("hi")
    page.saw("mousedown:", "keydown:h", "keydown:i")
    person.evaluate("document.querySelector('#words').value = ' Hello, {World}!'")
    person.press("#typing button")
    page.saw("text:hi Hello, {World}!")

    person.press("#control")
    person.wait_for("document.body.dataset.you === 'no'", "the person is still in control")
    assert session.ok("get", "title") == {"title": "watched"}
    kinds = [(record["kind"], record.get("subcommand")) for record in box.audit() if record.get("tool") == "viewer"]
    assert ("TAKEOVER_BEGUN", "button") in kinds
    assert ("TAKEOVER_ENDED", "handed back") in kinds
    assert ("VIEWER_CONNECTED", "control") in kinds
    assert ("VIEWER_LEFT", "view") in kinds


def test_input_alone_gives_control_for_a_while(box: Box, session: Session, site: Site) -> None:
    session.ok("open", site.watch(LISTENING).url)
    with box.raw_viewer("control") as viewer:
        shake_hands(viewer)
        viewer.send(KEY_X)
        eventually(lambda: session.run("get", "title").exit_code == 75, "the agent did not have to wait")
        refused = session.run("get", "title")
        if refused.exit_code == 75:
            assert 0 < refused.meta["retry_after"] <= IDLE_SECONDS
        eventually(lambda: session.run("get", "title").exit_code == 0, "the person stayed in control")


def test_a_call_under_way_is_finished_when_a_person_takes_over(box: Box, session: Session, site: Site) -> None:
    session.ok("open", site.add("/waiting", plain(BLUE)))
    with box.raw_viewer("control") as viewer:
        shake_hands(viewer)
        call = InFlight(session, "wait", 1500)
        # The records say when it has begun.
        eventually(
            lambda: any(r["kind"] == "SANDBOX_EXEC" and r["subcommand"] == "wait" for r in box.audit()),
            "it never began",
        )
        viewer.send(KEY_X)
        eventually(lambda: session.run("get", "title").exit_code == 75, "the agent did not have to wait")
        assert call.outcome().exit_code == 0


def test_a_socket_is_cut_when_its_token_expires(box: Box, person: Person) -> None:
    with box.raw_viewer("view", seconds=4) as viewer:
        person.visit(box.link(seconds=4))
        with suppress(ConnectionClosed):
            while True:
                viewer.recv(timeout=20)
        assert viewer.close_code == 4401
    person.wait_for("document.querySelector('#overlay-title').innerText === 'This link has ended'", "no word of it")
    assert person.evaluate("sessionStorage.length") == 0


def test_people_watch_side_by_side_and_pictures_follow_the_session_at_work(
    box: Box, person: Person, persons_browser: PersonsBrowser, session: Session, site: Site
) -> None:
    other = box.session("other")
    session.ok("open", site.add("/green", plain(GREEN)))
    other.ok("open", site.add("/blue", plain(BLUE)))
    person.visit(f"{box.link()}&mode=control")
    person.wait_until_live()
    with persons_browser.person() as colleague:
        colleague.visit(box.link(subject="bob"))
        colleague.wait_until_live()
        for who in (person, colleague):
            wait_for_colour(who, BLUE)
        session.ok("get", "title")
        for who in (person, colleague):
            wait_for_colour(who, GREEN)
        person.wait_for("document.querySelectorAll('#sessions button').length === 2", "not both sessions are listed")
        person.press("#sessions button[data-session=other]")
        for who in (person, colleague):
            wait_for_colour(who, BLUE)
        # Bob watches the same display, but the sessions and calls of others are not listed for him.
        assert colleague.evaluate("document.querySelectorAll('#sessions button, #activity li').length") == 0
        # And the policy lets him watch only.
        colleague.press("#control")
        colleague.wait_for("document.querySelector('#control').disabled", "bob was not told")
        colleague.wait_until_live()
        assert colleague.text("#mode") == "VIEW"
    other.ok("close")


def test_after_a_restart_of_the_display_the_page_comes_back_by_itself(
    box: Box, person: Person, session: Session, site: Site
) -> None:
    page = site.add("/green", plain(GREEN))
    session.ok("open", page)
    person.visit(box.link())
    person.wait_until_live()
    wait_for_colour(person, GREEN)
    os.kill(box.server.mark("xvnc"), signal.SIGKILL)
    person.wait_for("document.body.dataset.state !== 'connected'", "the page did not notice")
    person.wait_until_live()
    eventually(lambda: session.run("open", page).exit_code == 0, "the browser did not come back", 60)
    wait_for_colour(person, GREEN)


def test_the_url_of_other_boxes_works_once(
    box: Box, person: Person, persons_browser: PersonsBrowser, session: Session, site: Site
) -> None:
    session.ok("open", site.add("/green", plain(GREEN)))
    ticket = box.ticket()
    url = (
        f"http://127.0.0.1:{box.server.port}/vnc/index.html?ticket={ticket}"
        f"&path=websockify%3Fticket%3D{ticket}&autoconnect=true"
    )
    person.visit(url)
    person.wait_until_live()
    wait_for_colour(person, GREEN)
    assert ticket not in person.evaluate("location.href")
    assert person.evaluate("document.querySelector('#control').hidden")
    with persons_browser.person() as second:
        second.visit(url.replace(f"ticket={ticket}&", "", 1))
        second.wait_for(
            "document.querySelector('#overlay-title').innerText === 'This link was already used'", "no word of it"
        )


def test_without_a_link_the_page_says_what_it_needs(box: Box, person: Person) -> None:
    person.visit(f"http://127.0.0.1:{box.server.port}/vnc")
    person.wait_for("document.querySelector('#overlay-title')?.innerText === 'This page needs a link'", "no word of it")


def test_the_page_fits_a_phone(box: Box, person: Person, session: Session, site: Site) -> None:
    session.ok("open", site.add("/green", plain(GREEN)))
    person.show(390, 844, phone=True)
    person.visit(f"{box.link()}&mode=control")
    person.wait_until_live()
    wait_for_colour(person, GREEN)
    assert person.evaluate("document.documentElement.scrollWidth") <= 390
    width, height = person.evaluate(
        "(box => [box.width, box.height])(document.querySelector('#screen canvas').getBoundingClientRect())"
    )
    assert 380 <= width <= 390
    assert height > 250
    smallest = person.evaluate(
        "Math.min(...[...document.querySelectorAll('button:not(nav *)')].filter(b => b.offsetParent)"
        ".map(b => b.getBoundingClientRect().height))"
    )
    assert smallest >= 44, "a button is too small for a finger"


def test_nothing_of_a_credential_stays_behind(box: Box) -> None:
    """Neither tickets nor tokens are in what the server wrote."""
    ticket = box.ticket()
    token = box.token()
    with box.socket(f"/websockify?ticket={ticket}") as viewer:
        viewer.recv(timeout=10)
    written = "".join(box.server.lines) + json.dumps(box.audit())
    assert ticket not in written
    assert token.rpartition(".")[2] not in written
