"""Tasks of dates and times."""

from __future__ import annotations

import calendar

from support.miniwob.episodes import Episode

MONTHS = tuple(calendar.month_name)[1:]


def _date(episode: Episode) -> tuple[int, int, int]:
    month, day, year = episode.groups_of(r"(\d\d)/(\d\d)/(\d{4})")
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


def enter_the_date(episode: Episode) -> None:
    year, month, day = _date(episode)
    episode.fill("#tt", f"{year}-{month:02}-{day:02}")
    episode.submit()


def enter_the_time(episode: Episode) -> None:
    hour, minute, half = episode.groups_of(r"(\d+):(\d\d)\s(AM|PM)")
    episode.fill("#tt", f"{int(hour) % 12 + (12 if half == 'PM' else 0):02}:{minute}")
    episode.submit()
