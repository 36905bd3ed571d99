"""Keys of counters. They have a bounded length and contain only hashes of values that callers choose."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache

from browser_shell.core.calls import ToolCall

_IGNORED_ARGUMENTS = frozenset({"timeout_sec"})


@lru_cache(maxsize=256)
def subject_key(subject: str) -> str:
    return _digest(subject.encode("utf-8", "surrogatepass"))


def owner_of(key: str) -> str:
    """Return the subject's part of a key."""
    return key.partition("/")[0]


def task_key(call: ToolCall) -> str:
    """Identify a task: subject, tool and session. A tool without sessions has one task for each subject."""
    return f"{subject_key(call.principal.subject)}/{call.tool}/{call.session_id}"


def fingerprint(call: ToolCall) -> str:
    """Hash the arguments, except the timeout. Equal hashes mean that a call is repeated.

    A valid session id is part of the task key. An invalid one stays in the hash, so that each counts separately.
    """
    arguments = call.arguments
    if isinstance(arguments, dict):
        ignored = _IGNORED_ARGUMENTS | ({"session_id"} if call.session_id else set())
        arguments = {name: value for name, value in arguments.items() if name not in ignored}
    return _digest(json.dumps(arguments, sort_keys=True).encode("ascii"))


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()
