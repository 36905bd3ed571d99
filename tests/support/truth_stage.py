"""Runs rows of the truth table in a real browser.

The pages report over their own connection to the test's web server, so a command under test has no part in it.
"""

from __future__ import annotations

import json
import queue
import re
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from support.pages import Request, Site, running_site
from support.server import Server, Session, running_server
from support.snapshots import refs_of
from support.truth import Argument, Ref, Row, State, judge

_RECORDER = (Path(__file__).parents[1] / "data/truth/recorder.js").read_text(encoding="utf-8")
_ANSWER_SECONDS = 20
_SESSIONS = 3
_CROSS_HOST = "frames.example"


class Questions:
    """Questions of the test to the pages of one row, and their answers."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._number = 0
        self._script = ""
        self._states: dict[tuple[str, str], dict[str, Any]] = {}

    def next_question(self, page: str, after: int) -> str:
        """Wait for a question with a higher number. The page has an open request for it."""
        with self._changed:
            self._changed.wait_for(lambda: self._number > after, timeout=120)
            question = {"number": self._number, "script": "" if page else self._script}
        return f"data: {json.dumps(question)}\n\n"

    def receive(self, page: str, question: str, state: dict[str, Any]) -> None:
        with self._changed:
            self._states[page, question] = state
            self._changed.notify_all()

    def ask(self, pages: Sequence[str], *, left: Sequence[str] = (), script: str = "") -> State:
        """Return the state of these pages. The first page runs the script before. Logs start after the first question.

        Pages in `left` were left: the log that they had at that time counts.
        """
        with self._changed:
            self._number += 1
            self._script = script
            self._changed.notify_all()
            keys = [*((page, "left") for page in left), *((page, str(self._number)) for page in pages)]
            arrived = self._changed.wait_for(lambda: all(key in self._states for key in keys), timeout=_ANSWER_SECONDS)
            missing = [key for key in keys if key not in self._states]
            assert arrived, f"no state of {missing}; states: {list(self._states)}"
            states = [self._states[key] for key in keys]
        departed = [{**state, "fields": {}, "app": {}, "scrolls": {}} for state in states[: len(left)]]
        return State.of([*departed, *states[len(left) :]], top=pages[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Web sites that serve the pages of rows."""

    site: Site
    port_site: Site
    cross_origin: str
    rows: dict[str, Questions] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for site in (self.site, self.port_site):
            site.add("/truth/questions", self._question, {"Content-Type": "text/event-stream"})
            site.add("/truth/state", self._state)

    def publish(self, number: str, row: Row) -> str:
        """Add the pages of a row and return the URL of the first."""
        self.rows[number] = Questions()
        for name, html in {"": row.html, **row.frames, **row.pages}.items():
            path = f"/truth/{number}/{name}"
            recorder = _RECORDER.replace("%ROW%", number).replace("%PAGE%", name)
            body = self.with_urls(number, html)
            page = f"<!doctype html><meta charset=utf-8><title>{name or 'row'}</title><script>{recorder}</script>{body}"
            for site in (self.site, self.port_site):
                site.add(path, page)
        return f"{self.site.origin}/truth/{number}/"

    def with_urls(self, number: str, html: str) -> str:
        """Replace the names of the row's pages by their URLs."""
        origins = {"SAME": self.site.origin, "PORT": self.port_site.origin, "CROSS": self.cross_origin}
        return re.sub(
            r"\b(SAME|PORT|CROSS)/(\w+)", lambda found: f"{origins[found[1]]}/truth/{number}/{found[2]}", html
        )

    def _question(self, request: Request) -> str:
        query = parse_qs(request.query, keep_blank_values=True)
        return self.rows[query["row"][0]].next_question(query["page"][0], int(query["after"][0]))

    def _state(self, request: Request) -> str:
        query = parse_qs(request.query, keep_blank_values=True)
        self.rows[query["row"][0]].receive(query["page"][0], query["question"][0], json.loads(request.body))
        return ""


def perform(row: Row, session: Session, stage: Stage, number: str) -> list[str]:
    """Open the page, run the command, and return what is wrong; nothing for a row that holds."""
    session.ok("open", stage.publish(number, row))
    questions = stage.rows[number]
    needs_refs = any(isinstance(word, Ref) for argv in (row.argv, *row.before) for word in argv)
    look = str(session.ok("snapshot", "-i")["snapshot"]) if needs_refs else ""
    for argv in row.before:
        session.ok(*_with_refs(argv, look))
    for argv in row.failing:
        assert session.run(*_with_refs(argv, look)).exit_code != 0, argv
    pages = [row.starts_on, *row.frames]
    script = stage.with_urls(number, row.script)
    if row.frames_later is None:
        before = questions.ask(pages, script=script)
    else:
        questions.ask(pages)
        questions.ask(pages[:1], script=script)
        pages = [row.starts_on, *row.frames_later]
        before = questions.ask(pages)
    outcome = session.run(*_with_refs(row.argv, look))
    for argv in row.after:
        session.ok(*_with_refs(argv, look))
    after = questions.ask([row.ends_on], left=[""]) if row.ends_on else questions.ask(pages)
    return judge(row, outcome, before, after)


def _with_refs(argv: Sequence[Argument], look: str) -> list[str | int | float]:
    return [_find_ref(word, look) if isinstance(word, Ref) else word for word in argv]


def _find_ref(wanted: Ref, look: str) -> str:
    refs = [ref for name, ref in refs_of(look, wanted.role) if name == wanted.name]
    assert len(refs) > wanted.place, f"no {wanted} in:\n{look}"
    return refs[wanted.place]


@contextmanager
def running_stage() -> Iterator[tuple[Stage, Server]]:
    """Serve pages on two ports of one host and on another site, and start a server that may open them."""
    with ExitStack() as stack:
        site, port_site = stack.enter_context(running_site()), stack.enter_context(running_site())
        policy = {
            "unsafe_allow_addresses": [f"127.0.0.1:{site.port}", f"127.0.0.1:{port_site.port}"],
            "unsafe_resolve": {_CROSS_HOST: f"127.0.0.1:{site.port}"},
        }
        server = stack.enter_context(running_server({"open": policy, "sessions": {"max_per_subject": 8}}))
        yield Stage(site=site, port_site=port_site, cross_origin=f"http://{_CROSS_HOST}"), server


@contextmanager
def running_rows(rows: Sequence[Row], stage: Stage, server: Server) -> Iterator[dict[str, Future[list[str]]]]:
    """Run rows in several sessions at once. Yields the findings of each row by its id."""
    sessions: queue.SimpleQueue[Session] = queue.SimpleQueue()
    for number in range(_SESSIONS):
        sessions.put(server.session(f"truth{number}"))

    def run(number: int, row: Row) -> list[str]:
        session = sessions.get()
        wrong = ["the row raised an error"]
        try:
            wrong = perform(row, session, stage, str(number))
        finally:
            if wrong or row.pages:
                session.run("close")  # A dialog or a second tab would disturb the next row.
            sessions.put(session)
        return wrong

    with ThreadPoolExecutor(_SESSIONS) as executor:
        try:
            yield {row.id: executor.submit(run, number, row) for number, row in enumerate(rows)}
        finally:
            executor.shutdown(cancel_futures=True)
