"""Names of elements."""

from __future__ import annotations

import time

import pytest

from browser_shell.browser.page.look_names import MAX_NAME_CHARACTERS, Names, readable
from support.look_trees import node_of, tree_of


def name(html: str, tag: str, position: int = 0) -> str:
    tree = tree_of(html)
    return Names(tree).name(node_of(tree, tag, position))


@pytest.mark.parametrize(
    ("html", "tag", "expected"),
    [
        ("<button>  Save\n <b>all</b></button>", "button", "Save all"),
        ("<button aria-label=Close>x</button>", "button", "Close"),
        ("<p id=a gone>One</p><p id=b>two</p><input aria-labelledby='a b none'>", "input", "One two"),
        ("<b id=a>Size</b><b id=b>Size</b><input aria-labelledby='a b'>", "input", "Size"),
        ("<label>Name <input></label>", "input", "Name"),
        ("<label for=x>Name</label><input id=x>", "input", "Name"),
        ("<input title=tip placeholder=hint>", "input", "tip"),
        ("<input placeholder=hint>", "input", "hint"),
        ("<input type=submit>", "input", "Submit"),
        ("<input type=button value=Go>", "input", "Go"),
        ("<a href=x><img alt=Logo></a>", "a", "Logo"),
        ("<a href=x><i>icon</i><span gone>hidden</span></a>", "a", "icon"),
        ("<button><span aria-hidden=true>×</span>Close</button>", "button", "Close"),
        ("<button><div>Two</div><div>blocks</div></button>", "button", "Two blocks"),
        ("<fieldset><legend>Part</legend><input></fieldset>", "fieldset", "Part"),
        ("<table><caption>Prices</caption><tr><td>1</td></tr></table>", "table", "Prices"),
        ("<svg><title>Chart</title></svg>", "svg", "Chart"),
        ("<div role=treeitem>Root<ul role=group><li role=treeitem>Leaf</li></ul></div>", "div", "Root"),
        ("<button>\ue001 Add</button>", "button", "Add"),
        # Two components with a shadow root each, whose elements have the same ids.
        (
            "<x-a><label for=i>First</label><input id=i></x-a><x-b><label for=i>Second</label><select id=i></x-b>",
            "select",
            "Second",
        ),
        (
            "<x-a><p id=l>First</p><input aria-labelledby=l></x-a>"
            "<x-b><select aria-labelledby=l></select><p id=l>Second</p></x-b>",
            "select",
            "Second",
        ),
    ],
)
def test_the_accessible_name_comes_first(html: str, tag: str, expected: str) -> None:
    assert name(html, tag) == expected


@pytest.mark.parametrize(
    ("html", "position", "expected"),
    [
        ("<p>Date: <input> Time: <input></p>", 0, "Date:"),
        ("<p>Date: <input> Time: <input></p>", 1, "Time:"),
        ("<div><div>Last name</div><div><input></div></div>", 0, "Last name"),
        ("<div><input type=checkbox> Milk <button>x</button></div>", 0, "Milk"),
        ("<table><tr><th>Name:</th><td><input></td></tr></table>", 0, "Name:"),
        (
            "<table><tr><th>Item</th><th>Qty</th><th>Price</th></tr>"
            "<tr><td>Pen</td><td><input></td><td><input></td></tr></table>",
            1,
            "Price",
        ),
        ("<table><tr><th>Field</th><th>Value</th></tr><tr><td>Name</td><td><input></td></tr></table>", 0, "Name"),
        ("<div><label>When</label><div><p>Date: <input></p></div></div>", 0, "When Date:"),
        (
            "<p>A sentence of more than eighty characters is no label, wherever it stands in the page. <input></p>",
            0,
            "",
        ),
        ("<p>First <input></p><p><input></p>", 1, ""),
        ("<p>*** <input></p>", 0, ""),
    ],
)
def test_a_field_without_a_name_has_the_text_beside_it(html: str, position: int, expected: str) -> None:
    assert name(html, "input", position) == expected


def test_the_body_of_a_rich_text_editor_has_the_name_of_its_frame() -> None:
    html = "<iframe title=Editor><html><body contenteditable>t</body></html></iframe>"
    tree = tree_of(html)
    iframe, inner = node_of(tree, "iframe"), node_of(tree, "html")
    document = tree_of("").nodes[0]
    document.parent, inner.parent = iframe, document
    assert Names(tree).name(node_of(tree, "body")) == "Editor"


def test_long_names_are_cut() -> None:
    found = name(f"<button>{'word ' * 500}</button>", "button")
    assert len(found) == MAX_NAME_CHARACTERS
    assert found.endswith("…")


def test_labels_that_refer_to_each_other_end() -> None:
    html = "<input id=a aria-labelledby=b><input id=b aria-labelledby=a>"
    assert name(html, "input") == ""


def test_the_work_for_names_is_bounded_for_nested_labels() -> None:
    depth = 3_000
    tree = tree_of("<span>" * depth + "x" + "</span>" * depth)
    names = Names(tree)
    started_at = time.monotonic()
    for node in tree.nodes[1:-1]:
        names.name(node)
    assert time.monotonic() - started_at < 20


def test_characters_of_icon_fonts_are_left_out() -> None:
    assert readable("\uf101 next \U000f0001") == " next "
