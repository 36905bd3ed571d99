"""JavaScript that runs in the isolated world of a page."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def load_script(name: str) -> str:
    """Return the source of `NAME.js` in this package."""
    return (files(__package__) / f"{name}.js").read_text(encoding="utf-8")


@cache
def library() -> str:
    """Return the functions that are installed once per document and that all page functions share."""
    return ";\n".join(load_script(name) for name in ("library", "fields", "entering", "choices"))
