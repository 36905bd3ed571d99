"""Tasks of dates and times."""

from __future__ import annotations

import calendar

from support.miniwob.episodes import Episode

MONTHS = tuple(calendar.month_name)[1:]


def _date(episode: Episode) -> tuple[int, int, int]:
    month, day, year = episode.asked(r"(\d\d)/(\d\d)/(\d{4})")
    return int(year), int(month), int(day)


def pick_date(episode: Episode) -> None:
    """Pick the task's date in the calendar, which opens at its last month."""
    _, month, day = _date(episode)
    episode.click("#datepicker")
    episode.run("wait", "#ui-datepicker-div")
    episode.until(
        lambda: episode.text(".ui-datepicker-month") == MONTHS[month - 1],
        lambda: episode.click("a.ui-datepicker-prev"),
    )
    episode.click(f"xpath=//td[@data-month]/a[text()='{day}']")
    episode.run("wait", "#ui-datepicker-div", "--state", "hidden")


def pick_from_the_calendar(episode: Episode) -> None:
    pick_date(episode)
    episode.submit()


def _press_all(episode: Episode, field: str, keys: str) -> None:
    """Press the digits of a date or time, as a person does."""
    episode.run("focus", field)
    for key in keys:
        episode.run("press", key)


def enter_the_date(episode: Episode) -> None:
    year, month, day = _date(episode)
    _press_all(episode, "#tt", f"{month:02}{day:02}{year}")
    episode.submit()


def enter_the_time(episode: Episode) -> None:
    hour, minute, half = episode.asked(r"(\d+):(\d\d)\s(AM|PM)")
    _press_all(episode, "#tt", f"{int(hour):02}{minute}{half[0]}")
    episode.submit()
