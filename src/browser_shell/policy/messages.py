"""Untrusted text inside our own messages."""

from __future__ import annotations

MAX_QUOTED = 80
"""Characters of untrusted text in one message."""


def quoted(text: str) -> str:
    """Return the text in quotes, shortened, with unprintable characters escaped."""
    cut = text if len(text) <= MAX_QUOTED else text[: MAX_QUOTED - 1] + "…"
    return f"'{printable(cut)}'"


def printable(text: str) -> str:
    """Escape unprintable characters, so that the text can neither control a terminal nor split a log line."""
    return "".join(_escaped(character) for character in text)


def _escaped(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
