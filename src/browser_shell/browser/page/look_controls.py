"""The elements of a page that can be acted on.

Besides the elements with the role of a control, these are elements that the keyboard reaches, editable areas, and
elements that react to a click. Pages also listen for clicks on large containers, so a wrapper around a control is not
a control.
"""

from __future__ import annotations

from collections.abc import Iterator

from browser_shell.browser.page.look_names import Names
from browser_shell.browser.page.look_roles import (
    CONTROL_ROLES,
    input_type,
    is_editing_host,
    is_focusable,
)
from browser_shell.browser.page.look_tree import Node, Tree, words

_COMPOSITES = words(
    "application dialog alertdialog document feed grid group list menu menubar navigation radiogroup region "
    "row tablist table tabpanel toolbar tree treegrid main form article heading"
)
"""Elements around controls. The keyboard may reach them, but the controls are inside."""
_NEVER_CLICKABLE = frozenset({"#document", "html", "body", "form", "label", "head", "main", "option", "optgroup"})
_SPREADS_POINTER = frozenset(
    {"html", "body", "ul", "ol", "dl", "menu", "table", "tbody", "thead", "main", "form", "svg"}
)
"""Containers on which the style `cursor: pointer` is ignored, because it applies to the elements inside them."""
_WHOLE = words(
    "button link menuitem menuitemcheckbox menuitemradio option tab treeitem radio checkbox switch slider "
    "DisclosureTriangle LabelText"
)
"""Elements that act as a whole. The parts inside them that react to clicks are mostly the same control."""
_WITH_PARTS = frozenset({"tab", "treeitem", "option"})
"""Elements with further controls inside, for example the icon that closes a tab."""
_LONG_TEXT = 200
"""Characters. An element with more text and a listener handles the clicks of everything inside it."""
_MOST_INSIDE = 8
_SMALLEST_PIXELS = 4


class Controls:
    """The controls of one tree, found in two passes: visibility from the top, controls from the bottom."""

    def __init__(self, tree: Tree, names: Names) -> None:
        self._tree = tree
        self._names = names
        count = len(tree.nodes)
        self._hidden = bytearray(count)
        self._editable = bytearray(count)
        """Whether each node is content of an editable area."""
        self._whole = [0] * count
        """Index of the element around each node that acts as a whole; 0 without one."""
        self._is_control = bytearray(count)
        self._inside = [0] * count
        """Number of controls below each node."""
        self._sole: dict[int, int] = {}
        """The only control below a node, by index."""
        self._find_hidden()
        self._find_controls()

    def is_visible(self, node: Node) -> bool:
        return not self._hidden[node.index]

    def is_control(self, node: Node) -> bool:
        return bool(self._is_control[node.index])

    def inside(self, node: Node) -> int:
        """Return the number of controls below a node."""
        return self._inside[node.index]

    def all_inside(self, node: Node) -> Iterator[Node]:
        """Yield the outermost controls below a node."""
        index = node.index + 1
        while index < node.end:
            if self._is_control[index]:
                yield self._tree.nodes[index]
                index = self._tree.nodes[index].end
            elif self._inside[index]:
                index += 1
            else:
                index = self._tree.nodes[index].end

    def sole(self, node: Node) -> Node | None:
        """Return the control below a node if it is the only one."""
        index = self._sole.get(node.index)
        return self._tree.nodes[index] if index is not None and self._inside[node.index] == 1 else None

    def _find_hidden(self) -> None:
        hidden = self._hidden
        for node in self._tree.nodes:
            parent = node.parent
            if parent is not None and parent.is_element:
                is_whole = self._names.role(parent) in _WHOLE
                self._whole[node.index] = parent.index if is_whole else self._whole[parent.index]
            if parent is not None and (self._editable[parent.index] or is_editing_host(parent)):
                self._editable[node.index] = 1
            if parent is not None and hidden[parent.index]:
                hidden[node.index] = 1
            elif not node.is_shown and node.tag != "#document":
                hidden[node.index] = not _is_image_map_part(node)
            elif node.attributes and (node.get("aria-hidden") == "true" or "inert" in node.attributes):
                # A picture that reacts to clicks is often hidden from screen readers, and a person clicks it.
                hidden[node.index] = "inert" in node.attributes or not (node.is_clickable and node.has_pointer)

    def _find_controls(self) -> None:
        for node in reversed(self._tree.nodes):
            index = node.index
            if self._hidden[index]:
                continue
            if node.tag[0] != "#" and self._can_be_acted_on(node):
                self._is_control[index] = 1
            parent = node.parent
            if parent is None:
                continue
            below = self._inside[index] + self._is_control[index]
            if below:
                self._inside[parent.index] += below
                if below == 1:
                    self._sole[parent.index] = index if self._is_control[index] else self._sole[index]

    def _can_be_acted_on(self, node: Node) -> bool:
        if node.tag == "label":
            return self._replaces_hidden_field(node)
        role = self._names.role(node)
        inside = self._inside[node.index]
        if role in CONTROL_ROLES:
            return self._is_usable(node, role, inside)
        if is_editing_host(node):
            return True
        if self._editable[node.index]:
            return False
        takes_focus = is_focusable(node) or (role == "gridcell" and "tabindex" in node.attributes)
        is_separator = node.get("role") in ("presentation", "none") and not self._names.text(node)
        if takes_focus and role not in _COMPOSITES and not inside:
            return not is_separator
        return not is_separator and self._reacts_to_clicks(node, inside)

    def _is_usable(self, node: Node, role: str, inside: int) -> bool:
        match role:
            case "option" | "menuitem" | "treeitem":
                # Some libraries keep a list of no size for screen readers beside the list that a person sees.
                return node.tag != "option" and not _is_flat(node)
            case "combobox" | "listbox":
                return node.tag in ("select", "input") or (inside != 1 and not _is_flat(node))
            case "Canvas":
                return _is_large(node)
            case "button" | "link" | "checkbox" | "radio":
                # A role on a wrapper whose only content is the real control.
                return node.tag in ("button", "a", "input", "area") or not self._wraps_field(node, inside)
            case _:
                return input_type(node) != "hidden"

    def _wraps_field(self, node: Node, inside: int) -> bool:
        sole = self.sole(node) if inside == 1 else None
        return sole is not None and sole.tag == "input" and input_type(sole) in ("checkbox", "radio")

    def _replaces_hidden_field(self, label: Node) -> bool:
        """Whether a label must be clicked in place of its field, because the field is not rendered."""
        field = self._names.control_of(label)
        if field is None or input_type(field) not in ("checkbox", "radio", "file"):
            return False
        return not field.is_shown and bool(label.is_shown)

    def _reacts_to_clicks(self, node: Node, inside: int) -> bool:
        if node.tag in _NEVER_CLICKABLE or not _is_large(node) or not self._acts_by_itself(node):
            return False
        points = node.has_pointer and node.tag not in _SPREADS_POINTER and not _inherits_pointer(node)
        if not points and (not node.is_clickable or self._names.role(node) in _COMPOSITES - {"row"}):
            return False
        if inside == 0:
            return points or len(self._names.text(node)) <= _LONG_TEXT
        if inside == 1:
            return self._is_more_than_a_wrapper(node, points=points)
        return points and node.is_clickable and inside <= _MOST_INSIDE

    def _acts_by_itself(self, node: Node) -> bool:
        """Whether an element inside another control is a control of its own, and not a part of that one."""
        whole = self._whole[node.index]
        if not whole:
            return True
        around = self._tree.nodes[whole]
        if text := self._names.text(node):
            return node.is_clickable and text != self._names.name(around)
        return self._names.role(around) in _WITH_PARTS

    def _is_more_than_a_wrapper(self, node: Node, *, points: bool) -> bool:
        sole = self.sole(node)
        if sole is None:
            return False
        text, name = self._names.text(node), self._names.name(sole)
        if self._names.role(sole) == "generic" and not name and text:
            # The text belongs to the outer element: the inner one is its icon.
            self._is_control[sole.index] = 0
            for ancestor in _between(sole, node):
                self._inside[ancestor.index] -= 1
            self._inside[node.index] = 0
            return True
        return points and len(text) > len(name) + 3


def _between(inner: Node, outer: Node) -> Iterator[Node]:
    ancestor = inner.parent
    while ancestor is not None and ancestor is not outer:
        yield ancestor
        ancestor = ancestor.parent


def _is_image_map_part(node: Node) -> bool:
    """Whether the node is an image map or an area of one. These have no box and can be clicked."""
    return node.tag in ("map", "area") and node.parent is not None and (node.tag == "map" or node.parent.tag == "map")


def _inherits_pointer(node: Node) -> bool:
    parent = node.parent
    if parent is None or parent.box is None:
        return parent is not None and parent.parent is not None and parent.parent.has_pointer
    return parent.has_pointer and parent.tag not in _SPREADS_POINTER


def _is_flat(node: Node) -> bool:
    return node.box is not None and (node.box[2] < 1 or node.box[3] < 1)


def _is_large(node: Node) -> bool:
    return node.box is None or (node.box[2] >= _SMALLEST_PIXELS and node.box[3] >= _SMALLEST_PIXELS)
