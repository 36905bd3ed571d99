"""The selection of the items of a look from the tree of a page.

An interactive look has the controls, the headings, the messages, and the containers that distinguish controls with
equal names. A full look has all text and structure.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from browser_shell.browser.page.look_controls import Controls
from browser_shell.browser.page.look_items import Item, Kind, describe_control, is_leaf
from browser_shell.browser.page.look_names import MAX_NAME_CHARACTERS, Names, readable
from browser_shell.browser.page.look_outline import View, outline
from browser_shell.browser.page.look_roles import MESSAGES, NAMED_BY_CONTENT, states_of, value_of
from browser_shell.browser.page.look_tree import Node, Tree, words

GROUPED_MEMBERS = 30
"""Tables and lists with more rows or entries are shortened in an interactive look."""
SHOWN_MEMBERS = 20
"""Rows or entries of a shortened table or list that are shown."""
MAX_TEXT_CHARACTERS = 1_500
"""Longer texts are shown in several lines, so that a look can be continued within them."""
_MAX_MESSAGE_CHARACTERS = 300
_MAX_MESSAGES = 20
_MAX_NAMES = 8
_SEPARATORS = " \t\r\n\f\N{NO-BREAK SPACE}/|<>«»\u2039\u203a·•.,;:\u2013\u2014-"
"""A text that consists only of these characters is not shown."""
_MAX_DIALOG_CHARACTERS = 600

_LANDMARKS = words("banner complementary contentinfo form main navigation region search")
_COLLECTIONS = {
    **{"table": "rows", "grid": "rows", "treegrid": "rows", "list": "entries", "listbox": "options"},
    **{"tree": "entries", "DescriptionList": "entries"},
}
_MEMBERS = words("row listitem option treeitem term")
_GROUPS = words("group radiogroup toolbar tablist tabpanel menu menubar article figure feed application")
_CONTAINERS = _LANDMARKS | _GROUPS | frozenset(_COLLECTIONS) | {"dialog", "alertdialog", "Iframe", "row", "listitem"}
_CELLS = words("cell gridcell columnheader rowheader")
_TITLES = frozenset({"Legend", "caption", "Figcaption"})
_PLAIN = _TITLES | words(
    "generic paragraph LabelText rowgroup cell gridcell columnheader rowheader term definition Pre document blockquote "
    "code EmbeddedObject"
)
"""Roles that get no line. Only the text inside such elements is shown."""
_MESSAGE_WORDS = (
    *("alert", "error", "success", "warning", "message", "notice", "notification", "toast", "flash", "snackbar"),
    *("invalid-feedback", "help-block"),
)


def select_items(tree: Tree, view: View) -> list[Item]:
    """Return the items of a look, in document order."""
    root = _root(tree, view)
    if root is None:
        return []
    names = Names(tree)
    controls = Controls(tree, names)
    items = outline(_Selection(tree, names, controls, view, root).run(), view)
    return [item for item in items if view.max_depth is None or item.depth < view.max_depth]


def _root(tree: Tree, view: View) -> Node | None:
    if view.scope is not None:
        return tree.find(view.scope)
    if not tree.nodes:
        return None
    return tree.modal or tree.nodes[0]


class _Selection:
    """One pass through a subtree."""

    def __init__(self, tree: Tree, names: Names, controls: Controls, view: View, root: Node) -> None:
        self._tree = tree
        self._names = names
        self._controls = controls
        self._view = view
        self._root = root
        self._items: list[Item] = []
        self._text_until = 0
        """Index before which all text is part of an item already."""
        self._members: dict[Node, int] = {}
        self._totals: dict[Node, int] = {}
        self._messages = 0
        self._dialog_until = 0
        """Index before which text is shown in an interactive look, too: a dialog is unclear without its text."""
        self._dialog_characters = 0
        self._text: Item | None = None
        """The text that the next text may continue."""

    def run(self) -> list[Item]:
        index = self._root.index
        while index < self._root.end:
            node = self._tree.nodes[index]
            skips_subtree = self._visit(node) if self._is_visible(node) else True
            index = node.end if skips_subtree else index + 1
        return self._items

    def _is_visible(self, node: Node) -> bool:
        return self._controls.is_visible(node) or node is self._root

    def _visit(self, node: Node) -> bool:
        """Add the item of a node. Return whether the nodes below it are left out."""
        if node.tag == "#text":
            self._add_text(node)
            return True
        role = self._names.role(node)
        if self._is_left_out(node, role):
            return True
        if self._controls.is_control(node):
            return self._add_control(node)
        if role == "heading" or role in MESSAGES or self._is_message(node, role):
            return self._add_words(node, role)
        if role == "row":
            self._add_row(node)
        elif role in _CONTAINERS or node is self._root:
            self._add_container(node, role)
        elif not self._view.interactive or node.index < self._dialog_until:
            return self._add_plain(node, role)
        return False

    # Members of large collections.

    def _is_left_out(self, node: Node, role: str) -> bool:
        """Whether the node is a member of a large collection that is not shown."""
        if role not in _MEMBERS or not self._view.interactive or not self._view.grouped or node is self._root:
            return False
        collection = self._collection_of(node)
        if collection is None or collection is self._root or self._total(collection) <= GROUPED_MEMBERS:
            return False
        seen = self._members.get(collection, 0)
        self._members[collection] = seen + 1
        if seen < SHOWN_MEMBERS:
            return False
        if seen == SHOWN_MEMBERS and self._controls.inside(collection):
            self._add_rest(collection)
        return True

    def _collection_of(self, member: Node) -> Node | None:
        ancestor = member.parent
        for _ in range(3):
            if ancestor is None or self._names.role(ancestor) in _COLLECTIONS:
                return ancestor
            ancestor = ancestor.parent
        return None

    def _total(self, collection: Node) -> int:
        """Count the members of a collection, without the members inside other members."""
        total = self._totals.get(collection)
        if total is None:
            total, index = 0, collection.index + 1
            while index < collection.end:
                node = self._tree.nodes[index]
                is_member = node.tag != "#text" and self._names.role(node) in _MEMBERS
                total += is_member and self._is_visible(node)
                index = node.end if is_member or node.tag == "#text" else index + 1
            self._totals[collection] = total
        return total

    def _add_rest(self, collection: Node) -> None:
        role = self._names.role(collection)
        rest = self._total(collection) - SHOWN_MEMBERS
        self._append(Item(node=collection, kind=Kind.REST, role=role, name=f"{rest} more {_COLLECTIONS[role]}"))
        for item in reversed(self._items):
            if item.node is collection and item.kind is not Kind.REST:
                item.is_required = item.has_ref = True
                break

    # Items.

    def _append(self, item: Item) -> None:
        self._text = None
        self._items.append(item)

    def _add_control(self, node: Node) -> bool:
        item = self._describe(node)
        self._append(item)
        is_named_by_text = item.role == "generic" or item.mark == "clickable" or item.role in NAMED_BY_CONTENT
        # A full look shows a text below its element if it is longer than a name can be.
        if is_named_by_text and (self._view.interactive or len(item.name) < MAX_NAME_CHARACTERS):
            self._text_until = max(self._text_until, node.end)
        if item.mark == "editable" and self._view.interactive:
            item.value = item.value or self._names.text(node)
            return True
        return is_leaf(node)

    def _describe(self, node: Node) -> Item:
        return describe_control(node, self._tree, self._names, all_options=node is self._root)

    def _add_words(self, node: Node, role: str) -> bool:
        inside = self._controls.inside(node)
        if role == "heading":
            name = self._names.name(node)
            sole = self._controls.sole(node)
            if sole is not None and self._names.name(sole) == name and name:
                # The heading is the text of a link: one line for both.
                item = self._describe(sole)
                item.states = [*states_of(node, role), *item.states]
                self._append(item)
                self._text_until = node.end
                return True
            if name:
                self._append(
                    Item(node=node, kind=Kind.WORDS, role=role, name=name, states=states_of(node, role), has_ref=True)
                )
            self._text_until = max(self._text_until, node.end)
            return not inside
        text = self._text_around_controls(node) if inside else self._names.text(node)
        if text:
            self._messages += role not in MESSAGES
            printed_role = role if role in MESSAGES else "StaticText"
            self._append(Item(node=node, kind=Kind.WORDS, role=printed_role, name=text, is_required=True))
        if not inside:
            return True
        self._text_until = max(self._text_until, node.end)
        return False

    def _is_message(self, node: Node, role: str) -> bool:
        """Whether an element looks like a message to the user, although it lacks the role of one."""
        if not self._view.interactive or role not in ("generic", "listitem", "paragraph"):
            return False
        if node.index < self._text_until:  # Its text is in a line already.
            return False
        words = node.get("class").lower()
        if not words or self._messages >= _MAX_MESSAGES or not any(word in words for word in _MESSAGE_WORDS):
            return False
        if self._controls.inside(node):
            return False
        return 0 < len(self._names.text(node)) < _MAX_MESSAGE_CHARACTERS

    def _add_row(self, node: Node) -> None:
        self._append(
            Item(
                node=node,
                kind=Kind.CONTAINER,
                role="row",
                name=self._text_around_controls(node),
                states=states_of(node, "row"),
            )
        )
        self._text_until = max(self._text_until, node.end)

    def _text_around_controls(self, node: Node) -> str:
        """Return the text of a row without that of its controls; the texts of cells are separated by bars."""
        parts = []
        for cell in self._cells(node):
            if self._controls.is_control(cell) and cell is not node:
                continue
            without = frozenset(self._controls.all_inside(cell))
            parts.append(self._names.text(cell, max_characters=200, without=without))
        text = " | ".join(part for part in parts if part)
        names = (self._names.name(control) for control in islice(self._controls.all_inside(node), _MAX_NAMES))
        return "" if text in names else text

    def _cells(self, row: Node) -> Iterator[Node]:
        """Yield the cells of a row, or the row itself if it has none."""
        found = False
        index = row.index + 1
        while index < row.end and index < row.index + 2_000:
            node = self._tree.nodes[index]
            is_cell = node.tag != "#text" and self._names.role(node) in _CELLS
            if is_cell and self._is_visible(node):
                found = True
                yield node
            index = node.end if is_cell or node.tag == "#text" else index + 1
        if not found:
            yield row

    def _add_container(self, node: Node, role: str) -> None:
        if node.tag == "#document":
            return
        if role in ("dialog", "alertdialog"):
            self._dialog_until = max(self._dialog_until, node.end)
        name = "" if role == "listitem" or node.tag == "details" else self._names.name(node)
        if role == "listitem" and self._view.interactive:
            name = self._text_around_controls(node) if self._controls.inside(node) else ""
        total = self._total(node) if role in ("table", "grid", "treegrid") else 0
        rows_without_controls = total if self._view.interactive and total > 1 and not self._controls.inside(node) else 0
        self._append(
            Item(
                node=node,
                kind=Kind.CONTAINER,
                role=role,
                name=name,
                states=states_of(node, role),
                mark=f"{rows_without_controls} rows" if rows_without_controls else "",
                has_ref=role in ("Iframe", "dialog", "alertdialog") or bool(rows_without_controls),
                is_required=node is self._root or bool(rows_without_controls) or role in ("dialog", "alertdialog"),
            )
        )

    def _add_plain(self, node: Node, role: str) -> bool:
        """Add an element of a full look that is neither a control nor a container."""
        if role in _TITLES and node.parent is not None and self._names.name(node.parent):
            return True  # The element around it already has this text as its name.
        if role in _PLAIN:
            self._text = self._text if node.is_inline and node.tag not in ("br", "label") else None
            return False
        if role == "image" and node.tag == "svg" and not self._names.name(node):
            return False
        name = self._names.name(node)
        value = value_of(node, role, self._tree)
        if role in ("image", "separator", "progressbar", "meter", "tooltip", "math", "note", "timer"):
            if name or value or role not in ("image", "separator"):
                self._append(Item(node=node, kind=Kind.WORDS, role=role, name=name, value=value))
            self._text_until = max(self._text_until, node.end if role in NAMED_BY_CONTENT or role == "image" else 0)
        return False

    def _shows_text(self, node: Node) -> bool:
        if not self._view.interactive:
            return True
        if node.index >= self._dialog_until or self._dialog_characters > _MAX_DIALOG_CHARACTERS:
            return False
        self._dialog_characters += len(node.text)
        return True

    def _add_text(self, node: Node) -> None:
        if node.index < self._text_until or not (self._shows_text(node) or node is self._root):
            return
        text = readable(node.text)
        if not text.strip(_SEPARATORS):
            if self._text is not None and len(self._text.name) < MAX_TEXT_CHARACTERS:
                self._text.name += text
            return
        line = _block_of(node)
        last = self._text
        if last is not None and _block_of(last.node) is line and len(last.name) < MAX_TEXT_CHARACTERS:
            last.name += text
            return
        for start in range(0, len(text), MAX_TEXT_CHARACTERS):
            part = text[start : start + MAX_TEXT_CHARACTERS]
            self._append(Item(node=node, kind=Kind.TEXT, role="StaticText", name=part))
        self._text = self._items[-1]


def _block_of(node: Node) -> Node | None:
    parent = node.parent
    for _ in range(50):
        if parent is None or not parent.is_inline:
            break
        parent = parent.parent
    return parent
