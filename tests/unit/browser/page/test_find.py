"""Search in the items of a page."""

from __future__ import annotations

from browser_shell.browser.page.find import lines_of, search
from support.look_trees import items_of, refs_by_node

TABLE = (
    "<h2>Products</h2><table>"
    + "".join(
        f"<tr><td><a href=/{n}>Product {n}</a></td><td>{n}.50</td><td><button>Delete</button></td></tr>"
        for n in range(5)
    )
    + "</table>"
)


def find(html: str, text: str, role: str = "") -> list[str]:
    assign_ref = refs_by_node()
    matches = search(items_of(html, interactive=False), text, role=role)
    return [line for match in matches for line in lines_of(match, text, assign_ref)]


def test_a_match_in_a_row_shows_the_row_with_its_controls() -> None:
    assert find(TABLE, "product 3") == [
        '- row "3.50" [ref=e1] (under "Products")',
        '  - link "Product 3" [ref=e2]',
        '  - button "Delete" [ref=e3]',
    ]


def test_a_row_is_shown_once() -> None:
    assert len([line for line in find(TABLE, "3") if line.startswith("- row")]) == 1


def test_text_is_found_with_the_ref_of_its_element_and_an_excerpt() -> None:
    html = f"<h1>Terms</h1><p>{'word ' * 100}the needle {'word ' * 100}</p>"
    (line,) = find(html, "THE  Needle")
    assert line.startswith('- StaticText "…')
    assert "the needle" in line
    assert line.endswith('[ref=e1] (under "Terms")')
    assert len(line) < 250


def test_names_values_and_options_are_searched_but_not_passwords() -> None:
    assert find("<input aria-label=City value=Paris>", "paris") == ['- textbox "City" [ref=e1]: Paris']
    assert find("<select aria-label=S><option>small</option></select>", "small") != []
    assert find("<input type=password value=hunter2>", "hunter2") == []
    assert find("<p gone>hidden</p>", "hidden") == []


def test_a_role_limits_the_search() -> None:
    html = "<p>Save your work</p><button>Save</button><input type=date aria-label=Save><img alt=Save>"
    assert find(html, "save", "button") == ['- button "Save" [ref=e1]']
    assert find(html, "save", "date") == ['- Date "Save" [format=YYYY-MM-DD, ref=e1]']
    assert find(html, "save", "img") == ['- image "Save" [ref=e1]']


def test_a_match_has_the_name_of_its_place() -> None:
    html = "<div role=dialog aria-label=Confirm><p>Are you sure?</p><button>Yes</button></div>"
    assert find(html, "sure") == ['- StaticText "Are you sure?" [ref=e1] (in dialog "Confirm")']
