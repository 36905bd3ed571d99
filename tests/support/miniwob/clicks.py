"""Tasks of buttons, links, tabs, sections, dialogs and menus."""

from __future__ import annotations

import re
from itertools import pairwise

from support.miniwob.episodes import Episode
from support.snapshots import ref_of


def click_the_only_button(episode: Episode) -> None:
    episode.click_named("button", "Click Me!")


def _use_button(episode: Episode, name: str) -> None:
    """Click a button. Press Enter on it where another one covers it."""
    button = ref_of(episode.snapshot(), "button", name)
    if episode.session.run("click", button).exit_code != 0:
        episode.run("focus", button)
        episode.run("press", "Enter")


def click_button_one(episode: Episode) -> None:
    _use_button(episode, "ONE")


def click_the_quoted_button(episode: Episode) -> None:
    episode.click_named("button", episode.quoted()[0])


def click_the_named_button(episode: Episode) -> None:
    (name,) = episode.groups_of(r"Click button (\w+)")
    _use_button(episode, name)


def click_one_then_two(episode: Episode) -> None:
    _use_button(episode, "ONE")
    _use_button(episode, "TWO")


def click_twice_with_a_delay(episode: Episode) -> None:
    (seconds,) = episode.groups_of(r"wait (\d+) seconds")
    _use_button(episode, "ONE")
    episode.run("wait", int(seconds) * 1000)
    _use_button(episode, "TWO")


def link_named(word: str) -> str:
    return f"xpath=//span[@class='alink'][text()='{word}']"


def click_the_quoted_link(episode: Episode) -> None:
    episode.click(link_named(episode.quoted()[0]))


def expand_and_submit(episode: Episode) -> None:
    episode.click("#area h3")
    episode.run("wait", ".ui-accordion-content")
    episode.run("wait", 500)  # The button moves while the section unfolds.
    episode.submit()


def find_the_link_in_a_section(episode: Episode) -> None:
    link = link_named(episode.quoted()[0])
    for number in (1, 2, 3):
        episode.click(f"xpath=//h3[contains(., 'Section #{number}')]")
        episode.run("wait", 500)
        if episode.visible(link):
            episode.click(link)
            return
    raise AssertionError("no section has the link")


def click_the_numbered_tab(episode: Episode) -> None:
    (number,) = episode.groups_of(r"#(\d)")
    episode.click(f"a[href='#tabs-{number}']")


def find_the_link_in_a_tab(episode: Episode) -> None:
    link = link_named(episode.quoted()[0])
    for number in range(1, len(episode.text("#area > ul").split("\n")) + 1):
        episode.click(f"a[href='#tabs-{number}']")
        if episode.done:  # One page rewards opening the tab.
            return
        if episode.visible(link):
            episode.click(link)
            return
    raise AssertionError("no tab has the link")


def close_the_dialog_box(episode: Episode) -> None:
    episode.click(".ui-dialog-titlebar-close")


def click_the_button_of_the_dialog_box(episode: Episode) -> None:
    wanted = episode.quoted()[0]
    if wanted == "x":
        close_the_dialog_box(episode)
    else:
        episode.click_named("button", wanted)


def click_the_kind_of_widget(episode: Episode) -> None:
    kind = episode.quoted()[0]
    selectors = {
        "radio": "input[type=radio]",
        "checkbox": "input[type=checkbox]",
        "text": "input[type=input]",
        "textarea": "textarea",
        "button": "button",
    }
    episode.click(f"#area {selectors[kind]}")


def _menu_item(name: str) -> str:
    return f"xpath=//li/div[normalize-space(.)='{name}']"


def _open_submenu(episode: Episode, name: str, *, item: str) -> None:
    """Hover over a menu item until an item of its submenu shows. Its click would select it."""
    episode.run("hover", _menu_item(name))
    episode.until(lambda: episode.visible(item), lambda: episode.run("wait", 100))
    episode.run("wait", 300)  # The submenu moves while it opens.


def choose_from_nested_menus(episode: Episode) -> None:
    (path,) = episode.groups_of(r"Select (.+)")
    names = path.split(">")
    for parent, child in pairwise(names):
        _open_submenu(episode, parent, item=_menu_item(child))
    episode.click(_menu_item(names[-1]))


def choose_from_the_menu_button(episode: Episode) -> None:
    wanted = episode.quoted()[1:]
    if wanted:
        item = _menu_item(wanted[0])
    else:
        icon = episode.attr("class", "#query .ui-icon").split()[-1]
        item = f"#menu .{icon}"
    episode.click("#open-menu")
    episode.run("wait", "#menu")
    if not episode.visible(item):
        _open_submenu(episode, "Playback", item=item)
    episode.click(item)


def _pie_slice(label: str) -> str:
    return f"xpath=//*[name()='text'][normalize-space(.)='{label}']"


def choose_from_the_pie_menu(episode: Episode) -> None:
    item = _pie_slice(episode.quoted()[0])
    episode.click(_pie_slice("+"))
    episode.run("wait", 500)  # The slices move while the menu unfolds.
    # The page redraws the item when the button is released, so no click event follows and the answer may be an error.
    episode.session.run("click", item)


def find_the_file_in_the_tree(episode: Episode) -> None:
    name = episode.quoted()[0]

    def visible_item() -> str:
        for number in range(1, 10):
            item = f"xpath=(//ul[@id='tree']//span[.='{name}'])[{number}]"
            if episode.visible(item):
                return item
        return ""

    folder = "xpath=//li[contains(@class, 'expandable')]/span"
    episode.until(lambda: visible_item() != "", lambda: episode.click(folder))
    episode.click(visible_item())


def sort_odd_from_even(episode: Episode) -> None:
    for row in range(1, 4):
        number = int(episode.text(f"#numbers .row:nth-child({row}) .display-number"))
        episode.click(f"#numbers .row:nth-child({row}) .{'odd' if number % 2 else 'even'}")
    episode.click("#submit")


def _turn_pages(episode: Episode, heading: str, wanted: str) -> None:
    """Turn the pages of a list until a heading has the wanted text."""

    def turn() -> None:
        episode.click("xpath=//ul[@id='pagination']//a[.='>']")

    episode.until(lambda: re.fullmatch(wanted, episode.text(heading)) is not None, turn)


def find_the_contact(episode: Episode) -> None:
    name, detail = episode.groups_of(r"Find (.+) in the contact book and click on their (\w+)")
    _turn_pages(episode, "#contact h2", re.escape(name))
    episode.click(f"xpath=//div[@class='property'][starts-with(normalize-space(.), '{detail.capitalize()}')]//a")


def find_the_search_result(episode: Episode) -> None:
    words = episode.quoted()[0]
    position = int(episode.groups_of(r"click the (\d+)")[0])
    episode.fill("#search-text", words)
    episode.click("#search")
    page = (position - 1) // 3 + 1
    if page > 1:
        episode.click(f"xpath=//ul[@id='pagination']//a[.='{page}']")
    episode.click(f"#page-content > div:nth-child({(position - 1) % 3 + 1}) a")
