"""Tasks of forms: text, check boxes, lists, sliders and spinners."""

from __future__ import annotations

import re

from PIL import ImageColor

from support.miniwob.episodes import Episode
from support.miniwob.pictures import grid_of_cells
from support.miniwob.synonyms import are_synonyms
from support.snapshots import refs_of

ORDINALS = {"1st": 1, "2nd": 2, "3rd": 3}


def _names_to_select(episode: Episode) -> list[str]:
    (names,) = episode.groups_of(r"Select (.*?)(?: from the (?:scroll )?list)? and click Submit")
    return [] if names == "nothing" else names.split(", ")


def check_the_named_boxes(episode: Episode) -> None:
    boxes = dict(refs_of(episode.snapshot(), "checkbox"))
    for name in _names_to_select(episode):
        episode.run("check", boxes[name])
    episode.submit()


def check_the_boxes_with_similar_words(episode: Episode) -> None:
    words = [word.removeprefix("words similar to ") for word in _names_to_select(episode)]
    for name, box in refs_of(episode.snapshot(), "checkbox"):
        if any(are_synonyms(name, word) for word in words):
            episode.run("check", box)
    episode.submit()


def draw_the_number_with_boxes(episode: Episode) -> None:
    example = grid_of_cells(episode.picture("aside"), columns=4, rows=7)
    for row, cells in enumerate(example, start=1):
        for column, is_set in enumerate(cells, start=1):
            if is_set:
                episode.run("check", f"#checkboxes p:nth-child({row}) input:nth-child({column})")
    episode.submit()


def choose_the_named_radio_button(episode: Episode) -> None:
    (name,) = _names_to_select(episode)
    episode.run("check", dict(refs_of(episode.snapshot(), "radio"))[name])
    episode.submit()


def select_from_the_list(episode: Episode) -> None:
    episode.run("select", "#options", *_names_to_select(episode))
    episode.click_named("button", "Submit")


def pick_from_the_suggestions(episode: Episode) -> None:
    start, *end = episode.quoted()
    episode.run("type", "#tags", start)
    episode.run("wait", "ul.ui-autocomplete li")
    offered = episode.text("ul.ui-autocomplete").split("\n")
    item = next(item for item in offered if item.startswith(start) and item.endswith(end[0] if end else ""))
    episode.click(f"xpath=//li[contains(@class, 'ui-menu-item')][. = '{item}']")
    episode.run("wait", "ul.ui-autocomplete", "--state", "hidden")
    episode.submit()


def enter_the_quoted_text(episode: Episode) -> None:
    episode.fill("#tt", episode.quoted()[0])
    episode.submit()


def type_the_text_in_the_wanted_case(episode: Episode) -> None:
    text = episode.quoted()[0]
    episode.run("type", "#tt", text.upper() if "upper" in episode.query else text.lower())
    episode.submit()


def enter_the_password_twice(episode: Episode) -> None:
    for field in ("#password", "#verify"):
        episode.fill(field, episode.quoted()[0])
    episode.submit()


def focus_the_only_field(episode: Episode) -> None:
    _focus(episode, "#tt")


def _focus(episode: Episode, field: str) -> None:
    """Focus a field of a page that takes the focus away at once, which the answer reports."""
    episode.session.run("focus", field)


def focus_the_numbered_field(episode: Episode) -> None:
    (number,) = episode.groups_of(r"([123])")
    _focus(episode, f"#tt{number}")


def log_in(episode: Episode) -> None:
    user, password = episode.quoted()[:2]
    for field, value in (("#username", user), ("#password", password)):
        episode.session.run("click", field)  # Fails where a popup opens under the pointer.
        if episode.visible("#popup-cancel"):
            episode.click("#popup-cancel")
        episode.fill(field, value)
    episode.submit()


def sign_the_agreement(episode: Episode) -> None:
    name = episode.quoted()
    if not name:
        episode.click("#cancel")
        return
    episode.run("scroll", "down", 10_000, "-s", "#text-area")
    episode.run("wait", "#name:enabled")
    episode.fill("#name", name[0])
    episode.click_named("button", name[1])


def search_for_the_movie(episode: Episode) -> None:
    """Fill three fields whose labels stand before or after them, in any order."""
    genre, director, year = episode.groups_of(r"Search for (.+) movies directed by (.+) from year (\d+)")
    values = {"genre": genre, "director": director, "year": year, "released": year}
    lines = episode.text("#area").split("\n")
    labels = re.findall("|".join(values), "\n".join(lines[:-1]).lower())
    for number, label in enumerate(labels, start=1):
        episode.fill(f"xpath=(//div[@id='area']//input)[{number}]", values[label])
    button = lines[-1].strip()
    episode.click(f"xpath=//div[@id='area']//*[self::div or self::button][text()='{button}']")


def check_the_radio_button_and_fill_the_field(episode: Episode) -> None:
    radio, number, field = episode.groups_of(
        r'the (\w+) radio button and enter the number "(.+)" into the (\w+) textbox'
    )
    episode.run("check", f"#area input[type=radio]:nth-of-type({ORDINALS[radio]})")
    episode.fill(f"#input-{ORDINALS[field]}", number)
    episode.submit()


def choose_from_the_styled_list(episode: Episode) -> None:
    (choice,) = episode.groups_of(r"Choose (.+) from the dropdown")
    episode.click(".selectric")
    episode.run("wait", ".selectric-items")
    episode.click(f"xpath=//div[contains(@class, 'selectric-items')]//li[.='{choice}']")
    episode.click_named("button", episode.quoted()[0])


def move_slider(episode: Episode, slider: str, output: str, wanted: int) -> None:
    """Move a slider with the arrow keys. The page shows its value."""
    episode.run("focus", f"{slider} .ui-slider-handle")
    difference = wanted - int(episode.text(output))
    episode.press_times("ArrowRight" if difference > 0 else "ArrowLeft", abs(difference))


def set_the_slider(episode: Episode) -> None:
    (wanted,) = episode.groups_of(r"Select (-?\d+) with the slider")
    move_slider(episode, "#slider", "#val", int(wanted))
    episode.submit()


def set_all_sliders(episode: Episode) -> None:
    (wanted,) = episode.groups_of(r"\[(.+)\]")
    for number, value in enumerate(wanted.split(","), start=1):
        move_slider(episode, f"#slider-{number}", f"#val-{number}", int(value))
    episode.submit()


def set_the_slider_and_check_a_box(episode: Episode) -> None:
    wanted, box = episode.groups_of(r"Select (-?\d+) with the slider, click the (\w+) checkbox")
    move_slider(episode, "#slider", "#val", int(wanted))
    episode.run("check", f"#checkbox-{ORDINALS[box]}")
    episode.submit()


def set_the_spinner(episode: Episode) -> None:
    wanted = int(episode.groups_of(r"Select (-?\d+) with the spinner")[0])
    for _ in range(abs(wanted)):
        episode.click(".ui-spinner-up" if wanted > 0 else ".ui-spinner-down")
    episode.submit()


def _enter_colour(episode: Episode, code: str) -> None:
    episode.fill("#col", code)
    episode.run("press", "Tab")  # The picker closes and uncovers the button.
    episode.submit()


def enter_the_named_colour(episode: Episode) -> None:
    (name,) = episode.groups_of(r"Select (\w+) with the color picker")
    _enter_colour(episode, "{:02X}{:02X}{:02X}".format(*ImageColor.getrgb(name)))


def enter_the_shown_colour(episode: Episode) -> None:
    _enter_colour(episode, "{:02X}{:02X}{:02X}".format(*episode.picture("#query .cc").centre))
