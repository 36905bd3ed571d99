"""What may come in as one message, and how long it takes to find out that it may not."""

from __future__ import annotations

import subprocess
import sys

import pytest

from browser_shell.mcp_server.json_rpc import MAX_DEPTH, read_json

BRACKETS = MAX_DEPTH + 1
HOSTILE = {
    "a string that never ends": rb"""b'["' + b'\\"' * 1_000_000""",
    "after many brackets": rb"""b'[' * 65 + b'"' + b'\\"' * 1_000_000""",
    "after pairs of them": rb"""b'{}' * 65 + b'"' + b'\\"' * 1_000_000""",
    "an escape at the end": rb"""b'[' * 65 + b'"' + b'\\\\' * 1_000_000 + b'\\'""",
    "many short strings": rb"""b'[' * 65 + b'""' * 1_000_000""",
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
def test_no_body_keeps_the_server_busy(body: bytes) -> None:
    program = f"""
from browser_shell.mcp_server.json_rpc import read_json
try:
    read_json({body.decode()})
except ValueError:
    print("refused")
"""
    # A reader that looks at each byte again for each quote would take hours.
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
def test_depth_is_that_of_brackets_outside_strings(body: bytes, deep: bool) -> None:
    if deep:
        with pytest.raises(ValueError, match="nested too deeply"):
            read_json(body)
    else:
        assert isinstance(read_json(body), list)
