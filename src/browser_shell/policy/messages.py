"""How text that a stranger wrote appears inside our messages."""

from __future__ import annotations

from collections.abc import Iterable

MAX_SHOWN = 80


def shown(text: str) -> str:
    """The text in quotes, shortened, with everything unprintable escaped."""
    cut = text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"
    return f"'{printable(cut)}'"


def printable(text: str) -> str:
    """The text on one line, with everything unprintable escaped: no terminal obeys it, no log line splits."""
    return "".join(_visible(character) for character in text)


def listed(words: Iterable[str]) -> str:
    return ", ".join(words)


def _visible(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
