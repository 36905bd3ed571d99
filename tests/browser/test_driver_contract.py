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

PAGE = "<h1>Heading</h1>"


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


def has_keys(*names: str) -> Callable[[Any], bool]:
    return lambda data: set(names) <= data.keys()


CONTRACT: list[tuple[Action, Callable[[Any], bool]]] = [
    (actions.PageAction(action="url"), has_keys("url")),
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


def test_a_document_is_written_where_it_is_requested(session: Session) -> None:
    (directory,) = (session.server.devtools_directory / "out").iterdir()
    pdf = directory / "contract.pdf"
    assert send(session, actions.Pdf(path=str(pdf))).success
    assert pdf.read_bytes().startswith(b"%PDF")


def test_a_tab_of_another_session_cannot_be_reached(session: Session) -> None:
    assert not send(session, actions.SwitchTab(tab_id="0" * 32)).success


def test_failures_keep_their_wording(session: Session) -> None:
    """Results are derived from parts of these error texts."""
    expected = {
        actions.WaitForUrl(url="**/never", timeout=50): "timed out",
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
        {"action": "fill", "selector": "#a", "value": "x"},
        {"action": "screenshot", "path": "/x.png"},
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
    assert session.ok("get", "title") == {"title": "watched"}


def test_every_action_is_part_of_the_contract() -> None:
    sent = {action.action for action, _ in CONTRACT}  # type: ignore[attr-defined]  # a field of every subclass
    sent_elsewhere = {"navigate", "back", "forward", "pdf", "tab_switch"}
    sent_by_the_cli = {"launch", "stream_disable"}
    assert sent | sent_elsewhere | sent_by_the_cli == set(ALLOWED_ACTIONS)
