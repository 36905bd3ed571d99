"""The items of a look: what is printed as one line each."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice
from urllib.parse import urljoin

from browser_shell.browser.page.look_names import Names
from browser_shell.browser.page.look_roles import (
    CHECKABLE,
    CONTROL_ROLES,
    expected_format,
    input_type,
    is_editing_host,
    is_focusable,
    is_password,
    option_label,
    states_of,
    value_of,
)
from browser_shell.browser.page.look_tree import Node, Tree

_MAX_OPTIONS = 12
"""Options of a select that an interactive look lists."""
_MAX_OPTION_CHARACTERS = 40
_HIDDEN_VALUE = "•••"
"""Shown for every password, regardless of its length."""
_LEAVES = frozenset({"select", "textarea", "video", "audio", "canvas", "input", "datalist"})

_SHAPES = frozenset({"circle", "ellipse", "g", "line", "path", "polygon", "polyline", "rect", "use"})

_GENERATED_CLASS = re.compile(r"^(?:css|sc|jss|emotion|svelte|_)[-_]?|[0-9].*[0-9]", re.IGNORECASE)
"""Classes that a build tool has generated."""
_MAX_ICON_NODES = 6
_MAX_BRANCH_NODES = 200
_ICON = re.compile(r"(?:^|-)(?:fa|mdi|bi|ti|pi|icon|glyphicon|codicon|octicon|symbol)-[a-z]", re.IGNORECASE)
"""Names of icons in the classes of common icon fonts."""


class Kind(Enum):
    CONTROL = "an element that can be acted on"
    CONTAINER = "an element around others"
    WORDS = "a heading, a message or another element with text"
    TEXT = "text without an element of its own"
    REST = "the number of members of a collection that are left out"


@dataclass(slots=True, eq=False)
class Item:
    """One line of a look."""

    node: Node
    kind: Kind
    role: str
    name: str = ""
    states: list[str] = field(default_factory=list)
    value: str = ""
    mark: str = ""
    """Words after the brackets, for example `clickable` for an element without the role of a control."""
    options: list[str] = field(default_factory=list)
    """Labels of the options of a closed list, the last one perhaps the number of further options."""
    url: str = ""
    has_ref: bool = False
    depth: int = 0
    controls: int = 0
    """Controls inside the element."""
    lines: int = 0
    """Lines of text and controls inside the element."""
    is_required: bool = False
    """Whether a container gets a line even if it has no name and few lines inside."""
    own_part: Node | None = None
    """The part of a branch that is not covered by the entries below it; None for the element itself."""

    @property
    def target(self) -> Node:
        """The element that commands with the ref act on."""
        return self.own_part or self.node


def describe_control(node: Node, tree: Tree, names: Names, *, all_options: bool) -> Item:
    """Return the item of a control."""
    field_node = names.control_of(node) if node.tag == "label" else None
    subject = field_node or node
    role = names.role(subject)
    name = names.text(node) if field_node else names.name(node)
    item = Item(node=node, kind=Kind.CONTROL, role=role, name=name, states=states_of(subject, role), has_ref=True)
    item.mark = _mark(node, role)
    item.own_part = _own_part(node, tree) if role == "treeitem" else None
    item.value = _HIDDEN_VALUE if is_password(subject) and subject.value else value_of(subject, role, tree)
    if role == "combobox" and subject.value is None and subject.tag != "select":
        item.value = names.text(node).removeprefix(name).strip()
    if role in CHECKABLE or (item.value == item.name and subject.tag != "input"):
        item.value = ""
    if subject.tag == "select":
        item.options = _options(subject, tree, all_options=all_options)
    if format_hint := expected_format(subject):
        item.states.append(f"format={format_hint}")
    if input_type(subject) == "file":
        item.states.append("file")
    if role == "Canvas" and node.box is not None:
        item.states.append(f"size={node.box[2]:.0f}x{node.box[3]:.0f}")
    if role == "link" and node.get("href"):
        item.url = link_target(node)
    if not name and not item.value:
        item.mark = f"{item.mark} {_css_hint(node, tree)}".strip()
    return item


def is_leaf(node: Node) -> bool:
    """Whether nothing below a control is shown."""
    return node.tag in _LEAVES


def link_target(node: Node) -> str:
    try:
        return urljoin(node.base_url, node.get("href").strip())
    except ValueError:  # Not a valid URL, for example with an unclosed bracket.
        return node.get("href")


def _own_part(branch: Node, tree: Tree) -> Node | None:
    """Return the element with the label of an entry that has entries below it.

    The middle of the whole element is one of the entries below, and a click there would reach the wrong entry.
    """
    label: Node | None = None
    for node in islice(tree.below(branch), _MAX_BRANCH_NODES):
        if node.get("role") in ("treeitem", "group") or node.tag == branch.tag:
            return label
        if label is None and node.tag == "#text" and node.is_shown and not node.text.isspace():
            label = node.parent if node.parent is not branch else None
    return None


def _mark(node: Node, role: str) -> str:
    if is_editing_host(node):
        return "editable"
    if role in CONTROL_ROLES or role == "gridcell":
        return ""
    return "focusable" if is_focusable(node) and not (node.is_clickable or node.has_pointer) else "clickable"


def _options(select: Node, tree: Tree, *, all_options: bool) -> list[str]:
    options = [node for node in tree.below(select) if node.tag == "option"]
    listed = options if all_options else options[:_MAX_OPTIONS]
    labels = [option_label(option, tree)[:_MAX_OPTION_CHARACTERS] for option in listed]
    return [*labels, f"{len(options) - len(listed)} more"] if len(listed) < len(options) else labels


def _css_hint(node: Node, tree: Tree) -> str:
    """Return a CSS selector for an element without a name: its id, its icon or its class."""
    if node.tag in _SHAPES:
        fill = _css_word(node.get("fill"))
        return f"{node.tag}[fill={fill}]" if fill else node.tag
    if element_id := _css_word(node.get("id")):
        return f"#{element_id}"
    inside = [node, *(inner for inner in islice(tree.below(node), _MAX_ICON_NODES) if inner.is_element)]
    for candidate in inside:
        icon = candidate.get("data-icon") or next(filter(_ICON.search, candidate.get("class").split()), "")
        if icon := _css_word(icon.rpartition(":")[2]):
            return f".{icon}"
    classes = [word for word in node.get("class").split() if _css_word(word) and not _GENERATED_CLASS.search(word)]
    return "".join(f".{word}" for word in classes[:2])


def _css_word(text: str) -> str:
    is_plain = len(text) <= 40 and text.replace("-", "").replace("_", "").isalnum() and not text[0].isdigit()
    return text if is_plain and text.isascii() else ""


_ROLE_NAMES = {
    **{"img": ("image",), "summary": ("disclosuretriangle",), "color": ("colorwell",), "month": ("datetime",)},
    **{"week": ("datetime",), "date": ("date", "datetime"), "textbox": ("textbox", "searchbox")},
}
"""The roles of items, in lower case, that match a role in a command, where they differ from it."""


def has_role(item: Item, role: str) -> bool:
    """Whether an item has the role that a command names, in lower case."""
    return item.role.lower() in _ROLE_NAMES.get(role, (role,)) or role in item.mark.split() or role in item.states
