"""Names of elements: the accessible name, else the words beside a field that a person takes for its label.

The accessible name follows Accessible Name and Description Computation 1.2, with two differences. Text is taken as it
is rendered, and the work is bounded, because a hostile page may nest labels to any depth.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from browser_shell.browser.page.look_roles import (
    CHECKABLE,
    FIELD_ROLES,
    NAMED_BY_CONTENT,
    input_type,
    role_of,
    value_of,
)
from browser_shell.browser.page.look_tree import Node, Tree

MAX_NAME_CHARACTERS = 400
_MAX_LABEL_CHARACTERS = 80
"""Longer text beside a field is not taken for its label."""
_MAX_NODES_PER_NAME = 300
_MAX_STEPS = 3_000_000
"""Nodes that one look visits for names, about 2 s. Later elements have no name."""
_MAX_LEVELS = 4
_PRIVATE_USE = re.compile("[\ue000-\uf8ff\U000f0000-\U0010ffff]")
_BREAKS = frozenset({"br", "hr"})
_BRANCHES = frozenset({"ul", "ol", "group", "menu", "tree", "treeitem", "menuitem"})
_FIELD_TAGS = frozenset({"input", "select", "textarea", "button"})


class Names:
    """Computes and caches the names of the elements of one tree."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._names: dict[Node, str] = {}
        self._roles: dict[Node, str] = {}
        self._labels = self._find_labels()
        self._steps = _MAX_STEPS

    def role(self, node: Node) -> str:
        role = self._roles.get(node)
        if role is None:
            role = self._roles[node] = role_of(node, self._tree)
        return role

    def name(self, node: Node) -> str:
        """Return the name of an element in one line, or ''."""
        name = self._names.get(node)
        if name is None:
            name = self._names[node] = self._accessible_name(node) or self._name_beside(node)
        return name

    def label_of(self, node: Node) -> Node | None:
        """Return the first `label` element of a field."""
        labels = self._labels.get(node)
        return labels[0] if labels else None

    def control_of(self, label: Node) -> Node | None:
        """Return the field of a `label` element."""
        target = label.attributes.get("for")
        if target is not None:
            return self._tree.by_id(label, target)
        return next((node for node in self._visit(label) if node.tag in _FIELD_TAGS), None)

    def text(
        self, node: Node, *, max_characters: int = MAX_NAME_CHARACTERS, without: frozenset[Node] = frozenset()
    ) -> str:
        """Return the rendered text of an element in one line. The subtrees in `without` are left out."""
        return _one_line(self._content(node, with_hidden=False, without=without), max_characters)

    def _find_labels(self) -> dict[Node, list[Node]]:
        found: dict[Node, list[Node]] = {}
        self._steps = _MAX_STEPS
        for node in self._tree.nodes:
            if node.tag == "label" and (control := self.control_of(node)) is not None:
                found.setdefault(control, []).append(node)
        return found

    def _visit(self, node: Node) -> Iterator[Node]:
        """Yield the nodes below a node, within the bounds of a name and of the whole look."""
        end = min(node.end, node.index + 1 + _MAX_NODES_PER_NAME)
        for index in range(node.index + 1, end):
            if self._steps <= 0:
                return
            self._steps -= 1
            yield self._tree.nodes[index]

    def _accessible_name(self, node: Node) -> str:
        found = self._labelled_by(node) or _one_line(node.get("aria-label"))
        if found:
            return found
        role = self.role(node)
        return self._native_name(node) or self._name_of_content(node, role) or _one_line(_hint(node))

    def _labelled_by(self, node: Node) -> str:
        ids = node.get("aria-labelledby").split()[:8]
        parts = []
        for element_id in ids:
            target = self._tree.by_id(node, element_id)
            if target is not None:
                text = _one_line(target.get("aria-label")) or _one_line(self._content(target, with_hidden=True))
                parts.append(text or (value_of(target, self.role(target), self._tree) if target is not node else ""))
        # Some libraries name an element by itself and by the group around it, which has the same name.
        return _one_line(" ".join(dict.fromkeys(parts)))

    def _native_name(self, node: Node) -> str:
        """Return the name that HTML gives an element: a label, a caption, a legend, an alternative text."""
        match node.tag:
            case "input" if input_type(node) in ("submit", "reset", "button"):
                return _one_line(node.value or "") or {"submit": "Submit", "reset": "Reset"}.get(input_type(node), "")
            case "input" if input_type(node) == "image":
                return _one_line(node.get("alt") or "Submit")
            case "input" | "select" | "textarea" | "meter" | "progress" | "output" | "button":
                labels = self._labels.get(node, [])
                texts = (self._content(label, with_hidden=False, without=frozenset({node})) for label in labels[:4])
                return _one_line(" ".join(texts))
            case "img" | "area":
                return _one_line(node.get("alt"))
            case "table" | "figure" | "fieldset" | "svg" | "details":
                tag = {"table": "caption", "figure": "figcaption", "fieldset": "legend", "details": "summary"}
                titles = (child for child in self._first_children(node) if child.tag == tag.get(node.tag, "title"))
                title = next(titles, None)
                return _one_line(self._content(title, with_hidden=node.tag == "svg")) if title is not None else ""
            case _:
                return ""

    def _first_children(self, node: Node) -> Iterator[Node]:
        for child in self._tree.children(node):
            if self._steps <= 0:
                return
            self._steps -= 1
            yield child
            if child.index > node.index + _MAX_NODES_PER_NAME:
                return

    def _name_of_content(self, node: Node, role: str) -> str:
        is_named_when_clickable = role in ("image", "listitem", "article") and (node.is_clickable or node.has_pointer)
        if role in NAMED_BY_CONTENT or role == "generic" or is_named_when_clickable:
            return _one_line(self._content(node, with_hidden=False, is_branch=role in ("treeitem", "menuitem")))
        return ""

    def _content(
        self, node: Node, *, with_hidden: bool, without: frozenset[Node] = frozenset(), is_branch: bool = False
    ) -> str:
        """Join the text of an element, with the names of the images and fields inside it.

        The text of a branch (an item of a tree or menu) ends before the items below it.
        """
        parts: list[str] = [node.text]
        length, skip_until = 0, 0
        blocks: list[int] = []
        """Ends of the blocks around the current node."""
        for inner in self._visit(node):
            if inner.index < skip_until or not (inner.is_shown or with_hidden):
                continue
            while blocks and inner.index >= blocks[-1]:
                blocks.pop()
                parts.append(" ")
            if inner.tag == "#text":
                text = inner.text
            else:
                text, is_whole = self._part(inner, without)
                if is_whole or (is_branch and (inner.tag in _BRANCHES or inner.get("role") in _BRANCHES)):
                    skip_until = inner.end
                if not inner.is_inline or inner.tag in _BREAKS:
                    parts.append(" ")
                    blocks.append(inner.end)
            parts.append(text)
            length += len(text)
            if length > 2 * MAX_NAME_CHARACTERS:
                break
        return "".join(parts)

    def _part(self, inner: Node, without: frozenset[Node]) -> tuple[str, bool]:
        """Return the text that an element contributes to the text around it, and whether its subtree is skipped."""
        if inner in without or inner.get("aria-hidden") == "true":
            return "", True
        if label := inner.get("aria-label"):
            return f" {label} ", True
        if inner.tag == "img":
            return f" {inner.get('alt')} ", True
        if inner.tag in ("select", "textarea", "input"):
            is_button = input_type(inner) in ("submit", "button", "reset")
            text = inner.value or "" if is_button else value_of(inner, self.role(inner), self._tree)
            return f" {text} ", True
        return "", inner.tag in ("iframe", "video", "audio", "canvas", "object")

    def _name_beside(self, node: Node) -> str:
        """Return the text that a person takes for the label of a field without a name."""
        role = self.role(node)
        if role not in FIELD_ROLES:
            return ""
        if node.tag == "body":  # The body of a rich text editor is named by its frame.
            owner = node.parent.parent.parent if node.parent and node.parent.parent else None
            return self.name(owner) if owner is not None else ""
        if role in CHECKABLE and (after := self._text_after(node)):
            return after
        if before := self._text_before(node):
            return _one_line(f"{self._label_around(node)} {before}")
        return self._name_in_row(node) or self._text_of_block_before(node)

    def _label_around(self, node: Node) -> str:
        """Return the text of a `label` element that stands for several fields, for example for date and time."""
        block = node.parent
        for _ in range(_MAX_LEVELS):
            parent = block.parent if block is not None else None
            if block is None or parent is None or parent.tag in ("body", "form", "tr"):
                return ""
            for sibling in self._first_children(parent):
                if sibling.index >= block.index:
                    break
                if sibling.tag in ("label", "legend") and self.control_of(sibling) is None:
                    return _label_text(self.text(sibling))
            block = parent
        return ""

    def _text_before(self, node: Node) -> str:
        """Return the text before a field in its line, up to another field."""
        if not node.is_inline:
            return ""
        line = _line_of(node)
        parts: list[str] = []
        for index in range(node.index - 1, max(line.index, node.index - 40), -1):
            self._steps -= 1
            inner = self._tree.nodes[index]
            if not inner.is_shown or inner.end > node.index:
                continue
            if inner.tag == "#text" and _line_of(inner) is line:
                parts.append(inner.text)
            elif inner.tag in _FIELD_TAGS or inner.tag in _BREAKS or inner.tag == "a" or not inner.is_inline:
                break
        return _label_text("".join(reversed(parts)))

    def _text_after(self, node: Node) -> str:
        parts: list[str] = []
        line = _line_of(node)
        for index in range(node.end, min(line.end, node.end + 40)):
            self._steps -= 1
            inner = self._tree.nodes[index]
            if inner.tag == "#text" and inner.is_shown:
                parts.append(inner.text)
            elif inner.is_shown and (inner.tag in _FIELD_TAGS or inner.tag in _BREAKS or not inner.is_inline):
                break
        return _label_text("".join(parts))

    def _name_in_row(self, node: Node) -> str:
        """Return the header of a field in a table: the cell before it, or the header of its column."""
        cell = node
        for _ in range(_MAX_LEVELS):
            if cell.tag in ("td", "th") or cell.parent is None:
                break
            cell = cell.parent
        row = cell.parent
        if cell.tag not in ("td", "th") or row is None or row.tag != "tr":
            return ""
        cells = [child for child in self._first_children(row) if child.tag in ("td", "th")]
        if cell not in cells:
            return ""
        position = cells.index(cell)
        filled = [other for other in cells if self._has_field(other)]
        before = [other for other in cells[:position] if other not in filled]
        header = self._column_header(row, position)
        if len(filled) > 1 and header:
            return header
        return next((text for other in reversed(before) if (text := _label_text(self.text(other)))), "") or header

    def _column_header(self, row: Node, position: int) -> str:
        table = row.parent
        while table is not None and table.tag in ("tbody", "thead", "tfoot"):
            table = table.parent
        if table is None or table.tag != "table":
            return ""
        first = next((node for node in self._visit(table) if node.tag == "tr"), None)
        if first is None or first is row:
            return ""
        headers = [child for child in self._first_children(first) if child.tag in ("td", "th")]
        is_header = position < len(headers) and headers[position].tag == "th"
        return _label_text(self.text(headers[position])) if is_header else ""

    def _has_field(self, node: Node) -> bool:
        return any(
            inner.tag in ("input", "select", "textarea") and inner.is_shown and input_type(inner) != "hidden"
            for inner in self._visit(node)
        )

    def _text_of_block_before(self, node: Node) -> str:
        """Return the text of the block before the smallest block that holds only this field."""
        block = node
        for _ in range(_MAX_LEVELS):
            parent = block.parent
            if parent is None or parent.tag in ("body", "form", "table", "tr", "#document"):
                return ""
            siblings = [child for child in self._first_children(parent) if child.is_shown and child.index < block.index]
            siblings = [child for child in siblings if child.tag != "#text" or not child.text.isspace()]
            if siblings:
                before = siblings[-1]
                if self._has_field(before) or before.tag in _FIELD_TAGS:
                    return ""
                return _label_text(before.text or self.text(before))
            block = parent
        return ""


def _hint(node: Node) -> str:
    return node.get("title") or node.get("placeholder") or node.get("aria-placeholder")


def _line_of(node: Node) -> Node:
    """Return the nearest block around an inline node."""
    parent = node.parent
    for _ in range(20):
        if parent is None or parent.parent is None or not parent.is_inline:
            break
        parent = parent.parent
    return parent or node


def _label_text(text: str) -> str:
    """Return a text as a label, or '' if it is too long or has no letter or digit."""
    words = " ".join(text.split())
    return words if words and len(words) <= _MAX_LABEL_CHARACTERS and any(map(str.isalnum, words)) else ""


def readable(text: str) -> str:
    """Return a text without characters of private use areas, which icon fonts use."""
    return text if text.isascii() else _PRIVATE_USE.sub("", text)


def _one_line(text: str, max_characters: int = MAX_NAME_CHARACTERS) -> str:
    """Join the words of a text with single spaces."""
    words = " ".join(readable(text).split())
    return words if len(words) <= max_characters else words[: max_characters - 1] + "…"
