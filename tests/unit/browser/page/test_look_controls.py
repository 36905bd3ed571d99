"""Which elements can be acted on."""

from __future__ import annotations

import pytest

from browser_shell.browser.page.look_controls import Controls
from browser_shell.browser.page.look_names import Names
from browser_shell.browser.page.look_tree import Tree
from support.look_trees import node_of, tree_of


def controls_of(tree: Tree) -> Controls:
    return Controls(tree, Names(tree))


def controls(html: str) -> list[str]:
    """Return the tags of all controls."""
    tree = tree_of(html)
    found = controls_of(tree)
    return [node.tag for node in tree.nodes if found.is_control(node)]


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<button>t</button>", ["button"]),
        ("<a href=x>t</a>", ["a"]),
        ("<input><select></select><textarea></textarea>", ["input", "select", "textarea"]),
        ("<input type=hidden gone>", []),
        ("<button gone>t</button>", []),
        ("<div gone><button>t</button></div>", []),
        ("<div aria-hidden=true><button>t</button></div>", []),
        ("<div inert><button>t</button></div>", []),
        ("<div tabindex=0>t</div>", ["div"]),
        ("<div tabindex=-1>t</div>", []),
        ("<div tabindex=0><button>t</button></div>", ["button"]),
        ("<div contenteditable>t <b click>bold</b></div>", ["div"]),
        ("<div role=tablist tabindex=0>t</div>", []),
        ("<td>t</td>", []),
        ("<span role=gridcell tabindex=-1>t</span>", ["span"]),
        ("<canvas></canvas><video></video>", ["canvas", "video"]),
        ("<select><option>t</option></select>", ["select"]),
        ("<div role=listbox><div role=option>t</div><div role=option>u</div></div>", ["div", "div", "div"]),
    ],
)
def test_controls_are_found_by_role_keyboard_and_editing(html: str, expected: list[str]) -> None:
    assert controls(html) == expected


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<div click>t</div>", ["div"]),
        ("<div pointer>t</div>", ["div"]),
        ("<div pointer><span>t</span></div>", ["div"]),
        ("<div pointer click><button>t</button></div>", ["button"]),
        ("<div click><button>t</button><button>u</button></div>", ["button", "button"]),
        ("<ul pointer><li>t</li><li>u</li></ul>", ["li", "li"]),
        ("<body click><p>t</p></body>", []),
        (f"<div click>{'word ' * 60}</div>", []),
        (f"<div pointer>{'word ' * 60}</div>", ["div"]),
        ("<label click>t <input type=checkbox></label>", ["input"]),
        ("<div click pointer><i click></i>Delete row</div>", ["div"]),
        ("<div pointer click><h3>A card with words</h3><button>Buy</button></div>", ["div", "button"]),
    ],
)
def test_an_element_that_reacts_to_clicks_is_a_control_unless_it_wraps_one(html: str, expected: list[str]) -> None:
    assert controls(html) == expected


def test_a_label_stands_for_the_check_box_that_is_not_rendered() -> None:
    assert controls("<input type=checkbox id=x gone><label for=x>Gift</label>") == ["label"]
    assert controls("<input type=checkbox id=x><label for=x>Gift</label>") == ["input"]


def test_controls_are_counted_below_every_element() -> None:
    tree = tree_of("<main><p><button>a</button></p><div><button>b</button><p>text</p></div></main>")
    found = controls_of(tree)
    assert found.inside(node_of(tree, "main")) == 2
    assert found.sole(node_of(tree, "main")) is None
    assert found.sole(node_of(tree, "div")) is node_of(tree, "button", 1)
    assert list(found.all_inside(node_of(tree, "main"))) == [node_of(tree, "button"), node_of(tree, "button", 1)]


def test_a_hidden_icon_that_reacts_to_clicks_is_a_control() -> None:
    assert controls("<i aria-hidden=true click pointer></i>") == ["i"]


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<x-tab role=tab><div pointer>One</div></x-tab>", ["x-tab"]),
        ("<button><svg click pointer><path click></path></svg></button>", ["button"]),
        ("<div role=tab>One <i click></i></div>", ["div", "i"]),
        ("<div role=option>Tag <span click>remove</span></div>", ["div", "span"]),
        ("<label><input type=checkbox><div pointer>Gift</div></label>", ["input"]),
        ("<div role=toolbar click></div>", []),
    ],
)
def test_the_parts_of_a_control_are_not_controls_of_their_own(html: str, expected: list[str]) -> None:
    assert controls(html) == expected


def test_an_entry_of_a_menu_needs_no_role_and_a_separator_is_none() -> None:
    html = (
        "<ul role=menu><li tabindex=0 aria-haspopup=true>New</li><li tabindex=0 role=menuitem>Open</li>"
        "<li tabindex=0 role=presentation><div></div></li></ul>"
    )
    tree = tree_of(html)
    found = controls_of(tree)
    names = Names(tree)
    assert [(names.role(node), names.name(node)) for node in tree.nodes if found.is_control(node)] == [
        ("menuitem", "New"),
        ("menuitem", "Open"),
    ]


def test_a_list_entry_that_the_keyboard_reaches_is_a_control() -> None:
    assert controls("<ul><li tabindex=0>One</li><li>Two</li></ul>") == ["li"]
