"""The selection of the items of a look."""

from __future__ import annotations

import time

from browser_shell.browser.page.look_outline import View
from browser_shell.browser.page.look_selection import GROUPED_MEMBERS, SHOWN_MEMBERS, select_items
from support.look_trees import items_of, look, node_of, tree_of


def test_an_interactive_look_has_controls_headings_and_messages_but_no_text() -> None:
    html = "<h1>Order</h1><p>Words</p><button>Go</button><div role=alert>Failed</div><p class='msg success'>Saved</p>"
    assert look(html) == [
        '- heading "Order" [level=1, ref=e1]',
        '- button "Go" [ref=e2]',
        '- alert "Failed"',
        '- StaticText "Saved"',
    ]


def test_a_full_look_has_all_text_once() -> None:
    html = "<h1>Order</h1><p>Some <b>words</b></p><p>More</p><label>Name <input></label>"
    assert look(html, interactive=False) == [
        '- heading "Order" [level=1, ref=e1]',
        '- StaticText "Some words"',
        '- StaticText "More"',
        '- textbox "Name" [ref=e2]',
    ]


def test_separators_and_icons_are_not_text() -> None:
    assert look("<p><a href=x>a</a> | <a href=y>b</a> \ue123</p>", interactive=False) == [
        '- link "a" [ref=e1]',
        '- link "b" [ref=e2]',
    ]


def test_rows_have_the_text_of_cells_without_controls() -> None:
    html = (
        "<table><tr><td><a href=x>Pen</a></td><td>1.50</td><td>Office</td><td><button>Delete</button></td></tr>"
        "<tr><td>Ink</td><td>2.00</td></tr></table>"
    )
    assert look(html) == ['- row "1.50 | Office"', '  - link "Pen" [ref=e1]', '  - button "Delete" [ref=e2]']
    assert look(html, interactive=False)[0] == "- table"
    assert '  - row "Ink | 2.00"' in look(html, interactive=False)


def test_a_table_without_controls_is_one_line() -> None:
    rows = "".join(f"<tr><td>{n}</td></tr>" for n in range(60))
    assert look(f"<table><caption>Data</caption>{rows}</table>") == ['- table "Data" [ref=e1] 60 rows']


def test_a_wrapper_around_one_control_has_no_line() -> None:
    assert look("<nav aria-label=Main><a href=x>Home</a></nav>") == ['- link "Home" [ref=e1]']
    assert look("<nav aria-label=Main><a href=x>Home</a><a href=y>Away</a></nav>")[0] == '- navigation "Main"'


def test_a_heading_that_is_a_link_is_one_line() -> None:
    assert look("<h2><a href=x>News</a></h2>") == ['- link "News" [level=2, ref=e1]']


def test_a_dialog_is_shown_with_its_text() -> None:
    assert look("<p>Behind</p><div role=dialog aria-label=Sure><p>Delete it?</p><button>Yes</button></div>") == [
        '- dialog "Sure" [ref=e1]',
        '  - StaticText "Delete it?"',
        '  - button "Yes" [ref=e2]',
    ]


def test_behind_a_modal_dialog_nothing_is_shown() -> None:
    tree = tree_of("<button>Behind</button><dialog open><button>Yes</button></dialog>")
    tree.modal = node_of(tree, "dialog")
    assert [item.name for item in select_items(tree, View(interactive=True))] == ["", "Yes"]


def test_a_long_list_is_shortened_with_the_argv_that_shows_the_rest() -> None:
    entries = "".join(f"<li><a href=/{n}>Entry {n}</a></li>" for n in range(GROUPED_MEMBERS + 1))
    lines = look(f"<p>x</p><ul>{entries}</ul><button>After</button>")
    assert lines[0] == "- list [ref=e1]"
    assert lines[SHOWN_MEMBERS] == f'  - link "Entry {SHOWN_MEMBERS - 1}" [ref=e{SHOWN_MEMBERS + 1}]'
    assert lines[SHOWN_MEMBERS + 1] == "  - … 11 more entries: snapshot -i -s @e1 --from 22"
    assert lines[-1].startswith('- button "After"')


def test_the_rest_of_a_shortened_table_begins_at_the_named_line() -> None:
    rows = "".join(
        f"<tr><td>{n}</td><td><button>Edit</button></td><td><button>Drop</button></td></tr>" for n in range(40)
    )
    html = f"<h1>T</h1><table>{rows}</table>"
    note = look(html)[-1]
    first_line = int(note.rpartition(" ")[2])
    tree = tree_of(html)
    items = select_items(tree, View(interactive=True, scope=node_of(tree, "table").key))
    assert (items[first_line - 1].role, items[first_line - 1].name) == ("row", str(SHOWN_MEMBERS))


def test_a_list_at_the_limit_is_shown_whole() -> None:
    entries = "".join(f"<li><a href=/{n}>Entry {n}</a></li>" for n in range(GROUPED_MEMBERS))
    assert len(look(f"<ul>{entries}</ul>")) == GROUPED_MEMBERS


def test_a_compact_look_leaves_out_structure() -> None:
    html = "<main><ul><li>one<ul><li>two</li></ul></li></ul><button>Go</button></main>"
    whole, compact = look(html, interactive=False), look(html, interactive=False, compact=True)
    assert len("".join(compact)) < len("".join(whole))
    assert '- button "Go" [ref=e1]' in compact


def test_a_depth_limits_the_levels() -> None:
    tree = tree_of("<ul><li>one<ul><li>two</li><li>2</li></ul></li><li>1</li></ul>")
    assert [item.name for item in select_items(tree, View(max_depth=2))] == ["", "one", "1"]


def test_a_scope_shows_one_element_and_what_is_below_it() -> None:
    tree = tree_of("<h1>A</h1><form id=f><input aria-label=B></form>")
    items = select_items(tree, View(interactive=True, scope=node_of(tree, "form").key))
    assert [item.role for item in items] == ["form", "textbox"]
    assert select_items(tree, View(scope=("top", 99))) == []


def test_long_text_is_split_into_lines() -> None:
    items = items_of(f"<p>{'word ' * 1000}</p>", interactive=False)
    assert len(items) == 4
    assert "".join(item.name for item in items) == "word " * 1000


def test_the_work_for_a_large_page_is_linear() -> None:
    html = "".join(f"<div click><span pointer><button>B{n}</button></span></div>" for n in range(10_000))
    started_at = time.monotonic()
    assert len(items_of(html)) == 10_000
    assert time.monotonic() - started_at < 30


def test_cells_that_are_controls_do_not_repeat_in_the_name_of_their_row() -> None:
    html = "<div role=grid><div role=row><b role=gridcell tabindex=0>1</b><b role=gridcell>text</b></div></div>"
    assert look(html) == ['- row "text"', '  - gridcell "1" [ref=e1]']


def test_a_message_inside_an_alert_is_shown_once() -> None:
    html = "<div role=alert><p class=toast-body>News</p><button>Yes</button></div>"
    assert look(html) == ['- alert "News"', '  - button "Yes" [ref=e1]']
