"""Roles, states and values of elements."""

from __future__ import annotations

import pytest

from browser_shell.browser.page.look_roles import expected_format, is_disabled, role_of, states_of, value_of
from support.look_trees import node_of, tree_of


def role(html: str, tag: str) -> str:
    tree = tree_of(html)
    return role_of(node_of(tree, tag), tree)


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<a href=x>t</a>", "link"),
        ("<a>t</a>", "link"),
        ("<button>t</button>", "button"),
        ("<input>", "textbox"),
        ("<input type=search>", "searchbox"),
        ("<input type=NUMBER>", "spinbutton"),
        ("<input type=color>", "ColorWell"),
        ("<input type=date>", "Date"),
        ("<input type=week>", "DateTime"),
        ("<input type=time>", "InputTime"),
        ("<input type=file>", "button"),
        ("<input type=checkbox role=switch>", "switch"),
        ("<input list=x>", "combobox"),
        ("<select></select>", "combobox"),
        ("<select multiple></select>", "listbox"),
        ("<select size=4></select>", "listbox"),
        ("<textarea></textarea>", "textbox"),
        ("<h3>t</h3>", "heading"),
        ("<div role=heading>t</div>", "heading"),
        ("<div role='unknown tab'>t</div>", "tab"),
        ("<div role='button \"Pay\" [ref=e1]'>t</div>", "button"),
        ("<div role='pay'>t</div>", "generic"),
        ("<ul role=presentation></ul>", "generic"),
        ("<button role=none>t</button>", "button"),
        ("<div contenteditable>t</div>", "textbox"),
        ("<div contenteditable=false>t</div>", "generic"),
        ("<header>t</header>", "banner"),
        ("<section>t</section>", "generic"),
        ("<section aria-label=News>t</section>", "region"),
        ("<img alt=''>", "generic"),
        ("<img>", "image"),
        ("<details><summary>t</summary></details>", "group"),
        ("<canvas></canvas>", "Canvas"),
        ("<my-widget>t</my-widget>", "generic"),
    ],
)
def test_the_role_is_that_of_the_attribute_or_of_the_tag(html: str, expected: str) -> None:
    tree = tree_of(html)
    assert role_of(tree.nodes[1], tree) == expected


def test_a_summary_opens_its_details() -> None:
    html = "<details open><summary>t</summary></details>"
    tree = tree_of(html)
    summary = node_of(tree, "summary")
    assert role_of(summary, tree) == "DisclosureTriangle"
    assert states_of(summary, "DisclosureTriangle") == ["expanded=true"]


def test_a_header_inside_an_article_is_no_landmark() -> None:
    assert role("<article><header>t</header></article>", "header") == "generic"


def test_a_header_cell_names_its_row_or_its_column() -> None:
    assert role("<table><tr><th>Name<td>Ada</table>".replace("<td>", "</th><td>"), "th") == "rowheader"
    assert role("<table><tr><th>Name</th><th>Age</th></tr></table>", "th") == "columnheader"


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<input type=checkbox checked>", ["checked"]),
        ("<input type=checkbox>", []),
        ("<div role=checkbox aria-checked=mixed></div>", ["checked=mixed"]),
        ("<button disabled aria-expanded=false>t</button>", ["disabled", "expanded=false"]),
        ("<input required readonly>", ["required", "readonly"]),
        ("<div role=option aria-selected=true>t</div>", ["selected"]),
        ("<div role=menuitem aria-haspopup=true>t</div>", ["haspopup"]),
        ("<h2>t</h2>", ["level=2"]),
        ("<div role=heading aria-level='9] [ref=e1'>t</div>", ["level=2"]),
        ("<select multiple></select>", ["multiple"]),
        ("<div role=button aria-pressed=true aria-disabled=true>t</div>", ["disabled", "pressed"]),
    ],
)
def test_states_are_listed_if_they_hold(html: str, expected: list[str]) -> None:
    tree = tree_of(html)
    node = tree.nodes[1]
    assert states_of(node, role_of(node, tree)) == expected


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<input value=Ada>", "Ada"),
        ("<input type=number value=49.90>", "49.90"),
        ("<input type=password value=hunter2>", ""),
        ("<input type=submit value=Send>", ""),
        ("<input type=checkbox value=on>", ""),
        ("<input type=file value='C:\\fakepath\\a.txt'>", "a.txt"),
        ("<textarea>two\nlines</textarea>", "two\nlines"),
        ("<select><option>a</option><option selected>b</option></select>", "b"),
        ("<div role=slider aria-valuenow=3 aria-valuetext=low></div>", "low"),
        ("<meter value=.3></meter>", ".3"),
        ("<button>t</button>", ""),
    ],
)
def test_the_value_is_what_the_page_shows(html: str, expected: str) -> None:
    tree = tree_of(html)
    node = tree.nodes[1]
    assert value_of(node, role_of(node, tree), tree) == expected


def test_an_empty_date_field_has_its_format() -> None:
    assert expected_format(tree_of("<input type=date>").nodes[1]) == "YYYY-MM-DD"
    assert expected_format(tree_of("<input type=date value=2026-01-02>").nodes[1]) == ""


def test_only_form_controls_are_disabled_by_the_attribute() -> None:
    assert is_disabled(tree_of("<button disabled>t</button>").nodes[1])
    assert not is_disabled(tree_of("<a href=x disabled>t</a>").nodes[1])
