"""Trees of looks from small pieces of HTML, for tests that need no browser."""

from __future__ import annotations

from html.parser import HTMLParser
from itertools import count

from browser_shell.browser.page.frames import Frame
from browser_shell.browser.page.look_items import Item
from browser_shell.browser.page.look_outline import View
from browser_shell.browser.page.look_selection import select_items
from browser_shell.browser.page.look_text import AssignRef, Style, render
from browser_shell.browser.page.look_tree import Node, Tree, words

TOP = Frame(frame_id="top", loader_id="l1", url="https://a.example/page", cdp_session="s1", parent_id="")
_INLINE = words("a b button i img input label select span svg textarea u canvas video")
_VOID = words("area br hr img input")
_SPECIAL = frozenset({"click", "pointer", "gone"})
"""Attributes of the test: has a listener, has a hand pointer, is not rendered."""


class _Builder(HTMLParser):
    def __init__(self, frame: Frame) -> None:
        super().__init__()
        self.tree = Tree()
        self._frame = frame
        self._ids = count(1)
        self._open = [self._add("#document", {})]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        node = self._add(tag, {name: value for name, value in given.items() if name not in _SPECIAL})
        node.is_clickable = "click" in given or tag in ("a", "input")
        node.has_pointer = "pointer" in given or tag == "a" or (node.parent is not None and node.parent.has_pointer)
        if "gone" in given or not self._open[-1].is_shown or tag == "option":
            node.is_shown, node.box = False, None
        if tag in ("input", "textarea"):
            node.value = given.get("value", "")
        node.is_checked, node.is_selected = "checked" in given, "selected" in given
        if tag not in _VOID:
            self._open.append(node)

    def handle_endtag(self, tag: str) -> None:
        while len(self._open) > 1 and self._open.pop().tag != tag:
            continue

    def handle_data(self, data: str) -> None:
        parent = self._open[-1]
        node = self._add("#text", {})
        node.text = data
        node.is_shown = parent.is_shown
        if parent.tag == "textarea":
            parent.value = data

    def _add(self, tag: str, attributes: dict[str, str]) -> Node:
        node = Node(
            tag=tag,
            frame=self._frame,
            backend_node_id=next(self._ids),
            base_url=self._frame.url,
            parent=self._open[-1] if tag != "#document" else None,
            attributes=attributes,
            box=(8.0, 8.0, 100.0, 20.0),
            is_inline=tag in _INLINE,
            is_shown=True,
        )
        self.tree.add(node)
        return node


def tree_of(html: str, *, frame: Frame = TOP) -> Tree:
    """Build the tree of a document. Nodes are numbered from 1 in document order."""
    builder = _Builder(frame)
    builder.feed(html)
    builder.close()
    builder.tree.close()
    return builder.tree


def node_of(tree: Tree, tag: str, position: int = 0) -> Node:
    return [node for node in tree.nodes if node.tag == tag][position]


def refs_by_node() -> AssignRef:
    """Return a function that numbers elements in the order in which they are shown."""
    refs: dict[tuple[str, int], str] = {}
    return lambda item: refs.setdefault(item.target.key, f"e{len(refs) + 1}")


def items_of(html: str, *, interactive: bool = True, compact: bool = False, grouped: bool = True) -> list[Item]:
    return select_items(tree_of(html), View(interactive=interactive, compact=compact, grouped=grouped))


def look(html: str, *, interactive: bool = True, compact: bool = False, urls: bool = False) -> list[str]:
    """Return the lines of a look."""
    style = Style(short=interactive, urls=urls)
    items = items_of(html, interactive=interactive, compact=compact)
    return list(render(items, style=style, assign_ref=refs_by_node(), scope_hint="snapshot -i -s").lines)
