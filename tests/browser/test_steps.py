"""Several steps in one call, in a real browser."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest

from support.canaries import AuditReader
from support.in_flight import InFlight, has_started
from support.pages import Request, Site, wait_until
from support.server import Outcome, Server, Session

_NUMBERS = itertools.count()
LOGIN = """<!doctype html><title>Sign in</title><form method=post action="/welcome">
<label>User <input name=user id=user></label> <label>Password <input name=password type=password id=password></label>
<button>Sign in</button></form>"""


@pytest.fixture
def session(server: Server) -> Iterator[Session]:
    session = server.session(f"steps{next(_NUMBERS)}")
    yield session
    session.run("close")


def data_of(outcome: Outcome) -> list[Any]:
    data = json.loads(outcome.stdout)
    assert isinstance(data, list)
    return data


def records(session: Session) -> list[tuple[int, str, str]]:
    """Step, kind and error of the records of this session that belong to a step."""
    return [
        (record["step"], record["kind"], record.get("error", ""))
        for record in AuditReader(session.server).records()
        if record.get("session_id") == session.session_id and "step" in record
    ]


def test_a_login_is_one_call(session: Session, site: Site) -> None:
    forms: list[bytes] = []

    def welcome(request: Request) -> str:
        forms.append(request.body)
        return "<!doctype html><title>Welcome</title><h1>Hello ada</h1>"

    site.add("/welcome", welcome)
    outcome = session.run(
        *("open", site.add("/login", LOGIN)),
        then=[
            ["fill", "#user", "ada"],
            ["fill", "#password", "s3cret"],
            ["click", "text=Sign in"],
            ["wait", "--text", "Hello ada"],
            ["get", "title"],
        ],
    )
    assert outcome.exit_code == 0, outcome.stderr
    data = data_of(outcome)
    assert len(data) == 6
    assert (data[0]["title"], data[-1]["title"]) == ("Sign in", "Welcome")
    assert forms == [b"user=ada&password=s3cret"]
    assert "s3cret" not in outcome.stdout
    assert [(step, error) for step, kind, error in records(session) if kind == "TOOL_FINISHED"] == [
        (step, "") for step in range(1, 7)
    ]


def test_a_failed_step_stops_the_steps_after_it(session: Session, site: Site) -> None:
    page = site.watch("<button id=a onclick='report(1)'>A</button><button id=b onclick='report(2)'>B</button>")
    outcome = session.run(
        "open", page.url, then=[["click", "#a"], ["click", "#none"], ["click", "#b"], ["click", "#b"]], timeout=20
    )
    assert outcome.exit_code == 1
    assert outcome.stderr.startswith(f"{outcome.meta['name']}: step 3 of 5 (click): ")
    assert "; 2 steps did not run" in outcome.stderr
    assert len(data_of(outcome)) == 2
    session.ok("get", "title")
    assert page.reports == [1]
    ends = [error for _, kind, error in records(session) if kind == "TOOL_FINISHED"]
    assert ends == ["", "", outcome.meta["name"], "NOT_RUN", "NOT_RUN"]


def test_a_refused_step_runs_nothing(session: Session, site: Site) -> None:
    page = site.watch("<script>report('loaded')</script>")
    for step in (["open", "http://192.168.0.1/"], ["eval", "1"], ["click", "--cdp", "1"], ["press", "Foo"]):
        outcome = session.run("open", page.url, then=[["get", "title"], step])
        assert outcome.stdout == ""
        assert "step 3 of 3" in outcome.stderr
    assert page.reports == []
    assert {kind for _, kind, _ in records(session)}.isdisjoint({"SANDBOX_EXEC"})


def test_a_dialog_stops_the_steps(session: Session, site: Site) -> None:
    page = site.watch("<button id=a onclick='report(confirm(`Delete?`))'>A</button><p id=p>still here</p>")
    outcome = session.run("open", page.url, then=[["click", "#a"], ["get", "text", "#p"], ["close"]])
    assert (outcome.exit_code, outcome.meta["name"]) == (1, "DIALOG_OPEN")
    assert page.reports == []
    assert "Delete?" in outcome.stderr
    assert "step 3 of 4 (get)" in outcome.stderr
    assert session.ok("dialog", "dismiss")["answered"] == "dismiss"
    page.wait_for(False)
    assert session.ok("get", "text", "#p")["text"] == "still here"


def test_a_step_that_answers_the_dialog_goes_on(session: Session, site: Site) -> None:
    page = site.watch("<button id=a onclick='report(confirm(`Delete?`))'>A</button>")
    outcome = session.run("open", page.url, then=[["click", "#a"], ["dialog", "accept"], ["get", "title"]])
    assert outcome.exit_code == 0, outcome.stderr
    assert "NOTE: step 2 (click): " in outcome.stderr
    page.wait_for(True)


def test_a_ref_of_an_earlier_page_stops_the_steps(session: Session, site: Site) -> None:
    first, second = site.watch("<button>Go</button>"), site.watch("<button onclick='report(1)'>Go</button>")
    session.ok("open", first.url)
    snapshot = session.ok("snapshot", "-i")["snapshot"]
    ref = "@" + snapshot.partition("ref=")[2].partition("]")[0].partition(",")[0]
    outcome = session.run("open", second.url, then=[["click", ref], ["get", "title"]])
    assert (outcome.exit_code, outcome.meta["name"]) == (1, "PAGE_CHANGED")
    assert outcome.stderr.startswith("PAGE_CHANGED: step 2 of 3 (click): ")
    session.ok("get", "title")
    assert second.reports == []


def test_close_is_the_last_step(session: Session, site: Site) -> None:
    url = site.watch("<p>p</p>").url
    outcome = session.run("open", url, then=[["get", "title"], ["close"]])
    assert outcome.exit_code == 0, outcome.stderr
    assert data_of(outcome)[1:] == [{"title": "watched"}, {"closed": True}]
    assert session.ok("close") == {"closed": False}
    refused = session.run("open", url, then=[["close"], ["get", "title"]])
    assert (refused.exit_code, refused.meta["rule"]) == (2, "arguments.then")
    assert session.ok("close") == {"closed": False}


def test_no_other_call_of_the_session_runs_between_the_steps(session: Session, site: Site) -> None:
    page = site.watch("<input id=i>")
    session.ok("open", page.url)
    batch = InFlight(
        session, "wait", 300, then=[["fill", "#i", "one"], ["wait", 1500], ["get", "title"], ["fill", "#i", "two"]]
    )
    wait_until(lambda: has_started(session, "fill"), what="the second step")
    between = session.run("fill", "#i", "between")
    assert between.exit_code == 0
    assert not batch.running
    assert batch.outcome().exit_code == 0
    steps = [
        (record.get("step", 0), record["subcommand"])
        for record in AuditReader(session.server).records()
        if record.get("session_id") == session.session_id and record["kind"] == "TOOL_FINISHED"
    ]
    assert steps == [(0, "open"), *enumerate(("wait", "fill", "wait", "get", "fill"), start=1), (0, "fill")]


def test_steps_share_one_timeout(session: Session, site: Site) -> None:
    session.ok("open", site.watch("<p>p</p>").url)
    outcome = session.run("wait", 1200, then=[["wait", 1200], ["get", "title"]], timeout=2)
    assert (outcome.exit_code, outcome.meta["name"]) == (124, "TIMEOUT")
    assert "step 2 of 3 (wait)" in outcome.stderr
    assert len(data_of(outcome)) == 1
    session.ok("get", "title")


def test_pictures_of_all_steps_are_attached(session: Session, site: Site) -> None:
    outcome = session.run("open", site.watch("<p>p</p>").url, then=[["screenshot"], ["pdf"], ["screenshot", "--full"]])
    assert outcome.exit_code == 0, outcome.stderr
    assert [mime_type for mime_type, _ in outcome.attachments] == ["image/jpeg", "application/pdf", "image/jpeg"]
    refused = session.run("screenshot", then=[["pdf"], ["screenshot"], ["screenshot"]])
    assert (refused.exit_code, refused.attachments) == (2, [])


def test_each_step_waits_for_the_effect_of_the_one_before(session: Session, site: Site) -> None:
    page = site.watch(
        "<button id=a onclick='setTimeout(() => b.hidden = false, 60)'>A</button>"
        "<button id=b hidden onclick='report(1)'>B</button>"
    )
    outcome = session.run("open", page.url, then=[["click", "#a"], ["click", "#b"], ["get", "title"]])
    assert outcome.exit_code == 0, outcome.stderr
    page.wait_for(1)


def test_a_batch_of_one_session_does_not_delay_another(server: Server, session: Session, site: Site) -> None:
    other = server.session(f"steps{next(_NUMBERS)}")
    url = site.watch("<p>p</p>").url
    session.ok("open", url)
    other.ok("open", url)
    batch = InFlight(session, "wait", 3000, then=[["get", "title"]])
    wait_until(lambda: has_started(session, "wait"), what="the first step")
    other.ok("get", "title")
    assert batch.running
    assert batch.outcome().exit_code == 0
    other.ok("close")
