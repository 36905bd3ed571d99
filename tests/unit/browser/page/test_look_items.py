"""Items of a look: the facts in the line of a control."""

from __future__ import annotations

import pytest

from browser_shell.browser.page.look_items import Item, describe_control, link_target
from browser_shell.browser.page.look_names import Names
from support.look_trees import node_of, tree_of


def describe(html: str, tag: str, *, all_options: bool = False) -> Item:
    tree = tree_of(html)
    return describe_control(node_of(tree, tag), tree, Names(tree), all_options=all_options)


def test_a_password_has_the_same_dots_whatever_its_length() -> None:
    assert describe("<input type=password value=a>", "input").value == "•••"
    assert describe("<input type=password value=abcdefghijkl>", "input").value == "•••"
    assert describe("<input type=password>", "input").value == ""


def test_the_options_of_a_list_are_bounded() -> None:
    html = f"<select>{''.join(f'<option>o{n}</option>' for n in range(40))}</select>"
    item = describe(html, "select")
    assert item.options == [*(f"o{n}" for n in range(12)), "28 more"]
    assert len(describe(html, "select", all_options=True).options) == 40


@pytest.mark.parametrize(
    ("html", "tag", "mark"),
    [
        ("<button></button>", "button", ""),
        ("<button id=go></button>", "button", "#go"),
        ("<button><i class='fa fa-trash'></i></button>", "button", ".fa-trash"),
        ("<div click class='a tile'></div>", "div", "clickable .a.tile"),
        ("<div click class='css-1y10 sc-dkrFOg menu'></div>", "div", "clickable .menu"),
        ("<circle click fill=red></circle>", "circle", "clickable circle[fill=red]"),
        ("<div click id='x] [ref=e1'></div>", "div", "clickable"),
        ("<div tabindex=0>t</div>", "div", "focusable"),
        ("<div contenteditable>t</div>", "div", "editable"),
        ("<button id=go>Go</button>", "button", ""),
    ],
)
def test_an_element_without_a_name_has_its_id_icon_or_class(html: str, tag: str, mark: str) -> None:
    assert describe(html, tag).mark == mark


def test_a_label_of_a_hidden_check_box_is_described_as_the_check_box() -> None:
    item = describe("<input type=checkbox id=x checked gone><label for=x>Gift</label>", "label")
    assert (item.role, item.name, item.states, item.node.tag) == ("checkbox", "Gift", ["checked"], "label")


def test_fields_have_their_format_size_and_kind() -> None:
    assert "format=HH:MM" in describe("<input type=time>", "input").states
    assert "size=100x20" in describe("<canvas></canvas>", "canvas").states
    assert "file" in describe("<input type=file>", "input").states


@pytest.mark.parametrize(
    ("href", "target"),
    [("/b?c", "https://a.example/b?c"), ("https://[", "https://["), ("#top", "https://a.example/page#top")],
)
def test_the_target_of_a_link_is_absolute(href: str, target: str) -> None:
    assert link_target(node_of(tree_of(f"<a href='{href}'>t</a>"), "a")) == target


def test_a_branch_of_a_tree_is_acted_on_at_its_label() -> None:
    html = "<li role=treeitem><span>Root</span><ul role=group><li role=treeitem><span>Leaf</span></li></ul></li>"
    tree = tree_of(html)
    root, leaf = (describe_control(node_of(tree, "li", n), tree, Names(tree), all_options=False) for n in (0, 1))
    assert (root.name, root.target) == ("Root", node_of(tree, "span"))
    assert (leaf.name, leaf.target) == ("Leaf", node_of(tree, "li", 1))


def test_a_combobox_without_a_field_has_its_text_as_its_value() -> None:
    assert describe("<div role=combobox aria-label=Size>Medium</div>", "div").value == "Medium"
    assert describe("<div role=combobox aria-label=Size></div>", "div").value == ""
