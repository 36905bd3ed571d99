"""The daemon's protocol is not documented. This suite runs every action that we send against the pinned binary.

It fails when an upgrade of agent-browser changes an action, a field or a reply. Each action goes to the daemon of a
real session, over its unix socket.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import pytest

from browser_shell.browser.driver import actions
from browser_shell.browser.driver.actions import Action
from browser_shell.browser.driver.agent_browser import ALLOWED_ACTIONS
from browser_shell.browser.driver.connection import DriverReply, connect
from support.pages import Site
from support.server import Server, Session

PAGE = """
<h1>Heading</h1>
<a id=l href="#there">link</a>
<input id=a aria-label=Name>
<input type=checkbox id=c aria-label=Agree>
<select id=s aria-label=Choice><option value=1>One<option value=2>Two</select>
<button id=b onclick="report('click')" ondblclick="report('dblclick')" onmouseover="report('hover')">Go</button>
<p id=x hidden>hidden</p>
<div style="height:3000px"></div>
"""


@pytest.fixture
def session(own_server: Server, site: Site) -> Iterator[Session]:
    session = own_server.session("contract")
    session.ok("open", site.watch(PAGE).url)
    session.ok("snapshot")
    yield session
    session.run("close")


def send(session: Session, action: Action) -> DriverReply:
    """Send one action over a new connection to the session's daemon."""
    (socket_path,) = session.server.devtools_directory.glob("s/*.sock")

    async def run() -> DriverReply:
        connection = await connect(socket_path)
        with anyio.fail_after(30):
            reply = await connection.request(action)
        connection.close()
        return reply

    return anyio.run(run)


def url_of(session: Session, action: Action) -> Any:
    data = send(session, action).data
    return data.get("url") if isinstance(data, dict) else None


def has(**expected: Any) -> Callable[[Any], bool]:
    return lambda data: all(data.get(name) == value for name, value in expected.items())


def has_keys(*names: str) -> Callable[[Any], bool]:
    return lambda data: set(names) <= data.keys()


CONTRACT: list[tuple[Action, Callable[[Any], bool]]] = [
    (actions.PageAction(action="title"), has(title="watched")),
    (actions.PageAction(action="url"), has_keys("url")),
    (actions.ElementAction(action="gettext", selector="h1"), has(text="Heading")),
    (actions.ElementAction(action="isvisible", selector="#x"), has(visible=False)),
    (actions.ElementAction(action="isenabled", selector="#a"), has(enabled=True)),
    (actions.ElementAction(action="ischecked", selector="#c"), has(checked=False)),
    (actions.Snapshot(), has_keys("snapshot", "refs", "origin")),
    (
        actions.Snapshot(interactive=True, compact=True, urls=True, cursor=True, max_depth=4, selector="body"),
        lambda data: "[ref=" in data["snapshot"] and "url=http" in data["snapshot"],
    ),
    (actions.Snapshot(delta=True), lambda data: data["snapshot"]["kind"] in ("full", "unchanged", "delta")),
    (actions.Snapshot(delta=True, full=True), lambda data: data["snapshot"]["kind"] == "full"),
    (actions.ElementAction(action="click", selector="xpath=//button"), has_keys("clicked")),
    (actions.ElementAction(action="dblclick", selector="#b"), has_keys("clicked")),
    (actions.ElementAction(action="hover", selector="#b"), has_keys("hovered")),
    (actions.ElementAction(action="focus", selector="#a"), has_keys("focused")),
    (actions.ElementAction(action="check", selector="#c"), has_keys("checked")),
    (actions.ElementAction(action="uncheck", selector="#c"), has_keys("unchecked")),
    (actions.Fill(selector="#a", value="--cdp 1"), has_keys("filled")),
    (actions.Type(selector="#a", text="--clear"), has(typed="--clear")),
    (actions.InsertText(text="x"), has(inserted=True)),
    (actions.Press(key="Tab"), has(pressed="Tab")),
    (actions.Select(selector="#s", values=("2",)), has(selected=["2"])),
    (actions.Scroll(direction="down", amount=50), has(scrolled=True)),
    (actions.Scroll(direction="down", amount=50, selector="body"), has(scrolled=True)),
    (actions.WaitForUrl(url="**/*", timeout=5000), has_keys("url")),
    (actions.WaitForLoadState(state="load", timeout=5000), has_keys("state")),
    (actions.PageAction(action="reload"), has_keys("url")),
]


def test_every_action_is_accepted_and_replies_as_expected(session: Session, site: Site) -> None:
    failures = [
        f"{action}: {reply}"
        for action, is_expected in CONTRACT
        if not ((reply := send(session, action)).success and is_expected(reply.data))
    ]
    assert not failures, "\n".join(failures)


def test_navigation_and_history_report_the_url(session: Session, site: Site) -> None:
    first, second = (site.watch(f"<title>{n}</title>").url for n in (1, 2))
    assert url_of(session, actions.Navigate(url=first)) == first
    assert url_of(session, actions.Navigate(url=second)) == second
    assert url_of(session, actions.PageAction(action="back")) == first
    assert url_of(session, actions.PageAction(action="forward")) == second


@pytest.mark.parametrize(("image_format", "magic"), [("jpeg", b"\xff\xd8\xff"), ("png", b"\x89PNG")])
def test_files_are_written_where_and_how_they_are_requested(session: Session, image_format: str, magic: bytes) -> None:
    (directory,) = (session.server.devtools_directory / "out").iterdir()
    image, pdf = directory / f"contract.{image_format}", directory / "contract.pdf"
    screenshot = actions.Screenshot(
        path=str(image), full_page=True, annotate=True, format=image_format, quality=50, selector=None
    )
    reply = send(session, screenshot)
    assert reply.success
    assert has_keys("path", "annotations")(reply.data)
    assert image.read_bytes().startswith(magic)
    assert send(session, actions.Pdf(path=str(pdf))).success
    assert pdf.read_bytes().startswith(b"%PDF")


def test_a_tab_of_another_session_cannot_be_reached(session: Session) -> None:
    assert not send(session, actions.SwitchTab(tab_id="0" * 32)).success


def test_failures_keep_their_wording(session: Session) -> None:
    """Results are derived from parts of these error texts."""
    expected = {
        actions.ElementAction(action="click", selector="#none"): "Element not found",
        actions.Ping(): "",
    }
    for action, text in expected.items():
        reply = send(session, action)
        assert not reply.success
        assert text in reply.error


@pytest.mark.promise("driver:closed-actions")
@pytest.mark.parametrize(
    "request_text",
    [
        {"action": "evaluate", "script": "document.title='E'"},
        {"action": "upload", "selector": "#a", "files": ["/etc/passwd"]},
        {"action": "cookies_get"},
        {"action": "read", "url": "http://127.0.0.1/"},
    ],
)
def test_the_daemons_own_policy_refuses_other_actions(session: Session, request_text: dict[str, Any]) -> None:
    class Forged(Action):
        def encode(self, request_id: str) -> bytes:
            return json.dumps({"id": request_id, **request_text}).encode() + b"\n"

    assert not send(session, Forged()).success
    assert has(title="watched")(send(session, actions.PageAction(action="title")).data)


def test_every_action_is_part_of_the_contract() -> None:
    sent = {action.action for action, _ in CONTRACT}  # type: ignore[attr-defined]  # a field of every subclass
    sent_elsewhere = {"navigate", "back", "forward", "screenshot", "pdf", "tab_switch"}
    sent_by_the_cli = {"launch", "stream_disable"}
    assert sent | sent_elsewhere | sent_by_the_cli == set(ALLOWED_ACTIONS)
