"""Text that a job wrote, made fit for people, models and terminals."""

from __future__ import annotations

import re

# CSI and OSC sequences of ECMA-48: colours, titles, links.
_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]{0,500}(?:\x07|\x1b\\))")


def plain_line(line: str) -> str:
    """One line. What a carriage return overwrote is gone, as it would be on a terminal; no terminal obeys the rest."""
    last = _ESCAPES.sub("", line).rstrip("\r").rsplit("\r", 1)[-1]
    return "".join(letter if letter.isprintable() or letter == "\t" else "�" for letter in last)


def plain_text(text: str) -> str:
    """Several lines."""
    return "\n".join(plain_line(line) for line in text.split("\n"))
