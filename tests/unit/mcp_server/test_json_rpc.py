"""Parsing of messages: nesting depth, and time limits for hostile bodies."""

from __future__ import annotations

import subprocess
import sys

import pytest

from browser_shell.mcp_server.json_rpc import MAX_DEPTH, parse_message

BRACKETS = MAX_DEPTH + 1
HOSTILE = {
    "unterminated string": rb"""b'["' + b'\\"' * 1_000_000""",
    "unterminated string after many brackets": rb"""b'[' * 65 + b'"' + b'\\"' * 1_000_000""",
    "unterminated string after pairs of brackets": rb"""b'{}' * 65 + b'"' + b'\\"' * 1_000_000""",
    "escape at the end": rb"""b'[' * 65 + b'"' + b'\\\\' * 1_000_000 + b'\\'""",
    "many short strings": rb"""b'[' * 65 + b'""' * 1_000_000""",
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
def test_hostile_body_is_refused_quickly(body: bytes) -> None:
    program = f"""
from browser_shell.mcp_server.json_rpc import parse_message
try:
    parse_message({body.decode()})
except ValueError:
    print("refused")
"""
    # A parser with quadratic time would take hours.
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout == "refused\n"


@pytest.mark.parametrize(
    ("body", "deep"),
    [
        (b"[" * BRACKETS + b"]" * BRACKETS, True),
        (b"[" * MAX_DEPTH + b"]" * MAX_DEPTH, False),
        (b'["' + b"[" * 500 + b'"]', False),
        (b'["' + b'\\"' + b"[" * 500 + b'"]', False),
        (b'["\\\\",' + b"[" * BRACKETS + b"]" * BRACKETS + b"]", True),
    ],
)
def test_only_brackets_outside_strings_count_towards_the_depth(body: bytes, deep: bool) -> None:
    if deep:
        with pytest.raises(ValueError, match="nested too deeply"):
            parse_message(body)
    else:
        assert isinstance(parse_message(body), list)
