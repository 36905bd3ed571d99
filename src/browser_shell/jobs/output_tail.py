"""The last lines of a job's output, kept while it runs: for progress, and for the answer."""

from __future__ import annotations

from collections import deque

from browser_shell.jobs.job_text import plain_line
from browser_shell.policy.job_arguments import MAX_OUTPUT_LINES

MAX_LINE_CHARACTERS = 500
MAX_CHARACTERS = 16_000
_KEPT_BYTES = 64 * 1024


class OutputTail:
    """Bounded, whatever the job writes and however long its lines are."""

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
        lines = self._lines()
        return next((line for line in reversed(lines) if line.strip()), "")

    def last_lines(self, count: int) -> str:
        kept: list[str] = []
        room = MAX_CHARACTERS
        lines = self._lines()
        for line in reversed(lines[-min(count, MAX_OUTPUT_LINES) :] if count else []):
            room -= len(line) + 1
            if room < 0:
                break
            kept.append(line)
        return "\n".join(reversed(kept))

    def is_cut(self, text: str) -> bool:
        """Whether there was more than this."""
        return self.total_bytes > len(text.encode()) + 1

    def _lines(self) -> list[str]:
        text = b"".join(self._pieces)[-_KEPT_BYTES:].decode("utf-8", "replace")
        return [_short(plain_line(line)) for line in text.rstrip("\n").split("\n")]


def _short(line: str) -> str:
    return line if len(line) <= MAX_LINE_CHARACTERS else f"{line[:MAX_LINE_CHARACTERS]}…"
