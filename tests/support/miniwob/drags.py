"""Tasks of dragging and drawing."""

from __future__ import annotations

import math
import re

from support.miniwob.episodes import AREA_LEFT, AREA_TOP, Episode
from support.miniwob.figures import Point, figures, point

_DIRECTIONS = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}


def _drag(episode: Episode, start: Point, end: Point) -> None:
    """Drag between two places of the drawing, which is the first element of the task."""
    (x1, y1), (x2, y2) = ((round(x + AREA_LEFT), round(y + AREA_TOP)) for x, y in (start, end))
    episode.run("drag", "--from", f"{x1},{y1}", "--to", f"{x2},{y2}")


def drag_the_small_box_into_the_large_box(episode: Episode) -> None:
    episode.run("drag", "#draggableSmall", "#draggableLarge")
    episode.submit()


def drag_the_figure_in_a_direction(episode: Episode) -> None:
    (direction,) = episode.groups_of(r"Drag the \w+ (\w+)")
    x, y = next(figures(episode)).centre
    across, down = _DIRECTIONS[direction]
    _drag(episode, (x, y), (x + 25 * across, y + 25 * down))
    episode.submit()


def _boxes(episode: Episode) -> list[Point]:
    """Return the centres of the empty boxes, from left to right."""
    boxes = [f"xpath=(//*[@fill='none'])[{number}]" for number in range(1, episode.count("rect[fill='none']") + 1)]
    places = [episode.numbers(box, "x", "y", "width", "height") for box in boxes]
    return sorted((x + width / 2, y + height / 2) for x, y, width, height in places)


def drag_figures_into_boxes(episode: Episode) -> None:
    (what,) = episode.groups_of(r"Drag all (\w+)")
    first, *second = _boxes(episode)
    for figure in list(figures(episode)):
        if what in (f"{figure.name}s", figure.colour):
            _drag(episode, figure.centre, first)
        elif second:
            _drag(episode, figure.centre, second[0])
    episode.submit()


def _items(episode: Episode) -> list[str]:
    return episode.text("#sortable").split("\n")


def _move_item(episode: Episode, start: int, end: int) -> None:
    """Drag an item of a list. The list makes room when the pointer has passed the middle of an item."""
    (x, y1), (_, y2) = _row(start), _row(end)
    _drag(episode, (x, y1), (x, y2 + math.copysign(6, y2 - y1)))


def _row(number: int) -> Point:
    """Return the centre of an item of a list, whose items are 28.6 pixels apart."""
    return 75, 17.8 + 28.6 * (number - 1)


def move_the_item_of_the_list(episode: Episode) -> None:
    name, place = episode.groups_of(r"Drag (.+) (to the .+|up by one|down by one)")
    items = _items(episode)
    start = items.index(name) + 1
    ends = {"to the top": 1, "to the bottom": len(items), "up by one": start - 1, "down by one": start + 1}
    numbered = re.search(r"to the (\d)", place)
    end = int(numbered[1]) if numbered else next(ends[words] for words in ends if place.startswith(words))
    _move_item(episode, start, end)


def move_the_item_of_the_grid(episode: Episode) -> None:
    name, place = episode.groups_of(r"Drag (.+) (to the .+|\w+ by one)\.")
    start = _items(episode).index(name) + 1
    steps = {"up by one": -3, "down by one": 3, "left by one": -1, "right by one": 1}
    if place in steps:
        end = start + steps[place]
    else:
        row = 1 if "top" in place else 3 if "bottom" in place else 2
        column = 1 if "left" in place else 3 if "right" in place else 2
        end = 3 * (row - 1) + column
    _drag(episode, _cell(start), _drop_place(start, end))


def _cell(number: int) -> Point:
    """Return the centre of a cell of the grid, whose cells are 46 pixels apart."""
    row, column = divmod(number - 1, 3)
    return 25 + 46 * column, 25 + 46 * row


def _drop_place(start: int, end: int) -> Point:
    """Return where to drop an item of the grid.

    The grid makes room when the pointer has passed the middle of a cell: behind the cell when the pointer moves to
    the right or down, else before it.
    """
    (x1, y1), (x2, y2) = _cell(start), _cell(end)
    if end < start and x2 > x1:
        x, y = _cell(end - 1)
        return x + 8, y
    if x1 == x2:
        return x2, y2 + math.copysign(8, y2 - y1)
    return x2 + math.copysign(8, x2 - x1), y2


def sort_the_numbers(episode: Episode) -> None:
    for place in range(4):
        numbers = [int(item) for item in _items(episode)]
        smallest = numbers.index(min(numbers[place:]), place)
        if smallest != place:
            _move_item(episode, smallest + 1, place + 1)
    episode.submit()


def resize_the_text_area(episode: Episode) -> None:
    dimension, direction = episode.groups_of(r"the (width|height) is (smaller|larger)")
    handle = ".ui-resizable-e" if dimension == "width" else ".ui-resizable-s"
    larger = "#reward-last" if dimension == "width" else "#submit"
    episode.run("drag", handle, larger if direction == "larger" else "#tt")
    episode.click("#submit")


def draw_the_line(episode: Episode) -> None:
    x, y = point(episode, "#circ")
    if "horizontal" in episode.query:
        _drag(episode, (5, y), (145, y))
    else:
        _drag(episode, (x, 5), (x, 105))
    episode.click_named("button", "Submit")


def turn_the_cube(episode: Episode) -> None:
    """Turn the cube until the wanted side is the active one. Sides 1 and 6 are above and below."""
    wanted = episode.quoted()[0]
    middle = ("2", "3", "4", "5")

    def active() -> str:
        episode.run("wait", 500)  # The cube goes on turning after the drag.
        return episode.text(".active")

    if wanted in middle:
        episode.until(lambda: active() in middle, lambda: _drag(episode, (75, 40), (75, 90)))
        episode.until(lambda: active() == wanted, lambda: _drag(episode, (50, 60), (100, 60)))
    else:
        episode.until(lambda: active() == wanted, lambda: _drag(episode, (75, 40), (75, 90)))
    episode.run("focus", "#subbtn")  # A click would turn the cube.
    episode.run("press", "Enter")


def create_the_event(episode: Episode) -> None:
    length, unit, name, hour, half = episode.groups_of(
        r'Create a ([\d.]+) (\w+) event named "(\w+)", between (\d+)(AM|PM)'
    )
    slots = round(float(length) / 30) if unit == "mins" else round(float(length) * 2)
    first = 2 * (int(hour) % 12 + (12 if half == "PM" else 0))
    for start in range(first, first + 8 - slots):
        if episode.session.run("drag", f"#hh-{start}", f"#hh-{start + slots - 1}").exit_code == 0:
            break  # Where another event covers the calendar, the drag is refused.
    episode.fill("#event-name", name)
    episode.click_named("button", "Create")
