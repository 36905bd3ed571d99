"""The pages of the truth table, one real server, and the rows run in several sessions at once."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from support.pages import running_site
from support.server import Session, running_server
from support.truth import Row, Stage, perform

_SESSIONS = 3
CROSS_HOST = "frames.example"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "/tests/truth/" in str(item.path):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def findings(request: pytest.FixtureRequest) -> Iterator[dict[str, Future[list[str]]]]:
    """Row id to what is wrong with it. All selected rows start at once, each in one of few sessions."""
    rows: list[Row] = [item.callspec.params["row"] for item in request.session.items if hasattr(item, "callspec")]
    with ExitStack() as stack:
        site, port_site = stack.enter_context(running_site()), stack.enter_context(running_site())
        stage = Stage(site=site, port_site=port_site, cross_origin=f"http://{CROSS_HOST}")
        policy = {
            "unsafe_allow_addresses": [f"127.0.0.1:{site.port}", f"127.0.0.1:{port_site.port}"],
            "unsafe_resolve": {CROSS_HOST: f"127.0.0.1:{site.port}"},
        }
        server = stack.enter_context(running_server({"open": policy}))
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

        executor = stack.enter_context(ThreadPoolExecutor(_SESSIONS))
        stack.callback(executor.shutdown, cancel_futures=True)
        yield {row.id: executor.submit(run, number, row) for number, row in enumerate(rows)}
