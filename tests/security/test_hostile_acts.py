"""Acts on hostile pages: no success is false, and no act reaches another page, session, window or host."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from security.rows_hostile import ROWS
from support.canaries import running_canary
from support.server import Server, Session
from support.truth import Row
from support.truth_stage import Questions, Stage, running_rows, running_stage

pytestmark = pytest.mark.browser

SHORTCUTS = (
    *("Control+t", "Control+n", "Control+w", "Control+Shift+w", "Control+Shift+n", "Control+Shift+t", "Control+q"),
    *(
        "Alt+F4",
        "Control+F4",
        "F11",
        "F12",
        "Control+Shift+i",
        "Control+Shift+j",
        "Control+u",
        "Control+p",
        "Control+s",
    ),
    *(
        "Control+o",
        "Control+l",
        "Alt+d",
        "F6",
        "Control+h",
        "Control+j",
        "Control+d",
        "Control+Shift+Delete",
        "F1",
        "F5",
    ),
    *("Control+r", "Alt+ArrowLeft", "Alt+Home", "Control+Tab", "Control+1", "Control+0", "Control+f", "F7", "Alt+f"),
    *("Shift+Escape", "Control+Shift+b", "Control+k", "Meta+l", "ContextMenu", "Shift+F10"),
)
"""Keys that Chromium or the window manager would take from a keyboard."""


@pytest.fixture(scope="module")
def box() -> Iterator[tuple[Stage, Server]]:
    with running_stage() as running:
        yield running


@pytest.fixture(scope="module")
def findings(request: pytest.FixtureRequest, box: tuple[Stage, Server]) -> Iterator[dict[str, Future[list[str]]]]:
    """Findings of the rows that were selected, by their id."""
    own = [item for item in request.session.items if item.path == request.path and hasattr(item, "callspec")]
    rows = [item.callspec.params["row"] for item in own if "row" in item.callspec.params]
    with running_rows(rows, *box) as findings_by_id:
        yield findings_by_id


@pytest.mark.promise("acts:no-false-success")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_a_hostile_page_cannot_make_a_success_false(row: Row, findings: dict[str, Future[list[str]]]) -> None:
    wrong = findings[row.id].result(timeout=300)
    assert not wrong, "\n".join([f"{row.argv} on {row.html[:500]}", *wrong])


@pytest.fixture
def sessions(box: tuple[Stage, Server]) -> Iterator[Callable[[str], Session]]:
    """Sessions that end with the test."""
    opened: list[Session] = []

    def start(name: str) -> Session:
        opened.append(box[1].session(name))
        return opened[-1]

    yield start
    for session in opened:
        session.run("close")


def open_page(stage: Stage, session: Session, html: str, **more: Any) -> Questions:
    row = Row(id="", html=html, argv=(), **more)
    session.ok("open", stage.publish(session.session_id, row))
    questions = stage.rows[session.session_id]
    questions.ask(["", *row.frames])
    return questions


@pytest.mark.promise("acts:unseen")
def test_a_page_sees_nothing_of_the_functions_that_act_on_it(
    box: tuple[Stage, Server], sessions: Callable[[str], Session]
) -> None:
    session = sessions("unseen")
    questions = open_page(
        box[0],
        session,
        """<button id=b>Go</button><input id=i aria-label=City><p id=p>some text</p><div style='height:3000px'></div>
        <script>
        const own = () => [...Object.getOwnPropertyNames(window), ...Object.keys(document)].join()
        app.names = own()
        const watched = [[Document, 'querySelectorAll'], [Document, 'querySelector'], [Document, 'elementFromPoint'],
          [Element, 'getBoundingClientRect'], [Element, 'getClientRects'], [Element, 'matches'],
          [Element, 'checkVisibility'], [Element, 'scrollIntoView'], [Element, 'attachShadow'], [HTMLElement, 'focus'],
          [HTMLInputElement, 'select'], [Node, 'contains'], [Node, 'cloneNode']]
        for (const [type, name] of watched) {
          const original = type.prototype[name]
          type.prototype[name] = function (...values) { note('called ' + name); return original.apply(this, values) }
        }
        Object.defineProperty(i, 'value', {get() { note('read value'); return '' }, set() { note('set value') }})
        new MutationObserver(records => { for (const record of records) note('changed ' + record.type) })
          .observe(document, {subtree: true, childList: true, attributes: true, characterData: true})
        </script>""",
    )
    ref = session.ok("find", "Go")["lines"].partition("ref=")[2].partition("]")[0]
    for argv in (
        *(("snapshot", "-i"), ("snapshot",), ("click", f"@{ref}"), ("click", "text=Go"), ("hover", "#p")),
        *(("fill", "#i", "Berlin"), ("type", "#i", "XY"), ("press", "Tab"), ("select-text", "#p", "text")),
        *(("get", "text", "#p"), ("get", "value", "#i"), ("is", "visible", "#b"), ("scroll", "down", 100)),
        *(("wait", "#b"), ("wait", "--text", "some"), ("screenshot",)),
    ):
        assert session.run(*argv).exit_code == 0, argv
    state = questions.ask([""], script="app.later = own()")
    assert state.fields["i"] == "BerlinXY"
    assert [entry for entry in state.log if entry.startswith("note@")] == []
    assert state.app["later"] == state.app["names"]


@pytest.mark.promise("acts:keys-stay-in-the-page")
def test_keys_reach_the_page_and_not_the_browser(box: tuple[Stage, Server], sessions: Callable[[str], Session]) -> None:
    session = sessions("keys")
    html = "<input id=t value=text><script>addEventListener('keydown', event => note(event.code))</script>"
    questions = open_page(box[0], session, html)
    url = session.ok("get", "url")
    session.ok("focus", "#t")
    for key in SHORTCUTS:
        outcome = session.run("press", key)
        assert outcome.exit_code in (0, 2), (key, outcome)
        assert len(session.ok("tab", "list")["tabs"]) == 1, key
        assert session.ok("get", "url") == url, key
    assert questions.ask([""]).fields == {"t": "text"}
    session.ok("fill", "#t", "still here")
    assert questions.ask([""]).fields == {"t": "still here"}


@pytest.mark.promise("acts:own-session-only")
def test_acts_of_a_session_do_not_reach_the_window_of_another(
    box: tuple[Stage, Server], sessions: Callable[[str], Session]
) -> None:
    """The windows cover each other, and the window of the victim opened last."""
    thief, victim = sessions("thief"), sessions("victim")
    page = "<input id=t value=keep><button id=b style='position:fixed;inset:0;width:100%;height:100%'>Pay</button>"
    open_page(box[0], thief, page)
    questions = open_page(box[0], victim, page)
    victim.ok("focus", "#t")
    before = questions.ask([""])
    for argv in (
        *(("click", "--at", "5,5"), ("click", "--at", "600,400"), ("dblclick", "#b"), ("hover", "--at", "100,100")),
        *(("drag", "--from", "10,10", "--to", "500,300"), ("focus", "#t"), ("press", "x"), ("press", "Control+a")),
        *(("type", "#t", "SECRET"), ("fill", "#t", "SECRET"), ("scroll", "down", 100), ("select-text", "#b")),
    ):
        thief.run(*argv)
    after = questions.ask([""])
    assert after.fields == {"t": "keep"}
    assert after.log == before.log
    assert after.active == before.active


@pytest.mark.promise("acts:own-session-only")
def test_refs_of_a_session_mean_nothing_in_another(
    box: tuple[Stage, Server], sessions: Callable[[str], Session]
) -> None:
    first, second = sessions("refs1"), sessions("refs2")
    for session in (first, second):
        open_page(box[0], session, "<button id=b>Go</button>" * (5 if session is first else 1))
    refs = first.ok("snapshot", "-i")["snapshot"]
    assert "ref=e5" in refs
    outcome = second.run("click", "@e5")
    assert (outcome.exit_code, outcome.meta["name"]) == (1, "ELEMENT_NOT_FOUND")


@pytest.mark.promise("acts:forbidden-frames")
def test_acts_do_not_reach_a_frame_that_the_policy_forbids(
    box: tuple[Stage, Server], sessions: Callable[[str], Session]
) -> None:
    with running_canary() as canary:
        session = sessions("forbidden")
        questions = open_page(
            box[0],
            session,
            f"""<style>body {{ margin: 0 }}</style><iframe id=f src='{canary.origin}/x' width=600 height=400></iframe>
            <iframe src='CROSS/inner' name=inner width=600 height=200></iframe>""",
            frames={
                "inner": f"<a id=l href='{canary.origin}/y'>Out</a>"
                f"<form action='{canary.origin}/z'><button>Send</button></form>"
            },
        )
        for argv in (
            *(("click", "--at", "300,200"), ("dblclick", "--at", "300,200"), ("click", "#f"), ("press", "Enter")),
            *(("press", "F5"), ("click", "role=button name=Reload"), ("drag", "--from", "20,20", "--to", "400,300")),
            *(("snapshot", "-i"), ("find", "x"), ("click", "role=button name=Send"), ("click", "#l"), ("reload",)),
        ):
            outcome = session.run(*argv)
            assert outcome.exit_code in (0, 1), (argv, outcome)
        questions.ask([""])
        assert canary.connections == 0
