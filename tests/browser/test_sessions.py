"""Sessions: apart from each other, in order within themselves, limited in number and in idle time."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from support.in_flight import opening_slowly
from support.pages import Site, wait_until
from support.server import Outcome, Server, Session, running_server
from support.snapshots import ref_of

LIMIT = 8


@pytest.fixture(scope="module")
def crowd(site: Site) -> Iterator[Server]:
    """A server of our own: the shared one has sessions of other tests."""
    with running_server({"open": {"unsafe_allow_addresses": [f"127.0.0.1:{site.port}"]}}) as running:
        yield running


@pytest.fixture
def sessions(crowd: Server) -> Iterator[Callable[[str], Session]]:
    """Makes sessions that are closed at the end of the test."""
    made: list[Session] = []

    def make(name: str) -> Session:
        made.append(crowd.session(name))
        return made[-1]

    yield make
    for session in made:
        session.run("close")


@dataclass(frozen=True)
class Visit:
    clicks: list[Outcome]
    pictures: list[Outcome]


def test_eight_sessions_work_at_once_with_their_own_cookies_and_a_ninth_must_wait(
    sessions: Callable[[str], Session], site: Site
) -> None:
    page = site.watch(
        """<script>const me = location.hash</script>
        <button id=mark onclick="document.cookie = 'who=' + me.slice(1); localStorage.who = me">mark</button>
        <button id=b onclick="report([me, document.cookie, localStorage.who, document.hasFocus()])">b</button>"""
    )
    everyone = [sessions(f"crowd{number}") for number in range(LIMIT)]

    def visit(session: Session) -> Visit:
        clicks = [session.run("click", "#b") for _ in range(3)]
        return Visit(clicks=clicks, pictures=[session.run("screenshot") for _ in range(3)])

    with ThreadPoolExecutor(LIMIT) as pool:
        opened = list(pool.map(lambda session: session.run("open", f"{page.url}#{session.session_id}"), everyone))
        assert [outcome.exit_code for outcome in opened] == [0] * LIMIT
        list(pool.map(lambda session: session.ok("click", "#mark"), everyone))
        visits = list(pool.map(visit, everyone))

    # Every session saw its own mark and no other.
    for session in everyone:
        name = session.session_id
        assert page.reports.count([f"#{name}", f"who={name}", f"#{name}", True]) == 3
    assert len(page.reports) == 3 * LIMIT

    for kind, outcomes in (
        ("click", [outcome for visit in visits for outcome in visit.clicks]),
        ("screenshot", [outcome for visit in visits for outcome in visit.pictures]),
    ):
        seconds = [outcome.seconds for outcome in outcomes]
        print(f"8 sessions, {kind}: median {statistics.median(seconds):.3f} s, slowest {max(seconds):.3f} s")
        assert [outcome.exit_code for outcome in outcomes] == [0] * len(outcomes)
        # A hidden window would cost a click 5 s and a screenshot 30 s.
        assert max(seconds) < 4, kind

    # One after another, without the crowd's own load.
    alone = [session.run(*argv).seconds for session in everyone for argv in (("click", "#b"), ("screenshot",))]
    print(f"8 sessions open, one call at a time: median {statistics.median(alone):.3f} s, slowest {max(alone):.3f} s")
    assert max(alone) < 4

    ninth = sessions("ninth")
    refused = ninth.run("open", page.url)
    assert (refused.exit_code, refused.meta["name"]) == (75, "SESSION_LIMIT")
    assert "crowd0" in refused.stderr
    everyone[0].ok("close")
    ninth.ok("open", page.url)


def test_calls_in_one_session_run_in_order(sessions: Callable[[str], Session], site: Site) -> None:
    session = sessions("ordered")
    session.ok("open", "about:blank")
    first = opening_slowly(session, site, 1)
    second = session.run("get", "url")
    assert second.exit_code == 0
    assert not first.running, "the second call overtook the first"
    assert second.data["url"] == first.outcome().data["url"]


def test_a_slow_call_in_one_session_delays_no_other(sessions: Callable[[str], Session], site: Site) -> None:
    slow, quick = sessions("slow"), sessions("quick")
    quick.ok("open", site.watch("<button id=b>b</button>").url)
    waiting = opening_slowly(slow, site, 3)
    outcomes = [quick.run("click", "#b"), quick.run("snapshot"), quick.run("get", "url")]
    assert waiting.running, "the slow call was over too early to prove anything"
    assert [outcome.exit_code for outcome in outcomes] == [0, 0, 0]
    assert waiting.outcome().exit_code == 0


@pytest.mark.promise("sessions:id-starts-clean")
def test_a_closed_session_leaves_nothing_to_the_next_one_of_its_name(
    sessions: Callable[[str], Session], site: Site
) -> None:
    page = site.watch(
        """<button id=mark onclick="document.cookie = 'who=me'; localStorage.who = 'me'">mark</button>
        <button id=b onclick="report([document.cookie, localStorage.who ?? null, history.length])">b</button>"""
    )
    session = sessions("reused")
    session.ok("open", page.url)
    session.ok("click", "#mark")
    session.ok("click", "#b")
    ref = ref_of(session.ok("snapshot")["snapshot"], "button", "mark")
    session.ok("close")

    assert session.ok("get", "url") == {"url": "about:blank"}
    assert session.run("click", ref).exit_code == 1
    session.ok("open", page.url)
    session.ok("click", "#b")
    assert page.reports[0][:2] == ["who=me", "me"]
    assert page.reports[1][:2] == ["", None]


def test_closing_takes_everything_of_the_session_away(
    crowd: Server, sessions: Callable[[str], Session], site: Site
) -> None:
    session = sessions("tidy")
    session.ok("open", site.watch("").url)
    session.ok("screenshot")
    before = crowd.daemons()
    assert before
    session.ok("close")
    assert crowd.daemons() == {}
    assert list((crowd.devtools_directory / "s").iterdir()) == []
    assert list((crowd.devtools_directory / "out").iterdir()) == []


def test_denials_of_a_closed_session_are_not_reported_to_the_next_one(
    sessions: Callable[[str], Session], site: Site
) -> None:
    session = sessions("fresh")
    refused = session.run("open", site.watch("<img src='http://192.168.0.1/x.png'>").url)
    assert "192.168.0.1" in refused.stderr
    session.ok("close")
    assert session.run("open", site.watch("").url).stderr == ""


def test_idle_session_is_closed_and_reported_once(site: Site) -> None:
    policy = {"open": {"unsafe_allow_addresses": [f"127.0.0.1:{site.port}"]}, "sessions": {"idle_seconds": 10}}
    with running_server(policy) as server:
        idle, asking, busy = server.session("idle"), server.session("asking"), server.session("busy")
        url = site.watch("<p id=p>text</p>").url
        for session in (idle, asking, busy):
            session.ok("open", url)
        # Fewer than ten seconds between two calls keep a session; more end it.
        for _ in range(4):
            busy.ok("wait", 3500)
        # Idle sessions are collected every five seconds. The busy one is not idle for long enough.
        wait_until(lambda: len(server.daemons()) == 1, seconds=8, what="the end of the two")
        outcome = asking.run("get", "text", "#p")
        assert (outcome.exit_code, outcome.meta["name"]) == (1, "SESSION_GONE")
        asking.ok("open", url)
        assert asking.ok("get", "text", "#p")["text"] == "text"
        reopened = idle.run("open", url)
        assert reopened.exit_code == 0
        assert "idle" in reopened.stderr
        assert busy.ok("get", "text", "#p")["text"] == "text"
