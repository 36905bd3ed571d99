"""The outline of a look: which items keep a line, and how deep it stands."""

from __future__ import annotations

from support.look_trees import items_of, look


def depths(html: str, *, interactive: bool) -> list[tuple[int, str]]:
    return [(item.depth, item.name or item.role) for item in items_of(html, interactive=interactive)]


def test_lines_stand_below_the_nearest_container_that_has_a_line() -> None:
    html = "<main><div><nav aria-label=N><p><a href=a>a</a></p><a href=b>b</a></nav></div><p>t</p></main>"
    assert depths(html, interactive=True) == [(0, "N"), (1, "a"), (1, "b")]
    assert depths(html, interactive=False) == [(0, "main"), (1, "N"), (2, "a"), (2, "b"), (1, "t")]


def test_the_text_of_a_list_entry_stands_in_its_line() -> None:
    assert look("<ul><li>one</li><li>two <button>x</button></li></ul>", interactive=False) == [
        "- list",
        '  - listitem "one"',
        '  - listitem "two"',
        '    - button "x" [ref=e1]',
    ]


def test_the_label_of_a_field_is_not_repeated_as_text() -> None:
    html = "<label>Name <input></label><p>Date: <input></p><p><input type=checkbox> Gift</p>"
    assert [name for _, name in depths(html, interactive=False)] == ["Name", "Date:", "Gift"]


def test_a_row_needs_a_control_in_an_interactive_look() -> None:
    html = "<table><tr><td>a</td></tr><tr><td>b</td><td><button>x</button></td></tr></table>"
    assert depths(html, interactive=True) == [(0, "b"), (1, "x")]


def test_an_empty_frame_needs_a_visible_size() -> None:
    assert look("<iframe title=Ad></iframe>") == []
