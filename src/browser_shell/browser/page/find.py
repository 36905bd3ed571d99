"""The command `find`: the elements and texts of a page that contain a text, with refs and their context."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import anyio.to_thread

from browser_shell.browser.page.look_capture import capture_tree
from browser_shell.browser.page.look_items import Item, Kind, has_role
from browser_shell.browser.page.look_outline import View
from browser_shell.browser.page.look_selection import select_items
from browser_shell.browser.page.look_text import AssignRef, Style, line_of, one_line
from browser_shell.browser.page.look_tree import Tree
from browser_shell.browser.page.looks import ref_assigner
from browser_shell.browser.page.page import Page
from browser_shell.core.calls import BrowserCommand
from browser_shell.core.json_values import JsonObject, JsonValue, compact_json

DEFAULT_LIMIT = 10
MOST_MATCHES = 100
"""The largest limit that the grammar allows."""
_MAX_AROUND = 8
"""Controls that are listed with a match in a row or list entry."""
_EXCERPT_CHARACTERS = 160
_UNITS = frozenset({"row", "listitem", "article", "treeitem"})
_PLACES = frozenset({"dialog", "alertdialog", "navigation", "region", "form", "group", "tabpanel", "Iframe", "table"})
_STYLE = Style(short=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A matching item, with the row or list entry that it belongs to."""

    item: Item
    unit: Item | None
    around: Sequence[Item]
    """The controls of the unit."""
    place: str
    """The heading above the match, or the named part of the page that it is in."""


async def find(page: Page, plan: BrowserCommand) -> JsonObject:
    """Run `find TEXT`. Raises: ActFailed when the page is too large, BrowserUnavailable, DevToolsError."""
    text, role = plan.operands[0], plan.options.get("role", "")
    tree = await capture_tree(page)
    matches = await anyio.to_thread.run_sync(_search_tree, tree, text, role)
    listed = matches[: int(plan.options.get("limit", DEFAULT_LIMIT))]
    assign_ref = ref_assigner(page)
    lines = [line for match in listed for line in lines_of(match, text, assign_ref)]
    if len(matches) > len(listed):
        argv: list[JsonValue] = ["find", text, *(["--role", role] if role else [])]
        argv += ["--limit", str(min(MOST_MATCHES, len(matches)))]
        page.notes.append(f"{len(matches) - len(listed)} more matches; show them with {compact_json(argv)}")
    if not matches:
        page.notes.append("no visible text, name or value of this page contains it; look with snapshot -i")
    return {"matches": len(matches), "shown": len(listed), "lines": "\n".join(lines)}


def _search_tree(tree: Tree, text: str, role: str) -> list[Match]:
    return list(search(select_items(tree, View()), text, role=role))


def search(items: Sequence[Item], text: str, *, role: str = "") -> Iterator[Match]:
    """Yield the items that contain a text, without regard to case and white space. A row is yielded once."""
    wanted = " ".join(text.split()).casefold()
    around: list[tuple[int, Item]] = []
    """The items that contain the current one, with their positions."""
    heading = ""
    last_unit: Item | None = None
    controls: Sequence[Item] = ()
    for position, item in enumerate(items):
        while around and item.node.index >= around[-1][1].node.end:
            around.pop()
        around.append((position, item))
        if item.role == "heading":
            heading = item.name
        if not _has_role(item, role) or wanted not in _words(item):
            continue
        start, unit = next(((at, outer) for at, outer in reversed(around) if outer.role in _UNITS), (0, None))
        if unit is not None and unit is last_unit and not role:
            continue
        if unit is None or unit is not last_unit:
            controls = _controls_of(items, start, unit) if unit is not None else ()
        last_unit = unit
        place = _place([outer for _, outer in around], heading, item)
        yield Match(item=item, unit=unit, around=controls, place=place)


def lines_of(match: Match, text: str, assign_ref: AssignRef) -> Iterator[str]:
    """Yield the lines of a match: the item, or its row or list entry with the controls in it."""
    place = f" ({match.place})" if match.place else ""
    if match.unit is None or not match.around:
        item = _excerpt(match.item, text)
        yield line_of(item, assign_ref(item), style=_STYLE) + place
        return
    unit = replace(match.unit, states=list(match.unit.states))
    yield line_of(unit, assign_ref(unit), style=_STYLE) + place
    if match.item.kind is Kind.TEXT:
        item = _excerpt(match.item, text)
        yield f"  {line_of(item, assign_ref(item), style=_STYLE)}"
    for item in match.around:
        if item is not match.unit:
            yield f"  {line_of(item, assign_ref(item), style=_STYLE)}"


def _has_role(item: Item, role: str) -> bool:
    return has_role(item, role) if role else item.kind is not Kind.REST


def _words(item: Item) -> str:
    return " ".join(f"{item.name} {item.value} {' '.join(item.options)}".split()).casefold()


def _controls_of(items: Sequence[Item], start: int, unit: Item) -> Sequence[Item]:
    """Return the first controls in a row or list entry, which stands at `start`."""
    found: list[Item] = []
    for index in range(start, len(items)):
        item = items[index]
        if item.node.index >= unit.node.end or len(found) >= _MAX_AROUND:
            break
        if item.kind is Kind.CONTROL:
            found.append(item)
    return found


def _place(around: Sequence[Item], heading: str, item: Item) -> str:
    named = [outer for outer in around[:-1] if outer.role in _PLACES and outer.name]
    parts = [f"in {named[-1].role} {compact_json(one_line(named[-1].name, 60))}"] if named else []
    if heading and item.role != "heading":
        parts.append(f"under {compact_json(one_line(heading, 60))}")
    return ", ".join(parts)


def _excerpt(item: Item, text: str) -> Item:
    """Return an item whose text is cut to the surroundings of the match. A text gets the ref of its element."""
    name = " ".join(item.name.split())
    if item.kind is Kind.TEXT and item.node.parent is not None:
        item = replace(item, node=item.node.parent)
    start = name.casefold().find(" ".join(text.split()).casefold())
    if len(name) > _EXCERPT_CHARACTERS and start >= 0:
        first = max(0, start - _EXCERPT_CHARACTERS // 2)
        cut = name[first : first + _EXCERPT_CHARACTERS]
        name = f"{'…' if first else ''}{cut}{'…' if first + _EXCERPT_CHARACTERS < len(name) else ''}"
    return replace(item, name=name)
