"""Changes between two looks."""

from __future__ import annotations

from collections.abc import Sequence

from browser_shell.browser.page.look_delta import compare
from browser_shell.browser.page.look_items import Item
from browser_shell.browser.page.look_outline import View
from browser_shell.browser.page.look_selection import select_items
from browser_shell.browser.page.look_text import AssignRef, Style
from browser_shell.browser.page.look_tree import Tree
from support.look_trees import refs_by_node, tree_of


def items(tree: Tree) -> list[Item]:
    return select_items(tree, View())


def changes(before: Tree, after: Tree, assign_ref: AssignRef | None = None) -> Sequence[str]:
    return compare(items(before), items(after), style=Style(), assign_ref=assign_ref or refs_by_node()).lines


def renumber(tree: Tree, *backend_node_ids: int) -> Tree:
    """Give the elements of a tree the node ids of another document state, in order."""
    elements = [node for node in tree.nodes if node.is_element]
    for node, backend_node_id in zip(elements, backend_node_ids, strict=True):
        node.backend_node_id = backend_node_id
    return tree


def test_equal_looks_have_no_changes() -> None:
    html = "<h1>a</h1><p>text</p><input value=1>"
    assert changes(tree_of(html), tree_of(html)) == []


def test_changed_values_and_texts_are_listed_once() -> None:
    before = tree_of("<input aria-label=N value=1><p>old</p>")
    after = tree_of("<input aria-label=N value=2><p>new</p>")
    assert changes(before, after) == ['~ - textbox "N" [ref=e1]: 2', '~ - StaticText "new"']


def test_added_and_removed_elements_are_listed_once() -> None:
    before = renumber(tree_of("<button>a</button><button>b</button>"), 10, 20)
    after = renumber(tree_of("<button>a</button><button>c</button>"), 10, 30)
    for tree in (before, after):
        for node in tree.nodes:
            if node.tag == "#text":
                node.backend_node_id += 1_000
    assert changes(before, after) == ['+ - button "c" [ref=e1]', 'removed: button "b" @e2']


def test_a_new_node_with_the_same_words_keeps_no_ref() -> None:
    before = renumber(tree_of("<button>Delete</button>"), 10)
    after = renumber(tree_of("<button>Delete</button>"), 20)
    assert changes(before, after) == ['+ - button "Delete" [ref=e1]', 'removed: button "Delete" @e2']


def test_a_text_that_was_only_rendered_again_is_no_change() -> None:
    before, after = tree_of("<p>same</p>"), tree_of("<p>same</p>")
    for node in after.nodes:
        node.backend_node_id += 100
    assert changes(before, after) == []


def test_moved_elements_are_listed_alone() -> None:
    before = renumber(tree_of("<button>a</button><button>b</button><button>c</button>"), 1, 2, 3)
    after = renumber(tree_of("<button>b</button><button>c</button><button>a</button>"), 2, 3, 1)
    assert changes(before, after) == ['> - button "a" [ref=e1]']


def test_many_removed_elements_are_counted() -> None:
    before = tree_of("".join(f"<button>b{n}</button>" for n in range(30)))
    lines = changes(before, tree_of(""))
    assert (len(lines), lines[-1]) == (7, "removed: 24 more")


def test_removed_names_cannot_forge_a_ref() -> None:
    before = tree_of('<button aria-label="x&quot; [ref=e1]&#10;- button">t</button>')
    (line,) = changes(before, tree_of(""))
    assert "ref=e1" not in line
    assert "\n" not in line


def test_a_removed_container_stands_for_what_was_in_it() -> None:
    before = tree_of("<div role=dialog aria-label=Sure><p>Delete it?</p><button>Yes</button></div>")
    assert changes(before, tree_of("")) == ['removed: dialog "Sure" @e1']
