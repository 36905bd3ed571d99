"""Runs a small Python program under a real seccomp filter that refuses given system calls."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_PATHS = [str(_ROOT / "src"), str(_ROOT / "tests")]
# Classic BPF: load the number of the call and return the error for each forbidden one.
_INSTALL = """
import ctypes, errno, struct, sys
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | {error}
lines = [(LOAD, 0, 0, 0)]
for number in {numbers}:
    lines += [(JUMP_IF_EQUAL, 0, 1, number), (RETURN, 0, 0, REFUSE)]
lines.append((RETURN, 0, 0, ALLOW))
program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in lines))
whole = struct.pack("HxxxxxxP", len(lines), ctypes.addressof(program))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, whole, 0, 0) == 0, ctypes.get_errno()
"""


def output_behind_filter(numbers: Iterable[int], script: str, *, error: int) -> object:
    """Return the last line of the script's output as JSON. The filter fails these calls with `error`."""
    code = _INSTALL.format(numbers=list(numbers), error=error) + f"sys.path[:0] = {_PATHS}\n" + script
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout.splitlines()[-1])
