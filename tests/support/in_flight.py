"""Calls that run in the background of a test."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from http.client import HTTPException

from support.canaries import AuditReader
from support.pages import Site, wait_until
from support.server import Outcome, Session


class InFlight:
    """One call in its own thread."""

    def __init__(
        self, session: Session, *argv: str | int, timeout: int = 30, then: Sequence[Sequence[str | int]] | None = None
    ) -> None:
        self._outcomes: list[Outcome] = []

        def run() -> None:
            # The server may stop during the call. `outcome` fails then.
            with suppress(OSError, HTTPException):
                self._outcomes.append(session.run(*argv, timeout=timeout, then=then))

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
    """Start an `open` and wait until the site has received its request."""
    path = f"/slow/{next(site.numbers)}/{seconds}"
    call = InFlight(session, "open", f"{site.origin}{path}", timeout=timeout)
    wait_until(lambda: any(request.path == path for request in site.requests), what="the slow request")
    return call


def has_started(session: Session, command: str) -> bool:
    """Check whether the audit log has the execution of this command."""
    return any(
        record.get("kind") == "SANDBOX_EXEC"
        and record.get("session_id") == session.session_id
        and record.get("subcommand") == command
        for record in AuditReader(session.server).records()
    )
