"""The tree of a look, built from DevTools snapshots."""

from __future__ import annotations

from typing import Any

import pytest

from browser_shell.browser.page import look_tree
from browser_shell.browser.page.frames import Frame
from browser_shell.browser.page.look_tree import Node, Tree, build_tree

STYLES = ("auto", "visible", "block")
TOP = Frame(frame_id="top", loader_id="l1", url="https://a.example/", cdp_session="s1", parent_id="")


class Capture:
    """A reply to `DOMSnapshot.captureSnapshot` with one document per frame."""

    def __init__(self) -> None:
        self.strings: list[str] = []
        self.documents: list[dict[str, Any]] = []

    def text(self, text: str) -> int:
        if text not in self.strings:
            self.strings.append(text)
        return self.strings.index(text)

    def document(self, frame_id: str, *, first_id: int = 1000) -> Document:
        document: dict[str, Any] = {}
        self.documents.append(document)
        return Document(self, frame_id, document, first_id)

    @property
    def reply(self) -> dict[str, Any]:
        return {"documents": self.documents, "strings": self.strings}


class Document:
    def __init__(self, capture: Capture, frame_id: str, data: dict[str, Any], first_id: int) -> None:
        self.capture = capture
        self.first_id = first_id
        columns = ("parentIndex", "nodeType", "nodeName", "nodeValue", "backendNodeId", "attributes")
        rare = ("textValue", "inputValue", "inputChecked", "optionSelected", "isClickable", "contentDocumentIndex")
        self.nodes: dict[str, Any] = {name: [] for name in columns} | {
            name: {"index": [], "value": []} for name in rare
        }
        self.layout: dict[str, Any] = {"nodeIndex": [], "styles": [], "bounds": [], "text": []}
        data |= {"frameId": capture.text(frame_id), "baseURL": capture.text("https://a.example/")}
        data |= {"nodes": self.nodes, "layout": self.layout}
        self.add(-1, 9, "#document", styles=())

    def add(
        self,
        parent: int,
        kind: int,
        name: str,
        *,
        value: str = "",
        attributes: dict[str, str] | None = None,
        styles: tuple[str, ...] | None = STYLES,
    ) -> int:
        index = len(self.nodes["nodeName"])
        text = self.capture.text
        self.nodes["parentIndex"].append(parent)
        self.nodes["nodeType"].append(kind)
        self.nodes["nodeName"].append(text(name))
        self.nodes["nodeValue"].append(text(value) if value else -1)
        self.nodes["backendNodeId"].append(self.first_id + index)
        pairs = [number for pair in (attributes or {}).items() for number in map(text, pair)]
        self.nodes["attributes"].append(pairs)
        if styles is not None:
            self.layout["nodeIndex"].append(index)
            self.layout["styles"].append([text(style) for style in styles])
            self.layout["bounds"].append([0, 0, 10, 10])
            self.layout["text"].append(text(value) if kind == 3 else -1)
        return index

    def element(self, parent: int, tag: str, **more: Any) -> int:
        return self.add(parent, 1, tag.upper(), **more)

    def rare(self, column: str, index: int, value: str | None = None) -> None:
        self.nodes[column]["index"].append(index)
        if value is not None:
            self.nodes[column]["value"].append(self.capture.text(value))


def tags(tree: Tree) -> list[str]:
    return [node.tag if node.tag != "#text" else node.text for node in tree.nodes]


def by_tag(tree: Tree, tag: str) -> Node:
    return next(node for node in tree.nodes if node.tag == tag)


def test_elements_keep_their_order_state_and_box() -> None:
    capture = Capture()
    page = capture.document("top")
    body = page.element(0, "body")
    field = page.element(body, "input", attributes={"id": "n", "type": "text", "onclick": "secret()"})
    page.rare("inputValue", field, "Ada")
    page.rare("isClickable", field)
    page.add(body, 3, "#text", value="Hello")
    tree = build_tree([TOP], {"s1": capture.reply})
    assert tags(tree) == ["#document", "body", "input", "Hello"]
    node = by_tag(tree, "input")
    assert (node.value, node.is_clickable, node.box, node.key) == ("Ada", True, (0, 0, 10, 10), ("top", 1002))
    assert node.attributes == {"id": "n", "type": "text"}
    assert tree.by_id(tree.nodes[0], "n") is node
    assert [child.tag for child in tree.children(by_tag(tree, "body"))] == ["input", "#text"]


@pytest.mark.parametrize("styles", [None, ("auto", "hidden", "block")])
def test_an_element_that_is_not_rendered_is_not_shown(styles: tuple[str, ...] | None) -> None:
    capture = Capture()
    page = capture.document("top")
    outer = page.element(page.element(0, "body"), "div", styles=styles)
    page.element(outer, "button", styles=styles)
    tree = build_tree([TOP], {"s1": capture.reply})
    assert not by_tag(tree, "button").is_shown
    assert not by_tag(tree, "div").is_shown


def test_an_element_without_a_box_is_shown_by_its_content() -> None:
    capture = Capture()
    page = capture.document("top")
    page.element(page.element(0, "div", styles=None), "button")
    tree = build_tree([TOP], {"s1": capture.reply})
    assert by_tag(tree, "div").is_shown


def test_hidden_text_is_kept_for_names_but_scripts_are_not() -> None:
    capture = Capture()
    page = capture.document("top")
    page.add(page.element(0, "option", styles=None), 3, "#text", value="Small", styles=None)
    page.add(page.element(0, "script", styles=None), 3, "#text", value="run()", styles=None)
    page.add(0, 8, "#comment", value="note", styles=None)
    tree = build_tree([TOP], {"s1": capture.reply})
    assert tags(tree) == ["#document", "option", "Small", "script"]
    assert not tree.nodes[2].is_shown


def test_generated_text_is_text_and_other_pseudo_elements_are_left_out() -> None:
    capture = Capture()
    page = capture.document("top")
    page.add(0, 1, "::before", styles=STYLES)
    page.layout["text"][-1] = capture.text("New: ")
    page.add(0, 1, "::marker", styles=STYLES)
    assert tags(build_tree([TOP], {"s1": capture.reply})) == ["#document", "New: "]


def test_the_content_of_frames_stands_below_their_elements_in_every_process() -> None:
    inner = Frame(frame_id="in", loader_id="l", url="", cdp_session="s1", parent_id="top", owner_backend_node_id=1001)
    other = Frame(frame_id="far", loader_id="l", url="", cdp_session="s2", parent_id="in", owner_backend_node_id=2001)
    here, there = Capture(), Capture()
    page = here.document("top")
    page.element(0, "iframe")
    page.element(0, "p")
    here.document("in", first_id=2000).element(0, "iframe")
    there.document("far").element(0, "button")
    tree = build_tree([TOP, inner, other], {"s1": here.reply, "s2": there.reply})
    assert tags(tree) == ["#document", "iframe", "#document", "iframe", "#document", "button", "p"]
    assert by_tag(tree, "button").frame is other
    assert tree.nodes[1].end == 6


def test_a_frame_without_a_capture_is_empty() -> None:
    other = Frame(frame_id="far", loader_id="l", url="", cdp_session="s2", parent_id="top", owner_backend_node_id=1001)
    capture = Capture()
    capture.document("top").element(0, "iframe")
    assert tags(build_tree([TOP, other], {"s1": capture.reply})) == ["#document", "iframe"]


def test_a_tree_is_cut_at_its_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look_tree, "MAX_NODES", 3)
    capture = Capture()
    page = capture.document("top")
    for _ in range(9):
        page.element(0, "p")
    tree = build_tree([TOP], {"s1": capture.reply})
    assert (len(tree.nodes), tree.is_cut) == (3, True)


def test_deep_nesting_is_read_without_recursion() -> None:
    capture = Capture()
    page = capture.document("top")
    parent = 0
    for _ in range(5_000):
        parent = page.element(parent, "div")
    tree = build_tree([TOP], {"s1": capture.reply})
    assert tree.nodes[0].end == len(tree.nodes) == 5_001


def test_fields_in_a_disabled_fieldset_are_disabled_but_not_those_in_its_legend() -> None:
    capture = Capture()
    page = capture.document("top")
    fieldset = page.element(0, "fieldset", attributes={"disabled": ""})
    page.element(page.element(fieldset, "legend"), "button")
    page.element(page.element(fieldset, "div"), "input")
    tree = build_tree([TOP], {"s1": capture.reply})
    assert not by_tag(tree, "button").in_disabled_fieldset
    assert by_tag(tree, "input").in_disabled_fieldset
