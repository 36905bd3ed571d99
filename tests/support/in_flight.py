"""Calls that run while the test does something else."""

from __future__ import annotations

import threading
from contextlib import suppress
from http.client import HTTPException

from support.pages import Site, wait_until
from support.server import Outcome, Session


class InFlight:
    """One call in a thread of its own."""

    def __init__(self, session: Session, *argv: str | int, timeout: int = 30) -> None:
        self._outcomes: list[Outcome] = []

        def run() -> None:
            # A server that is ended meanwhile breaks the answer off; whoever wants one asks for the outcome.
            with suppress(OSError, HTTPException):
                self._outcomes.append(session.run(*argv, timeout=timeout))

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    def outcome(self, *, seconds: float = 15) -> Outcome:
        self._thread.join(seconds)
        assert self._outcomes, f"no answer within {seconds} s"
        return self._outcomes[0]


def opening_slowly(session: Session, site: Site, seconds: int, *, timeout: int = 30) -> InFlight:
    """An `open` that has reached the site, which lets it wait."""
    path = f"/slow/{next(site.numbers)}/{seconds}"
    call = InFlight(session, "open", f"{site.origin}{path}", timeout=timeout)
    wait_until(lambda: any(request.path == path for request in site.requests), seconds=10, what="the slow request")
    return call
