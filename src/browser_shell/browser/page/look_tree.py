"""The tree of a look: the rendered elements and texts of all frames, built from DevTools snapshots.

`DOMSnapshot.captureSnapshot` returns the flat tree: slots hold their assigned nodes, and the content of open and closed
shadow roots stands below its host. Nodes are in document order, so a subtree is a range of the list and no function
here recurses: a hostile page may nest its elements to any depth.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypedDict, cast

from browser_shell.browser.page.frames import Frame
from browser_shell.core.json_values import JsonObject


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


STYLES = ("cursor", "visibility", "display")
"""Computed styles that a capture needs, in this order."""

MAX_NODES = 300_000
"""Nodes of a tree. Chromium needs about 8 ms to capture 1,000 nodes (bench/LOG.md)."""
_ELEMENT, _TEXT = 1, 3
_INLINE = frozenset({"inline", "contents", "inline-block", "inline-flex", "inline-grid", "ruby", "ruby-text"})
_SECTIONING = frozenset({"article", "aside", "main", "nav", "section"})
_UNREAD = frozenset({"script", "style", "noscript", "template", "head", "title"})
"""HTML elements whose text is not part of the visible page."""
_MAX_HIDDEN_CHARACTERS = 2_000
_MAX_ANCESTORS = 100
"""Elements around a node that are searched for an id."""
_GENERATED = ("::before", "::after")

_ATTRIBUTES = words(
    "alt autocomplete class contenteditable controls data-icon disabled fill for height href id inert label list max "
    "min multiple name open placeholder readonly required role rows size tabindex title type value width"
)
"""Attributes that looks use, besides `aria-*`. The others are dropped: they may be long."""
_MAX_ATTRIBUTE_CHARACTERS = 2_000

Box = tuple[float, float, float, float]
"""Left, top, width and height in CSS pixels, from the origin of the frame's document."""


class _Rare(TypedDict):
    index: list[int]
    value: list[int]


class _Nodes(TypedDict):
    parentIndex: list[int]
    nodeType: list[int]
    nodeName: list[int]
    nodeValue: list[int]
    backendNodeId: list[int]
    attributes: list[list[int]]
    textValue: _Rare
    inputValue: _Rare
    inputChecked: _Rare
    optionSelected: _Rare
    isClickable: _Rare
    contentDocumentIndex: _Rare


class _Layout(TypedDict):
    nodeIndex: list[int]
    styles: list[list[int]]
    bounds: list[list[float]]
    text: list[int]


class _Document(TypedDict):
    frameId: int
    baseURL: int
    nodes: _Nodes
    layout: _Layout


@dataclass(slots=True, eq=False)
class Node:
    """An element, a rendered text, or the document of a frame. Nodes are equal only if they are the same object."""

    tag: str
    """Tag name in lower case; `#text` for a text, which includes text that CSS generates; `#document`."""
    frame: Frame
    backend_node_id: int
    base_url: str
    parent: Node | None
    attributes: Mapping[str, str]
    index: int = 0
    end: int = 0
    """Index of the first node after the subtree."""
    text: str = ""
    """A text as it is rendered, for example after `text-transform`."""
    value: str | None = None
    """The current value of a field."""
    box: Box | None = None
    """None for an element without a box of its own, for example with `display: contents`."""
    is_checked: bool = False
    is_selected: bool = False
    is_clickable: bool = False
    """Whether the element has a listener for clicks, or an action of its own."""
    has_pointer: bool = False
    """Whether the mouse pointer is a hand over the element."""
    is_inline: bool = False
    is_shown: bool = False
    """Whether the element or a part of it is rendered."""
    in_section: bool = False
    """Whether an ancestor is `main` or sectioning content, such as `article`."""
    in_disabled_fieldset: bool = False

    @property
    def key(self) -> tuple[str, int]:
        """Identifies the node among all nodes of a page."""
        return self.frame.frame_id, self.backend_node_id

    @property
    def is_element(self) -> bool:
        return self.tag[0] != "#"

    def get(self, attribute: str) -> str:
        return self.attributes.get(attribute, "")


@dataclass(slots=True)
class Tree:
    """All nodes in document order. The content of a frame stands below its `iframe` element."""

    nodes: list[Node] = field(default_factory=list)
    is_cut: bool = False
    """Whether nodes beyond `MAX_NODES` were left out."""
    modal: Node | None = None
    """The open modal dialog. Everything else is inert."""
    _by_id: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    """Indexes of the elements with an id, by frame and id. Elements in different shadow roots may have the same id."""

    def below(self, node: Node) -> Iterator[Node]:
        """Yield the nodes below a node, in document order."""
        return (self.nodes[index] for index in range(node.index + 1, node.end))

    def children(self, node: Node) -> Iterator[Node]:
        index = node.index + 1
        while index < node.end:
            child = self.nodes[index]
            yield child
            index = child.end

    def by_id(self, node: Node, element_id: str) -> Node | None:
        """Return the element with this id that is nearest to the node.

        A capture does not show where a shadow root begins. The nearest element is most likely in the same root.
        """
        found = self._by_id.get((node.frame.frame_id, element_id))
        if not found:
            return None
        around: Node | None = node
        for _ in range(_MAX_ANCESTORS if len(found) > 1 else 0):
            if around is None:
                break
            position = bisect_left(found, around.index)
            if position < len(found) and found[position] < around.end:
                return self.nodes[found[position]]
            around = around.parent
        return self.nodes[found[0]]

    def find(self, key: tuple[str, int]) -> Node | None:
        return next((node for node in self.nodes if node.key == key), None)

    def add(self, node: Node) -> None:
        """Append a node, which must stand after all nodes of the tree. `close` completes the tree."""
        node.index = len(self.nodes)
        self.nodes.append(node)
        if (parent := node.parent) is not None:
            node.in_section = parent.in_section or parent.tag in _SECTIONING
            # HTML §4.10.15: the fields in the legend of a disabled fieldset stay enabled.
            is_disabled = parent.in_disabled_fieldset or (parent.tag == "fieldset" and "disabled" in parent.attributes)
            node.in_disabled_fieldset = is_disabled and node.tag != "legend"
        if node.is_element and (element_id := node.get("id")):
            self._by_id.setdefault((node.frame.frame_id, element_id), []).append(node.index)

    def close(self) -> None:
        """Compute the ends of all subtrees, and which elements are shown."""
        for node in self.nodes:
            node.end = node.index + 1
        for node in reversed(self.nodes):
            parent = node.parent
            if parent is not None:
                parent.end = max(parent.end, node.end)
                parent.is_shown = parent.is_shown or node.is_shown


def build_tree(frames: Sequence[Frame], captures: Mapping[str, JsonObject]) -> Tree:
    """Join the captures of all CDP sessions of a tab into one tree.

    `captures` has the reply of `DOMSnapshot.captureSnapshot` by CDP session. A frame without a document is empty.

    Raises: KeyError, IndexError, TypeError for a reply of an unexpected form.
    """
    tree = Tree()
    if frames:
        _Builder(tree, frames, captures).add_frames(frames[0])
        tree.close()
    return tree


class _Builder:
    def __init__(self, tree: Tree, frames: Sequence[Frame], captures: Mapping[str, JsonObject]) -> None:
        self._tree = tree
        self._frames = {frame.frame_id: frame for frame in frames}
        self._documents: dict[str, tuple[_Document, list[str]]] = {}
        for capture in captures.values():
            strings = cast("list[str]", capture["strings"])
            for document in cast("list[_Document]", capture["documents"]):
                self._documents[strings[document["frameId"]]] = (document, strings)
        self._content: dict[tuple[str, int], Frame] = {}
        """The frame inside an `iframe` element, by CDP session and node of the element."""
        for frame in frames:
            parent = self._frames.get(frame.parent_id)
            if parent is not None and frame.owner_backend_node_id is not None:
                self._content[parent.cdp_session, frame.owner_backend_node_id] = frame

    def add_frames(self, top: Frame) -> None:
        """Add the documents of all frames, each directly after its `iframe` element."""
        stack = [self._read(top, None)]
        while stack:
            for node in stack[-1]:
                if len(self._tree.nodes) >= MAX_NODES:
                    self._tree.is_cut = True
                    return
                self._tree.add(node)
                inner = self._content.get((node.frame.cdp_session, node.backend_node_id))
                if inner is not None and node.is_shown and node.tag in ("iframe", "frame", "object", "embed"):
                    stack.append(self._read(inner, node))
                    break
            else:
                stack.pop()

    def _read(self, frame: Frame, owner: Node | None) -> Iterator[Node]:
        if frame.frame_id not in self._documents:
            return
        document, strings = self._documents[frame.frame_id]
        reader = _DocumentReader(frame, document, strings)
        yield from reader.read(owner)


class _DocumentReader:
    """Reads the nodes of one document from the columns of a capture."""

    def __init__(self, frame: Frame, document: _Document, strings: list[str]) -> None:
        self._frame = frame
        self._nodes = document["nodes"]
        self._layout = document["layout"]
        self._strings = strings
        self._base_url = strings[document["baseURL"]]
        self._rows = dict(zip(self._layout["nodeIndex"], range(len(self._layout["nodeIndex"])), strict=True))
        self._values = _values(self._nodes["inputValue"]) | _values(self._nodes["textValue"])
        self._checked = set(self._nodes["inputChecked"]["index"])
        self._selected = set(self._nodes["optionSelected"]["index"])
        self._clickable = set(self._nodes["isClickable"]["index"])

    def read(self, owner: Node | None) -> Iterator[Node]:
        nodes, strings = self._nodes, self._strings
        made: list[Node | None] = []
        for index, (parent_index, kind, name) in enumerate(
            zip(nodes["parentIndex"], nodes["nodeType"], nodes["nodeName"], strict=True)
        ):
            parent = made[parent_index] if parent_index >= 0 else None
            tag = strings[name].lower() if kind == _ELEMENT else "#text" if kind == _TEXT else "#document"
            is_generated = tag in _GENERATED
            # A node without a parent in the tree belongs to something that is left out, for example a comment.
            skipped = (kind not in (_ELEMENT, _TEXT) and index > 0) or (parent is None and index > 0)
            if skipped or (tag.startswith("::") and not is_generated):
                made.append(None)
                continue
            node = Node(
                tag="#text" if is_generated else tag,
                frame=self._frame,
                backend_node_id=nodes["backendNodeId"][index],
                base_url=self._base_url,
                parent=parent or owner,
                attributes=self._attributes(nodes["attributes"][index]) if kind == _ELEMENT else {},
            )
            self._add_state(node, index)
            made.append(node)
            if node.tag != "#text" or node.is_shown or self._add_hidden_text(node, nodes["nodeValue"][index]):
                yield node

    def _add_state(self, node: Node, index: int) -> None:
        row = self._rows.get(index)
        if row is not None:
            cursor, visibility, display = self._styles(row)
            node.box = cast("Box", tuple(self._layout["bounds"][row]))
            node.has_pointer = cursor == "pointer"
            node.is_inline = display in _INLINE
            node.is_shown = visibility == "visible"
            text = self._layout["text"][row]
            if node.tag == "#text":
                node.text = self._strings[text] if text >= 0 else ""
                node.is_shown = node.is_shown and bool(node.text)
        if node.tag != "#text":
            value = self._values.get(index)
            if value is not None:
                node.value = self._strings[value] if value >= 0 else ""
            node.is_checked = index in self._checked
            node.is_selected = index in self._selected
            node.is_clickable = index in self._clickable

    def _add_hidden_text(self, node: Node, value: int) -> bool:
        """Keep a text that is not rendered: it may be the label of an option or of an icon."""
        parent = node.parent
        if parent is None or value < 0 or (parent.tag in _UNREAD and parent.box is None and not _is_in_svg(parent)):
            return False
        node.text = self._strings[value][:_MAX_HIDDEN_CHARACTERS]
        return not node.text.isspace()

    def _styles(self, row: int) -> tuple[str, str, str]:
        found = self._layout["styles"][row]
        if len(found) != len(STYLES):  # A document has no styles.
            return "", "visible", "block"
        cursor, visibility, display = (self._strings[number] if number >= 0 else "" for number in found)
        return cursor, visibility, display

    def _attributes(self, numbers: list[int]) -> Mapping[str, str]:
        strings, found = self._strings, {}
        for position in range(0, len(numbers), 2):
            name, value = strings[numbers[position]], numbers[position + 1]
            if name in _ATTRIBUTES or name.startswith("aria-"):
                found[name] = strings[value][:_MAX_ATTRIBUTE_CHARACTERS] if value >= 0 else ""
        return found


def _is_in_svg(node: Node) -> bool:
    return node.parent is not None and node.parent.tag in ("svg", "g", "path", "circle", "rect", "text", "a")


def _values(rare: _Rare) -> dict[int, int]:
    return dict(zip(rare["index"], rare["value"], strict=True))
