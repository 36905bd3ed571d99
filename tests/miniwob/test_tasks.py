"""MiniWoB tasks, solved with the tool's own commands and judged by the pages themselves."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable

import pytest

from support.miniwob import Episode
from support.snapshots import refs_of

MONTHS = tuple(calendar.month_name)[1:]


def click_the_only_button(episode: Episode) -> None:
    episode.click_named("button", "Click Me!")


def click_button_one(episode: Episode) -> None:
    episode.click_named("button", "ONE")


def click_the_named_button(episode: Episode) -> None:
    episode.click_named("button", episode.quoted()[0])


def click_one_then_two(episode: Episode) -> None:
    episode.click_named("button", "ONE")
    episode.click_named("button", "TWO")


def _link(word: str) -> str:
    return f"xpath=//span[@class='alink'][text()='{word}']"


def click_the_named_link(episode: Episode) -> None:
    episode.click(_link(episode.quoted()[0]))


def expand_and_submit(episode: Episode) -> None:
    episode.click("#area h3")
    episode.run("wait", ".ui-accordion-content")
    episode.run("wait", 500)  # The button moves while the section unfolds.
    episode.click("#subbtn")


def find_the_link_in_a_section(episode: Episode) -> None:
    link = _link(episode.quoted()[0])
    for number in (1, 2, 3):
        episode.click(f"xpath=//h3[contains(., 'Section #{number}')]")
        episode.run("wait", 500)
        if episode.visible(link):
            episode.click(link)
            return
    raise AssertionError("no section has the link")


def _names_to_select(episode: Episode) -> list[str]:
    found = re.search(r"Select (.*?)(?: from the (?:scroll )?list)? and click Submit", episode.query)
    assert found
    return [] if found[1] == "nothing" else found[1].split(", ")


def check_the_named_boxes(episode: Episode) -> None:
    boxes = dict(refs_of(episode.snapshot(), "checkbox"))
    for name in _names_to_select(episode):
        episode.run("check", boxes[name])
    episode.click("#subbtn")


def choose_the_named_radio_button(episode: Episode) -> None:
    (name,) = _names_to_select(episode)
    episode.run("check", dict(refs_of(episode.snapshot(), "radio"))[name])
    episode.click("#subbtn")


def select_from_the_list(episode: Episode) -> None:
    episode.run("select", "#options", *_names_to_select(episode))
    episode.click_named("button", "Submit")


def click_the_named_tab(episode: Episode) -> None:
    number = re.findall(r"#(\d)", episode.query)[0]
    episode.click(f"a[href='#tabs-{number}']")


def find_the_link_in_a_tab(episode: Episode) -> None:
    link = _link(episode.quoted()[0])
    for number in (1, 2, 3):
        episode.click(f"a[href='#tabs-{number}']")
        if episode.visible(link):
            episode.click(link)
            return
    raise AssertionError("no tab has the link")


def close_the_dialog_box(episode: Episode) -> None:
    episode.click(".ui-dialog-titlebar-close")


def press_the_dialog_boxs_button(episode: Episode) -> None:
    wanted = episode.quoted()[0]
    if wanted == "x":
        close_the_dialog_box(episode)
    else:
        episode.click_named("button", wanted)


def pick_from_the_suggestions(episode: Episode) -> None:
    start, *end = episode.quoted()
    episode.run("type", "#tags", start)
    episode.run("wait", "ul.ui-autocomplete li")
    offered = episode.text("ul.ui-autocomplete").split("\n")
    item = next(item for item in offered if item.startswith(start) and item.endswith(end[0] if end else ""))
    episode.click(f"xpath=//li[contains(@class, 'ui-menu-item')][. = '{item}']")
    episode.run("wait", "ul.ui-autocomplete", "--state", "hidden")
    episode.click("#subbtn")


def _date(episode: Episode) -> tuple[int, int, int]:
    month, day, year = re.findall(r"(\d\d)/(\d\d)/(\d{4})", episode.query)[0]
    return int(year), int(month), int(day)


def pick_from_the_calendar(episode: Episode) -> None:
    _, month, day = _date(episode)
    episode.click("#datepicker")
    episode.run("wait", "#ui-datepicker-div")
    for _ in range(12):
        if episode.text(".ui-datepicker-month") == MONTHS[month - 1]:
            break
        episode.click("a.ui-datepicker-prev")
    episode.click(f"xpath=//td[@data-month]/a[text()='{day}']")
    episode.run("wait", "#ui-datepicker-div", "--state", "hidden")
    episode.click("#subbtn")


def _press_all(episode: Episode, field: str, keys: str) -> None:
    """Date and time fields of Chromium take keys only."""
    episode.run("focus", field)
    for key in keys:
        episode.run("press", key)


def enter_the_date(episode: Episode) -> None:
    year, month, day = _date(episode)
    _press_all(episode, "#tt", f"{month:02}{day:02}{year}")
    episode.click("#subbtn")


def enter_the_time(episode: Episode) -> None:
    hour, minute, half = re.findall(r"(\d+):(\d\d)\s(AM|PM)", episode.query)[0]
    _press_all(episode, "#tt", f"{int(hour):02}{minute}{half[0]}")
    episode.click("#subbtn")


def enter_the_quoted_text(episode: Episode) -> None:
    episode.run("fill", "#tt", episode.quoted()[0])
    episode.click("#subbtn")


def type_the_text_in_the_wanted_case(episode: Episode) -> None:
    text = episode.quoted()[0]
    episode.run("type", "#tt", text.upper() if "upper" in episode.query else text.lower())
    episode.click("#subbtn")


def enter_the_password_twice(episode: Episode) -> None:
    for field in ("#password", "#verify"):
        episode.run("fill", field, episode.quoted()[0])
    episode.click("#subbtn")


def focus_the_only_field(episode: Episode) -> None:
    episode.run("focus", "#tt")


def focus_the_named_field(episode: Episode) -> None:
    episode.run("focus", f"#tt{re.findall(r'[123]', episode.query)[0]}")


def log_in(episode: Episode) -> None:
    user, password = episode.quoted()[:2]
    for field, value in (("#username", user), ("#password", password)):
        episode.click(field)
        if episode.visible("#popup-cancel"):
            episode.click("#popup-cancel")
        episode.run("fill", field, value)
    episode.click("#subbtn")


def copy_the_skewed_text(episode: Episode) -> None:
    episode.run("fill", "#tt", "".join(episode.text("#captcha").split()))
    episode.click("#subbtn")


def calculate(episode: Episode) -> None:
    one, sign, two = re.findall(r"(\d+) ([-+x]) (\d+)", episode.text("#math-problem"))[0]
    left, right = int(one), int(two)
    episode.run("fill", "#math-answer", {"+": left + right, "-": left - right, "x": left * right}[sign])
    episode.click("#subbtn")


def solve_for_x(episode: Episode) -> None:
    left, sign, right, total = re.findall(r"(\w+) ([-+]) (\w+) = (\d+)", episode.text("#math-problem"))[0]
    if sign == "+":
        answer = int(total) - int(right if left == "x" else left)
    else:
        answer = int(total) + int(right) if left == "x" else int(left) - int(total)
    episode.run("fill", "#math-answer", answer)
    episode.click("#subbtn")


def read_the_table(episode: Episode) -> None:
    key = re.findall(r"value of (.+?) into", episode.query)[0]
    episode.run("fill", "#tt", episode.text(f"xpath=//tr[td[1]='{key}']/td[2]"))
    episode.click("#subbtn")


def find_the_word(episode: Episode) -> None:
    position = int(re.findall(r"(\d+)(?:st|nd|rd|th)", episode.query)[0])
    episode.run("fill", "#answer-input", episode.text("#area p").split()[position - 1].strip(".,"))
    episode.click("#subbtn")


def guess_the_number(episode: Episode) -> None:
    low, high = 0, 9
    while not episode.rewards:
        guess = (low + high) // 2
        episode.run("fill", "#tt", guess)
        episode.click("#subbtn")
        if episode.visible("#higher"):
            low = guess + 1
        elif episode.visible("#lower"):
            high = guess - 1


def sign_the_agreement(episode: Episode) -> None:
    name = episode.quoted()
    if not name:
        episode.click("#cancel")
        return
    episode.run("scroll", "down", 10_000, "-s", "#text-area")
    episode.run("wait", "#name:enabled")
    episode.run("fill", "#name", name[0])
    episode.click_named("button", name[1])


def sort_odd_from_even(episode: Episode) -> None:
    for row in range(1, 4):
        number = int(episode.text(f"#numbers .row:nth-child({row}) .display-number"))
        episode.click(f"#numbers .row:nth-child({row}) .{'odd' if number % 2 else 'even'}")
    episode.click("#submit")


TASKS: dict[str, Callable[[Episode], None]] = {
    # click
    "click-test": click_the_only_button,
    "click-test-2": click_button_one,
    "click-button": click_the_named_button,
    "click-button-sequence": click_one_then_two,
    "click-link": click_the_named_link,
    "click-collapsible": expand_and_submit,
    "click-collapsible-2": find_the_link_in_a_section,
    "odd-or-even": sort_odd_from_even,
    # checkbox
    "click-checkboxes": check_the_named_boxes,
    "click-checkboxes-large": check_the_named_boxes,
    "click-checkboxes-transfer": check_the_named_boxes,
    # select and option
    "click-option": choose_the_named_radio_button,
    "choose-list": select_from_the_list,
    "click-scroll-list": select_from_the_list,
    # tab
    "click-tab": click_the_named_tab,
    "click-tab-2": find_the_link_in_a_tab,
    # dialog
    "click-dialog": close_the_dialog_box,
    "click-dialog-2": press_the_dialog_boxs_button,
    # autocomplete
    "use-autocomplete": pick_from_the_suggestions,
    "use-autocomplete-nodelay": pick_from_the_suggestions,
    # date and time
    "choose-date-easy": pick_from_the_calendar,
    "choose-date": pick_from_the_calendar,
    "enter-date": enter_the_date,
    "enter-time": enter_the_time,
    # text
    "enter-text": enter_the_quoted_text,
    "enter-text-2": type_the_text_in_the_wanted_case,
    "enter-text-dynamic": enter_the_quoted_text,
    "text-transform": copy_the_skewed_text,
    "focus-text": focus_the_only_field,
    "focus-text-2": focus_the_named_field,
    "find-word": find_the_word,
    # form
    "enter-password": enter_the_password_twice,
    "login-user": log_in,
    "login-user-popup": log_in,
    "simple-arithmetic": calculate,
    "simple-algebra": solve_for_x,
    "read-table": read_the_table,
    "guess-number": guess_the_number,
    "sign-agreement": sign_the_agreement,
}
SECOND_SEEDS = (
    "click-checkboxes",
    "choose-date",
    "use-autocomplete",
    "click-tab-2",
    "login-user-popup",
    "sign-agreement",
)


@pytest.mark.parametrize(("task", "seed"), [*((task, 1) for task in TASKS), *((task, 2) for task in SECOND_SEEDS)])
def test_a_task_is_solved_through_the_tool(begin: Callable[[str, int], Episode], task: str, seed: int) -> None:
    episode = begin(task, seed)
    TASKS[task](episode)
    assert episode.reward() == 1


def test_wrong_answer_gets_a_negative_reward(begin: Callable[[str, int], Episode]) -> None:
    """A wrong answer gets a negative reward, so the tests above can fail."""
    episode = begin("enter-text", 1)
    episode.run("fill", "#tt", "something else")
    episode.click("#subbtn")
    assert episode.reward() < 0


def test_task_depends_on_its_seed(begin: Callable[[str, int], Episode]) -> None:
    queries = [begin("enter-date", seed).query for seed in (1, 1, 2)]
    assert queries[0] == queries[1] != queries[2]
