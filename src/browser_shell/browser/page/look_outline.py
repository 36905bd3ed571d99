"""The outline of a look: which items get a line, and how far it is indented."""

from __future__ import annotations

from dataclasses import dataclass

from browser_shell.browser.page.look_items import Item, Kind
from browser_shell.browser.page.look_tree import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The kind of look."""

    interactive: bool = False
    compact: bool = False
    scope: tuple[str, int] | None = None
    """Key of the element whose subtree is shown; None for the whole page."""
    grouped: bool = True
    """Whether large tables and lists are shortened in an interactive look."""
    max_depth: int | None = None


def outline(items: list[Item], view: View) -> list[Item]:
    """Return the items that get a line, with their depth."""
    items = _merge_texts(_drop_labels(items))
    _count(items)
    chosen = [item for item in items if _gets_line(item, view)]
    _indent(chosen)
    return chosen


def _merge_texts(items: list[Item]) -> list[Item]:
    """Move a text at the beginning of a list entry into the line of the entry."""
    merged: list[Item] = []
    for item in items:
        last = merged[-1] if merged else None
        if (
            item.kind is Kind.TEXT
            and last is not None
            and (last.kind, last.role, last.name) == (Kind.CONTAINER, "listitem", "")
            and item.node.index < last.node.end
        ):
            last.name = item.name
        else:
            merged.append(item)
    return merged


def _drop_labels(items: list[Item]) -> list[Item]:
    """Leave out each text that is also the name of the control before or after it."""
    kept: list[Item] = []
    for index, item in enumerate(items):
        neighbours = (*items[index + 1 : index + 2], *items[max(0, index - 1) : index])
        words = " ".join(item.name.split()) if item.kind is Kind.TEXT else ""
        if not words or not any(other.kind is Kind.CONTROL and other.name == words for other in neighbours):
            kept.append(item)
    return kept


def _count(items: list[Item]) -> None:
    """Count the controls and lines inside every item."""
    around: list[Item] = []
    for item in items:
        while around and item.node.index >= around[-1].node.end:
            _close(around)
        if item.kind is Kind.REST:
            for outer in around:
                outer.lines += 1
            continue
        around.append(item)
    while around:
        _close(around)


def _close(around: list[Item]) -> None:
    item = around.pop()
    if around:
        around[-1].controls += item.controls + (item.kind is Kind.CONTROL)
        around[-1].lines += item.lines + (item.kind is not Kind.CONTAINER or bool(item.name))


def _gets_line(item: Item, view: View) -> bool:
    if item.kind is not Kind.CONTAINER or item.is_required:
        return bool(item.name or item.value or item.has_ref or item.mark) or item.kind is Kind.CONTAINER
    if item.role == "Iframe":
        return item.lines > 0 or _is_visible_frame(item.node)
    if view.interactive:
        if item.role == "row":
            return item.controls > 0 and (bool(item.name) or item.controls > 1)
        if item.role == "listitem":
            return item.controls > 1 or (item.controls == 1 and bool(item.name))
        return item.controls > 1 and bool(item.name)
    if item.role == "row":
        return bool(item.name) or item.controls > 1
    if view.compact:
        return bool(item.name) and item.lines > 1
    least = 1 if item.role in ("list", "listitem", "form") else 0
    return bool(item.name) or (item.lines > least and item.role not in ("group", "application"))


def _is_visible_frame(node: Node) -> bool:
    return node.box is not None and node.box[2] > 20 and node.box[3] > 20


def _indent(items: list[Item]) -> None:
    around: list[Item] = []
    for item in items:
        while around and item.node.index >= around[-1].node.end:
            around.pop()
        if item.kind is Kind.REST:
            position = next((index for index, outer in enumerate(around) if outer.node is item.node), len(around) - 1)
            item.depth = position + 1
            continue
        item.depth = len(around)
        around.append(item)
