"""Which containers nobody looks after any more. A container of another server that lives is never among them."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from pathlib import Path

from browser_shell.jobs.containers.creation import DEADLINE_LABEL, LOCK_LABEL, RUN_LABEL, SERVER_LABEL
from browser_shell.jobs.containers.engine_api import LabelledContainer
from browser_shell.jobs.containers.server_lock import ServerState, state_of


def is_left_behind(
    container: LabelledContainer, *, own_server: str, own_runs: AbstractSet[str], wall_seconds: float
) -> bool:
    """Not sure means no: then its deadline, with all grace, must have passed."""
    labels = container.labels
    if labels.get(SERVER_LABEL) == own_server:
        return labels.get(RUN_LABEL) not in own_runs
    match state_of(Path(labels.get(LOCK_LABEL, ""))):
        case ServerState.ALIVE:
            return False
        case ServerState.GONE:
            return True
        case ServerState.UNKNOWN:
            deadline = labels.get(DEADLINE_LABEL, "")
            return deadline.isascii() and deadline.isdigit() and wall_seconds > int(deadline)
