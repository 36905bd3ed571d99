"""HTTP authentication: a clear error, no blocked page, and a prompt for a person where the policy allows it."""

from __future__ import annotations

import base64
import http.client
import json
import struct
import time
from collections.abc import Iterator

import pytest
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from support.pages import Request, Site, wait_until
from support.server import Outcome, Server, Session, running_server
from support.time_limits import UNBLOCKED_SECONDS
from support.viewer_browser import eventually

CHALLENGES = {
    "basic": 'Basic realm="staff"',
    "digest": 'Digest realm="staff", qop="auth", nonce="abc"',
    "negotiate": "Negotiate",
    "ntlm": "NTLM",
}
CREDENTIALS = "Basic " + base64.b64encode(b"ann:secret").decode()
TAB, ENTER, CONTROL = 0xFF09, 0xFF0D, 0xFFE3
"""X keysyms (keysymdef.h)."""


@pytest.fixture(scope="module", autouse=True)
def protected(site: Site) -> None:
    for name, challenge in CHALLENGES.items():
        site.add(f"/{name}", "<title>refused</title>", {"WWW-Authenticate": challenge}, status=401)
    site.add("/basic-empty", "", {"WWW-Authenticate": CHALLENGES["basic"]}, status=401)

    def staff(request: Request) -> str:
        signed_in = request.authorization == CREDENTIALS
        site.statuses["/staff"] = 200 if signed_in else 401
        return "<title>staff only</title>" if signed_in else "<title>refused</title>"

    site.add("/staff", staff, {"WWW-Authenticate": CHALLENGES["basic"]})


def refused(outcome: Outcome) -> bool:
    return (outcome.exit_code, outcome.meta.get("name")) == (1, "CREDENTIALS_REQUIRED")


@pytest.mark.promise("credentials:no-prompt")
@pytest.mark.parametrize("name", [*CHALLENGES, "basic-empty"])
def test_open_reports_that_credentials_are_required(browser: Session, site: Site, name: str) -> None:
    outcome = browser.run("open", f"{site.origin}/{name}")
    assert refused(outcome), outcome
    assert outcome.seconds < UNBLOCKED_SECONDS
    assert "browser.allow_login_prompts" in outcome.stderr.splitlines()[-1]
    page = site.watch("<button id=b onclick=\"report('alive')\">b</button>")
    browser.ok("open", page.url)
    browser.ok("click", "#b")
    page.wait_for("alive")


def test_a_click_that_leads_there_reports_it(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch("<a id=a href=/basic>a</a>", title="before").url)
    assert refused(browser.run("click", "#a"))
    assert browser.ok("back")["title"] == "before"


@pytest.mark.promise("credentials:no-prompt")
def test_resources_that_need_credentials_do_not_block_the_page(browser: Session, site: Site) -> None:
    page = site.watch(
        """<script src=/basic></script><img src=/digest><iframe src=/basic></iframe>
        <button id=b onclick="fetch('/basic').then(response => report(response.status))">b</button>""",
        title="page",
    )
    opened = browser.run("open", page.url)
    assert opened.data["title"] == "page"
    assert opened.seconds < UNBLOCKED_SECONDS
    browser.ok("click", "#b")
    page.wait_for(401)


def test_a_page_with_its_own_form_to_sign_in_is_not_an_error(browser: Session, site: Site) -> None:
    url = site.add("/form", "<title>sign in</title><input type=password>", status=401)
    opened = browser.run("open", url)
    assert opened.data["title"] == "sign in"
    assert "NOTE: the site answered with HTTP status 401" in opened.stderr


@pytest.fixture(scope="module")
def prompting_server(site: Site) -> Iterator[Server]:
    policy = {
        "open": {"unsafe_allow_addresses": [f"127.0.0.1:{site.port}"]},
        "browser": {"allow_login_prompts": [site.origin]},
        "viewing": {"control_idle_seconds": 1},
    }
    with running_server(policy) as running:
        yield running


@pytest.fixture
def prompting(prompting_server: Server) -> Iterator[Session]:
    session = prompting_server.session("prompting")
    yield session
    eventually(lambda: session.run("close").exit_code == 0, "a person stayed in control")


def person(server: Server) -> ClientConnection:
    """Connect a viewer that may use the keyboard."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    try:
        headers = {**server.authorization, "Content-Type": "application/json"}
        connection.request("POST", "/tickets", json.dumps({"mode": "control"}), headers)
        ticket = json.loads(connection.getresponse().read())["ticket"]
    finally:
        connection.close()
    origin, address = f"http://127.0.0.1:{server.port}", f"ws://127.0.0.1:{server.port}"
    return connect(f"{address}/vnc/websockify?ticket={ticket}", origin=Origin(origin), max_size=None, proxy=None)


def keys(*keysyms: int) -> bytes:
    """Encode key presses as RFB messages (RFC 6143 §7.5.4)."""
    return b"".join(struct.pack(">BBxxI", 4, down, keysym) for keysym in keysyms for down in (1, 0))


SELECT_ALL = struct.pack(">BBxxI", 4, 1, CONTROL) + keys(ord("a")) + struct.pack(">BBxxI", 4, 0, CONTROL)


def test_a_person_signs_in_at_the_prompt_of_an_origin_that_the_policy_lists(
    prompting_server: Server, prompting: Session, site: Site
) -> None:
    outcome = prompting.run("open", f"{site.origin}/staff")
    assert refused(outcome), outcome
    assert "live view" in outcome.stderr.splitlines()[-1]
    with person(prompting_server) as viewer:
        viewer.send(b"RFB 003.008\n\x01\x01")

        def enter() -> bool:
            """Enter name and password, in place of what an earlier attempt has left in the fields."""
            viewer.send(SELECT_ALL + keys(*map(ord, "ann"), TAB) + SELECT_ALL + keys(*map(ord, "secret"), ENTER))
            time.sleep(1)
            return any(request.authorization == CREDENTIALS for request in site.requests)

        # The prompt opens, and its window gets the keyboard, some time after the answer to the agent.
        wait_until(enter, seconds=30, what="the sign-in")
    eventually(lambda: prompting.run("get", "title").exit_code == 0, "a person stayed in control")
    assert prompting.ok("get", "title")["title"] == "staff only"
    assert prompting.ok("open", f"{site.origin}/staff")["title"] == "staff only"


def test_a_prompt_that_no_person_answers_does_not_block_the_session(prompting: Session, site: Site) -> None:
    assert refused(prompting.run("open", f"{site.origin}/basic"))
    browsed = prompting.run("open", site.watch("<a id=a href=/basic>a</a>", title="next").url)
    assert browsed.data["title"] == "next"
    assert browsed.seconds < UNBLOCKED_SECONDS
    assert refused(prompting.run("click", "#a"))
    assert prompting.ok("back")["title"] == "next"
