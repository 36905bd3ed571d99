"""confirm, prompt and alert: the agent answers questions and gets notes about alerts; no command hangs on them."""

from __future__ import annotations

import pytest

from support.pages import Site, WatchedPage, running_site, wait_until
from support.server import Outcome, Session, running_server
from support.time_limits import UNBLOCKED_SECONDS

BLOCKED = (
    *(("get", "url"), ("get", "title"), ("get", "text", "body"), ("snapshot", "-i"), ("screenshot",), ("pdf",)),
    *(("click", "#b"), ("fill", "#i", "x"), ("press", "Enter"), ("scroll", "down", 10), ("is", "visible", "#b")),
    *(("wait", 50), ("wait", "#b"), ("wait", "#b", "--state", "hidden"), ("wait", "--text", "x")),
    *(("reload",), ("back",), ("forward",), ("open", "about:blank")),
)


def blocked(outcome: Outcome) -> bool:
    return (outcome.exit_code, outcome.meta.get("name")) == (1, "DIALOG_OPEN")


@pytest.fixture
def page(browser: Session, site: Site) -> WatchedPage:
    watched = site.watch(
        """<button id=confirm onclick="report(confirm('really?'))">c</button>
        <button id=prompt onclick="report(prompt('name?', 'default'))">p</button>
        <button id=alert onclick="alert('boo'); report('after the alert')">a</button>
        <button id=later onclick="setTimeout(() => report(confirm('late?')), 400)">l</button>
        <button id=b onclick="report('alive')">b</button><input id=i>"""
    )
    browser.ok("open", watched.url)
    return watched


@pytest.mark.parametrize(("answer", "result"), [("accept", True), ("dismiss", False)])
def test_the_agent_answers_a_confirm(browser: Session, page: WatchedPage, answer: str, result: bool) -> None:
    clicked = browser.run("click", "#confirm")
    assert clicked.exit_code == 0
    assert "dialog" in clicked.stderr
    assert browser.ok("dialog", "status") == {"open": True, "type": "confirm", "message": "really?"}
    assert browser.ok("dialog", answer) == {"answered": answer, "type": "confirm"}
    page.wait_for(result)
    assert browser.ok("dialog", "status") == {"open": False}
    browser.ok("click", "#b")
    page.wait_for("alive")


@pytest.mark.parametrize(
    ("argv", "result"),
    [(("accept", "Ada"), "Ada"), (("accept",), "default"), (("accept", ""), ""), (("dismiss",), None)],
)
def test_the_agent_answers_a_prompt(
    browser: Session, page: WatchedPage, argv: tuple[str, ...], result: str | None
) -> None:
    browser.ok("click", "#prompt")
    assert browser.ok("dialog", "status")["type"] == "prompt"
    browser.ok("dialog", *argv)
    page.wait_for(result)
    assert page.reports == [result]


def test_no_other_command_hangs_while_a_dialog_is_open(browser: Session, page: WatchedPage) -> None:
    browser.ok("click", "#confirm")
    for argv in BLOCKED:
        outcome = browser.run(*argv)
        assert blocked(outcome), (argv, outcome)
        assert outcome.seconds < UNBLOCKED_SECONDS, argv
    assert browser.ok("tab", "list")["tabs"][0]["active"] is True
    browser.ok("dialog", "accept")
    page.wait_for(True)
    browser.ok("click", "#b")
    page.wait_for("alive")
    assert page.reports == [True, "alive"]


def test_a_dialog_that_opens_during_a_wait_ends_the_wait(browser: Session, page: WatchedPage) -> None:
    browser.ok("click", "#later")
    outcome = browser.run("wait", "#never")
    assert blocked(outcome)
    assert outcome.seconds < UNBLOCKED_SECONDS
    browser.ok("dialog", "accept")
    page.wait_for(True)
    after = browser.run("click", "#b")
    assert after.exit_code == 0
    assert after.seconds < UNBLOCKED_SECONDS
    page.wait_for("alive")


def test_the_note_about_a_long_alert_is_truncated(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch("<button id=b onclick=\"alert('boo'.repeat(1000)); report('after')\">b</button>").url)
    notes = browser.run("click", "#b").stderr + browser.run("get", "title").stderr
    assert f"an alert: '{'boo' * 100}'" in notes


def test_an_alert_is_closed_and_reported_in_a_note(browser: Session, page: WatchedPage) -> None:
    clicked = browser.run("click", "#alert")
    assert clicked.exit_code == 0
    page.wait_for("after the alert")
    # The note comes with the next call when the click returns before the alert opens.
    assert "NOTE: the page showed an alert: 'boo'" in clicked.stderr + browser.run("get", "title").stderr
    assert browser.run("get", "title").stderr == ""
    browser.ok("click", "#b")
    page.wait_for("alive")


def test_alerts_of_frames_and_popups_are_closed() -> None:
    with running_site() as site, running_site("127.0.0.2") as other_site:
        alerting = "<script>function again() { alert('boo'); report('after the alert') } again()</script>"
        frame, popup = other_site.watch(alerting), site.watch(alerting)
        page = site.watch(
            f"""<iframe src="{frame.url}"></iframe><button id=b onclick="report('alive')">b</button>
            <button id=o onclick="window.open('{popup.url}', '', 'width=300,height=300')">o</button>"""
        )
        allowed = [f"127.0.0.1:{site.port}", f"127.0.0.2:{other_site.port}"]
        with running_server({"open": {"unsafe_allow_addresses": allowed}}) as server:
            session = server.session()
            session.ok("open", page.url)
            frame.wait_for("after the alert")
            session.ok("click", "#o")
            popup.wait_for("after the alert")
            session.ok("click", "#b")
            page.wait_for("alive")


def test_a_dialog_on_load_is_reported_by_open_and_can_be_answered(browser: Session, site: Site) -> None:
    page = site.watch("<script>report(confirm('enter?'))</script><p id=p>inside</p>")
    opened = browser.run("open", page.url)
    assert blocked(opened)
    assert opened.seconds < UNBLOCKED_SECONDS
    assert browser.ok("dialog", "status") == {"open": True, "type": "confirm", "message": "enter?"}
    browser.ok("dialog", "accept")
    page.wait_for(True)
    assert browser.ok("get", "text", "#p")["text"] == "inside"


def test_a_dialog_of_a_popup_does_not_hang_its_opener(browser: Session, site: Site) -> None:
    child = site.watch("<script>report(confirm('child asks'))</script><p>child</p>", title="child")
    page = site.watch(
        f"<button id=o onclick=\"window.open('{child.url}', '', 'width=300,height=300')\">o</button>"
        "<button id=b onclick=\"report('alive')\">b</button>"
    )
    browser.ok("open", page.url)
    clicked = browser.run("click", "#o")
    assert clicked.seconds < UNBLOCKED_SECONDS
    wait_until(lambda: browser.ok("dialog", "status")["open"] is True, what="the child's dialog")
    assert browser.ok("dialog", "status")["message"] == "child asks"
    outcome = browser.run("click", "#b")
    assert blocked(outcome)
    assert outcome.seconds < UNBLOCKED_SECONDS
    browser.ok("dialog", "accept")
    child.wait_for(True)
    browser.ok("click", "#b")
    page.wait_for("alive")


def test_a_dialog_of_the_opener_does_not_hang_its_popup(browser: Session, site: Site) -> None:
    child = site.watch(
        """<button id=ask onclick="setTimeout(() => opener.ask(), 200)">ask</button>
        <button id=b onclick="report('alive')">b</button>"""
    )
    page = site.watch(
        f"""<script>function ask() {{ report(confirm('opener asks')) }}</script>
        <button id=o onclick="window.open('{child.url}', '', 'width=300,height=300')">o</button>"""
    )
    browser.ok("open", page.url)
    browser.ok("click", "#o")
    wait_until(lambda: len(browser.ok("tab", "list")["tabs"]) == 2, what="the popup")
    browser.ok("tab", "switch", "t2")
    browser.ok("click", "#ask")
    outcome = browser.run("wait", "#never")
    assert blocked(outcome)
    assert outcome.seconds < UNBLOCKED_SECONDS
    browser.ok("dialog", "dismiss")
    page.wait_for(False)
    browser.ok("click", "#b")
    child.wait_for("alive")


def test_a_page_of_endless_alerts_stays_usable_and_can_be_left(browser: Session, site: Site) -> None:
    page = site.watch("<script>setInterval(() => alert('again'), 100)</script><p id=p>text</p>")
    for _ in range(4):
        browser.ok("open", page.url)
        for argv in (("get", "url"), ("get", "text", "#p"), ("snapshot",)):
            assert browser.run(*argv).seconds < UNBLOCKED_SECONDS, argv
        browser.ok("open", "about:blank")


def test_close_works_with_a_dialog_open(browser: Session, page: WatchedPage, site: Site) -> None:
    browser.ok("click", "#confirm")
    closed = browser.run("close")
    assert closed.data == {"closed": True}
    assert closed.seconds < UNBLOCKED_SECONDS
    browser.ok("open", site.watch("", title="clean").url)
    assert browser.ok("dialog", "status") == {"open": False}


def test_the_answer_reports_the_page_that_it_leads_to(browser: Session, site: Site) -> None:
    site.add("/deleted", "<title>deleted</title>")
    page = site.watch(
        """<button id=d onclick="if (confirm('delete?')) location = '/deleted'">d</button>
        <button id=twice onclick="confirm('first?') && report(confirm('second?'))">t</button>"""
    )
    browser.ok("open", page.url)
    browser.ok("click", "#twice")
    answered = browser.run("dialog", "accept")
    assert answered.data == {"answered": "accept", "type": "confirm"}
    assert "NOTE: the page shows a confirm dialog: 'second?'" in answered.stderr
    browser.ok("dialog", "accept")
    page.wait_for(True)
    browser.ok("click", "#d")
    answered = browser.run("dialog", "accept")
    assert answered.data["title"] == "deleted"


def test_answering_without_an_open_dialog_fails(browser: Session, page: WatchedPage) -> None:
    for argv in (("dialog", "accept"), ("dialog", "accept", "text"), ("dialog", "dismiss")):
        outcome = browser.run(*argv)
        assert (outcome.exit_code, outcome.meta["name"]) == (1, "COMMAND_FAILED"), argv


def test_a_dialog_opened_by_mouseover_prevents_the_press_of_the_button(browser: Session, site: Site) -> None:
    page = site.watch(
        """<button id=b>Press</button><script>
        let dialogs = 0
        b.addEventListener('mouseover', () => dialogs++ || report(['confirm', confirm('Really?')]))
        for (const kind of ['mousedown', 'click']) b.addEventListener(kind, () => report([kind]))</script>"""
    )
    browser.ok("open", page.url)
    assert browser.ok("click", "#b")["dialogOpened"] is True
    browser.ok("dialog", "dismiss")
    page.wait_for(["confirm", False])
    assert browser.ok("click", "#b")["clicked"] == "#b"
    page.wait_for(["click"])
    assert page.reports == [["confirm", False], ["mousedown"], ["click"]]
