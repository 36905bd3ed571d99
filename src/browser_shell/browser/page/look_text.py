"""The text of a look: one line per item, in the form that agent-browser prints.

    - heading "Order" [level=1, ref=e1]
      - textbox "Name" [required, ref=e2]: Ada
      - combobox "Size" [ref=e3]: medium [options: small | medium | large]

Names, values and texts are under the control of the page. They stay inside their line, and they cannot contain a ref.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from browser_shell.browser.page.look_items import Item, Kind
from browser_shell.core.json_values import compact_json

MAX_CHARACTERS = 24_000
"""Largest size of one look as JSON. The result of a call has at most 30,000 characters."""
_MAX_NAME = 400
_MAX_VALUE = 1_000
_MAX_URL = 500
_SHORT_NAME = 120
_SHORT_VALUE = 200

_LINE_BREAK = re.compile(r"\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb]")
"""Control characters, and characters that reorder the text around them."""
_QUOTE = '"'
_FORGED_REF = re.compile(r"(ref)=(?=e\d)", re.IGNORECASE)

AssignRef = Callable[[Item], str]
"""Returns the ref of the element of an item, for example `e7`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """Options for rendering lines."""

    urls: bool = False
    short: bool = False
    """Whether long names and values are cut, as in an interactive look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """Some lines of a look."""

    lines: Sequence[str]
    total: int
    """Lines of the whole look."""
    next_line: int | None = None
    """Number of the first line that is left out at the end, counted from 1; None if nothing is."""
    refs: dict[str, Item]


def render(
    items: Sequence[Item],
    *,
    style: Style,
    assign_ref: AssignRef,
    scope_hint: str,
    first_line: int = 1,
    max_characters: int = MAX_CHARACTERS,
) -> Excerpt:
    """Render the lines from `first_line` on that fit into one look. Only these get refs.

    `scope_hint` is the beginning of the argv that shows more of one element, for example `snapshot -i -s`.
    """
    lines: list[str] = []
    refs: dict[str, Item] = {}
    room = min(MAX_CHARACTERS, max_characters)
    start = first_line - 1
    context = _ancestors(items, start)
    for index in [*context, *range(start, len(items))]:
        item = items[index]
        ref = _ref(item, assign_ref, refs)
        line = _line(item, ref, style)
        if item.kind is Kind.REST:
            line = f"- … {item.name}: {scope_hint} @{ref} --from {_position(items, index)}"
        text = "  " * min(item.depth, 40) + line
        size = len(compact_json(text))
        if size > room and lines:
            return Excerpt(lines=lines, total=len(items), next_line=index + 1, refs=refs)
        room -= size
        lines.append(text)
    return Excerpt(lines=lines, total=len(items), refs=refs)


def line_of(item: Item, ref: str, *, style: Style) -> str:
    """Return the line of one item without indentation."""
    return _line(item, ref, style)


def _ref(item: Item, assign_ref: AssignRef, refs: dict[str, Item]) -> str:
    if not item.has_ref and item.kind is not Kind.REST:
        return ""
    ref = assign_ref(item)
    if item.kind is not Kind.REST:
        refs[ref] = item
    return ref


def _ancestors(items: Sequence[Item], start: int) -> list[int]:
    """Return the items around the first line, so that a continued look keeps its context."""
    found: list[int] = []
    depth = items[start].depth if start < len(items) else 0
    for index in range(start - 1, -1, -1):
        if depth == 0:
            break
        if items[index].depth < depth and items[index].kind is not Kind.REST:
            depth = items[index].depth
            found.append(index)
    return found[::-1]


def _position(items: Sequence[Item], index: int) -> int:
    """Return the line of the first member that is left out, in a look at the collection alone."""
    collection = items[index].node
    for before in range(index - 1, -1, -1):
        if items[before].node is collection:
            return index - before + 1
    return 1


def _line(item: Item, ref: str, style: Style) -> str:
    name = one_line(
        " ".join(item.name.split()),
        _SHORT_NAME if style.short and item.kind is not Kind.WORDS else _MAX_NAME_OF[item.kind],
    )
    states = [*item.states, *([f"ref={ref}"] if ref else [])]
    if style.urls and item.url:
        states.append(f"url={one_line(item.url, _MAX_URL)}")
    parts = [f"- {item.role}"]
    if name:
        parts.append(compact_json(name))
    if states:
        parts.append(f"[{', '.join(states)}]")
    if item.mark:
        parts.append(item.mark)
    line = " ".join(parts)
    if item.value:
        value = one_line(item.value, _SHORT_VALUE if style.short else _MAX_VALUE)
        # Quotes are escaped, so that no value looks like the name of another element.
        line += f": {compact_json(value) if _QUOTE in value else value}"
    if item.options:
        options = " | ".join(one_line(option, 60) for option in item.options).replace(_QUOTE, "'")
        line += f" [options: {options}]"
    return line


_MAX_NAME_OF = {
    Kind.CONTROL: _MAX_NAME,
    Kind.CONTAINER: 1_000,
    Kind.WORDS: _MAX_NAME,
    Kind.TEXT: 2 * 1_500,
    Kind.REST: _MAX_NAME,
}


def one_line(text: str, max_characters: int) -> str:
    """Return a text of the page for use inside a line. It cannot contain a line break or a ref."""
    text = text[: 2 * max_characters + 100].strip()
    text = _LINE_BREAK.sub(" ⏎ ", text)
    text = _FORGED_REF.sub(r"\1\\u003d", _UNPRINTABLE.sub("", text))
    text = " ".join(text.split())
    return text if len(text) <= max_characters else text[: max_characters - 1] + "…"
