"""Kinds of operand and option values. A reader returns the canonical form or raises ValueError with the rule."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from browser_shell.policy.keys import parse_chord
from browser_shell.policy.roles import is_role_selector, parse_role_selector, read_attribute, read_role

MAX_SELECTOR = 512
MAX_WAIT_MS = 30_000
MAX_SCROLL_PX = 10_000
MAX_DEPTH = 50
MAX_MATCHES = 100
MAX_OFFSET = 9_999_999
MAX_COORDINATE = 9_999

_REF = re.compile(r"@e[0-9]{1,6}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_TAB = re.compile(r"t[1-9][0-9]{0,3}")
_POINT = re.compile(r"([0-9]{1,6}), ?([0-9]{1,6})")
_INTEGER = re.compile(r"[0-9]{1,7}")
_NO_CSS_START = re.compile(r"[-+0-9]")
"""The driver would read `-` as an option, and a digit or `+` as a number, before it tries a selector."""
_PATH_PARTS = re.compile(r"[/\\%~]|\.\.")
_FILE_ENDING = re.compile(
    r"\.(avif|bmp|gif|heic|html?|ico|jfif|jpe|jpe?g|mhtml|pdf|png|svg|tiff?|txt|webp)[\s.]*", re.IGNORECASE
)
_LIKE_AN_OPTION = re.compile(r"--?[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:=.*)?", re.DOTALL)
_NOT_CSS = ("@", "text=", "xpath=", "role=", "//", "(")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of value: its name in messages and its reader, which raises ValueError with the rule."""

    label: str
    read: Callable[[str], str]


def _plain(text: str) -> str:
    if not 1 <= len(text) <= MAX_SELECTOR:
        raise ValueError(f"must have 1 to {MAX_SELECTOR} characters")
    if not text.strip():
        raise ValueError("must not be blank")
    if _CONTROL.search(text):
        raise ValueError("must not hold control characters")
    return text


def _selector(text: str) -> str:
    _plain(text)
    if _NO_CSS_START.match(text.lstrip()):
        raise ValueError("must be a selector; none begins with a dash, a plus or a digit")
    if text.lstrip().startswith("@") and not _REF.fullmatch(text):
        raise ValueError("must be a ref such as @e3, taken from a snapshot")
    if text in ("text=", "xpath="):
        raise ValueError("must say what to look for after the equals sign")
    return str(parse_role_selector(text)) if is_role_selector(text) else text


def _css(text: str) -> str:
    _selector(text)
    if text.lstrip().lower().startswith(_NOT_CSS):
        raise ValueError("must be a CSS selector here; refs, text=, role= and xpath= do not work in this place")
    return text


def _picture_of(text: str) -> str:
    if text.lstrip().lower().startswith(_NOT_CSS):
        return _selector(text)
    _css(text)
    if _PATH_PARTS.search(text) or _FILE_ENDING.search(text):
        raise ValueError("must be SEL and must not look like a file; the picture is part of the result")
    return text


def _wait_for(text: str) -> str:
    if _INTEGER.fullmatch(text):
        return _between(0, MAX_WAIT_MS)(text)
    if text.lstrip().lower().startswith(_NOT_CSS):
        raise ValueError(
            "wait takes CSS here; for text use wait --text TEXT, for a ref use its CSS selector or is visible @ref"
        )
    return _css(text)


def _pattern(text: str) -> str:
    _plain(text)
    # The driver looks for its flags everywhere: `wait --text -f x` would run x as script.
    if text.lstrip().startswith("-"):
        raise ValueError("must not begin with a dash")
    return text


def _passage(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    return text


def _key(text: str) -> str:
    parse_chord(text)
    return text


def _point(text: str) -> str:
    match = _POINT.fullmatch(text)
    if match is None or max(map(int, match.groups())) > MAX_COORDINATE:
        raise ValueError(f"must be X,Y: two whole numbers of CSS pixels from 0 to {MAX_COORDINATE}, such as 120,45")
    return f"{int(match[1])},{int(match[2])}"


def _choice(text: str) -> str:
    # Values such as -1 and --Select-- are ordinary. A word such as --session could become an option of the driver.
    if _LIKE_AN_OPTION.fullmatch(text):
        raise ValueError("looks like an option, and select has none")
    return text


def _tab(text: str) -> str:
    if not _TAB.fullmatch(text):
        raise ValueError("must be a tab id such as t1, taken from tab list")
    return text


def _between(low: int, high: int) -> Callable[[str], str]:
    def read(text: str) -> str:
        if not _INTEGER.fullmatch(text) or not low <= int(text) <= high:
            raise ValueError(f"must be a whole number from {low} to {high}")
        return str(int(text))

    return read


def one_of(*words: str) -> Kind:
    """Return the kind of value that is exactly one of these words."""

    def read(text: str) -> str:
        if text not in words:
            raise ValueError(f"must be one of {', '.join(words)}")
        return text

    return Kind(label="|".join(words), read=read)


# `urls.py` parses the URL; the grammar only ensures that it is not an option.
URL = Kind(label="URL", read=lambda text: text)
SELECTOR = Kind(label="SEL", read=_selector)
CSS = Kind(label="CSS", read=_css)
PICTURE_OF = Kind(label="SEL", read=_picture_of)
WAIT_FOR = Kind(label="MS|CSS", read=_wait_for)
PATTERN = Kind(label="TEXT", read=_pattern)
KEY = Kind(label="KEY", read=_key)
CHOICE = Kind(label="VALUE", read=_choice)
TAB = Kind(label="tN", read=_tab)
PIXELS = Kind(label="PX", read=_between(1, MAX_SCROLL_PX))
DEPTH = Kind(label="N", read=_between(1, MAX_DEPTH))
TEXT = Kind(label="TEXT", read=lambda text: text)
PASSAGE = Kind(label="TEXT", read=_passage)
POINT = Kind(label="X,Y", read=_point)
ROLE = Kind(label="ROLE", read=read_role)
ATTRIBUTE = Kind(label="NAME", read=read_attribute)
MATCHES = Kind(label="N", read=_between(1, MAX_MATCHES))
OFFSET = Kind(label="N", read=_between(0, MAX_OFFSET))
