"""The last lines of a job's output, kept while it runs: for progress messages and for the answer."""

from __future__ import annotations

import re
from collections import deque

from browser_shell.policy.jobs import MAX_OUTPUT_LINES

MAX_LINE_CHARACTERS = 500
MAX_CHARACTERS = 16_000
_KEPT_BYTES = 64 * 1024
# CSI and OSC sequences of ECMA-48: colours, titles, links.
_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]{0,500}(?:\x07|\x1b\\))")


class OutputTail:
    """Keeps at most 64 KiB, however much the job writes."""

    def __init__(self) -> None:
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self.total_bytes = 0

    def add(self, data: bytes) -> None:
        self.total_bytes += len(data)
        self._pieces.append(data[-_KEPT_BYTES:])
        self._size += len(self._pieces[-1])
        while self._size - len(self._pieces[0]) >= _KEPT_BYTES:
            self._size -= len(self._pieces.popleft())

    def last_line(self) -> str:
        return next((line for line in reversed(self._lines()) if line.strip()), "")

    def last_lines(self, count: int) -> str:
        kept: list[str] = []
        room = MAX_CHARACTERS
        for line in reversed(self._lines()[-min(count, MAX_OUTPUT_LINES) :] if count else []):
            room -= len(line) + 1
            if room < 0:
                break
            kept.append(line)
        return "\n".join(reversed(kept))

    def is_cut(self, text: str) -> bool:
        """Whether the job wrote more than `text`."""
        return self.total_bytes > len(text.encode()) + 1

    def _lines(self) -> list[str]:
        text = b"".join(self._pieces)[-_KEPT_BYTES:].decode("utf-8", "replace")
        return [_short(_plain_line(line)) for line in text.rstrip("\n").split("\n")]


def plain_text(text: str) -> str:
    """Remove escape sequences and replace control characters, so that no terminal interprets the text."""
    return "\n".join(_plain_line(line) for line in text.split("\n"))


def _plain_line(line: str) -> str:
    """Clean one line. Text before a carriage return is dropped, as a terminal would overwrite it."""
    last = _ESCAPES.sub("", line).rstrip("\r").rsplit("\r", 1)[-1]
    return "".join(letter if letter.isprintable() or letter == "\t" else "�" for letter in last)


def _short(line: str) -> str:
    return line if len(line) <= MAX_LINE_CHARACTERS else f"{line[:MAX_LINE_CHARACTERS]}…"
