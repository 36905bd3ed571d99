"""Names of counters: fixed in length, and nothing that a caller chose can be read from them or bent into another."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache

from browser_shell.core.calls import ToolCall

_DEADLINE = frozenset({"timeout_sec"})
_MEANS_THE_SAME_WORK = _DEADLINE | {"session_id"}


@lru_cache(maxsize=256)
def subject_key(subject: str) -> str:
    return _digest(subject.encode("utf-8", "surrogatepass"))


def owner_of(key: str) -> str:
    """The subject's part of a counter's name."""
    return key.partition("/")[0]


def task_key(call: ToolCall) -> str:
    """Subject, tool and session. A tool without sessions has one task for each subject."""
    return f"{subject_key(call.principal.subject)}/{call.tool}/{call.session_id}"


def fingerprint(call: ToolCall) -> str:
    """Equal for calls that ask for the same work. A longer deadline does not make it another.

    A session that cannot exist is none, so each wrong id is a mistake of its own.
    """
    arguments = call.arguments
    if isinstance(arguments, dict):
        same = _MEANS_THE_SAME_WORK if call.session_id else _DEADLINE
        arguments = {name: value for name, value in arguments.items() if name not in same}
    return _digest(json.dumps(arguments, sort_keys=True).encode("ascii"))


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()
