"""Tasks of drawn figures and of places in a picture."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from PIL import ImageColor

from support.miniwob.episodes import Episode
from support.miniwob.pictures import distance, hue

Point = tuple[float, float]

_NAMES = {"circle": "circle", "rect": "rectangle", "polygon": "triangle"}
_SIZES = ("large", "small")
_LARGE = 15
"""Width in pixels between that of a small figure, 10, and of a large figure, 20."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A letter, digit or shape of a drawing."""

    selector: str
    kind: str
    """`letter`, `digit` or `shape`."""
    name: str
    """The character, or `circle`, `rectangle` or `triangle`."""
    colour: str
    width: float
    centre: Point
    """Pixels from the drawing's top left corner."""

    def fits(self, description: str) -> bool:
        """Whether a description such as `large red item` is true of this figure."""
        *qualities, what = description.split()
        size = "large" if self.width > _LARGE else "small"
        return what in ("item", self.kind, self.name) and all(
            quality == (size if quality in _SIZES else self.colour) for quality in qualities
        )


def figures(episode: Episode, drawing: str = "svg") -> Iterator[Figure]:
    """Read all filled figures of a drawing."""
    for tag in (*_NAMES, "text"):
        for number in range(1, episode.count(f"{drawing} {tag}") + 1):
            selector = f"{drawing} {tag}:nth-of-type({number})"
            colour = episode.attr("fill", selector)
            if colour == "none":
                continue
            centre, width = _place(episode, tag, selector)
            name = _NAMES.get(tag) or episode.text(selector)
            kind = "shape" if tag in _NAMES else "digit" if name.isdigit() else "letter"
            yield Figure(selector=selector, kind=kind, name=name, colour=colour, width=width, centre=centre)


def _place(episode: Episode, tag: str, selector: str) -> tuple[Point, float]:
    """Return the centre and the width of a figure."""
    if tag == "circle":
        x, y, radius = episode.numbers(selector, "cx", "cy", "r")
        return (x, y), 2 * radius
    if tag == "polygon":
        corners = [float(part) for part in re.split(r"[ ,]", episode.attr("points", selector))]
        xs, ys = corners[::2], corners[1::2]
        return ((min(xs) + max(xs)) / 2, (min(ys) + max(ys)) / 2), max(xs) - min(xs)
    if tag == "text":
        x, y, size = episode.numbers(selector, "x", "y", "font-size")
        return (x, y), size
    x, y, width, height = episode.numbers(selector, "x", "y", "width", "height")
    return (x + width / 2, y + height / 2), width


def point(episode: Episode, circle: str) -> Point:
    """Return the centre of a circle."""
    x, y = episode.numbers(circle, "cx", "cy")
    return x, y


def click_the_described_figure(episode: Episode) -> None:
    (description,) = episode.groups_of(r"Click on a (.+)")
    episode.click(next(figure.selector for figure in figures(episode) if figure.fits(description)))


def count_the_described_figures(episode: Episode) -> None:
    (description,) = episode.groups_of(r"How many (.+)s are there")
    episode.click_named("button", str(sum(figure.fits(description) for figure in figures(episode))))


def name_the_figure(episode: Episode) -> None:
    figure = next(figures(episode))
    names = {"letter": "Letter", "digit": "Number", "shape": figure.name.capitalize()}
    episode.click_named("button", names[figure.kind])


def click_the_grid_point(episode: Episode) -> None:
    x, y = (int(part) for part in episode.groups_of(r"\((-?\d),(-?\d)\)"))
    episode.click(f"circle[cx='{75 + 30 * x}'][cy='{75 - 30 * y}']")


def click_the_numbers_in_order(episode: Episode) -> None:
    """Remember where the numbers are: the first click hides them."""
    numbers = [f"xpath=//*[name()='text'][.='{number}']" for number in range(1, 6)]
    places = [episode.numbers(number, "x", "y") for number in numbers]
    for x, y in places:
        episode.click_at(x + 5, y - 7, "#area_svg")  # A digit stands right of and above its position.


def click_the_centre(episode: Episode) -> None:
    episode.click("#svg-grid circle")
    episode.submit()


def _mark(episode: Episode, place: Point) -> None:
    """Add a point to the drawing. The page adds it 2 pixels right of and below the pointer."""
    episode.click_at(place[0] - 2, place[1] - 2, "#svg-grid")
    episode.submit()


def _unit(start: Point, end: Point) -> Point:
    length = math.dist(start, end)
    return (end[0] - start[0]) / length, (end[1] - start[1]) / length


def _farthest(start: Point, direction: Point) -> Point:
    """Return the point inside the drawing that is farthest in a direction."""
    x, y = start
    while 5 < x + direction[0] < 145 and 5 < y + direction[1] < 125:
        x, y = x + direction[0], y + direction[1]
    return x, y


def mark_the_midpoint(episode: Episode) -> None:
    (x1, y1), (x2, y2) = (point(episode, f"#svg-grid circle:nth-of-type({number})") for number in (1, 2))
    _mark(episode, ((x1 + x2) / 2, (y1 + y2) / 2))


def bisect_the_angle(episode: Episode) -> None:
    vertex = point(episode, "circle[fill='blue']")
    arms = [_unit(vertex, point(episode, f"circle[fill='black']:nth-of-type({number})")) for number in (2, 3)]
    x, y = arms[0][0] + arms[1][0], arms[0][1] + arms[1][1]
    _mark(episode, _farthest(vertex, (x / math.hypot(x, y), y / math.hypot(x, y))))


def complete_the_right_angle(episode: Episode) -> None:
    vertex = point(episode, "circle[fill='blue']")
    x, y = _unit(vertex, point(episode, "circle[fill='black']"))
    ends = [_farthest(vertex, (-y, x)), _farthest(vertex, (y, -x))]
    _mark(episode, max(ends, key=lambda end: math.dist(end, vertex)))


def click_the_coloured_box(episode: Episode) -> None:
    named = re.search(r"Click on the (\w+) colored box", episode.query)
    wanted = ImageColor.getrgb(named[1])[:3] if named else episode.picture("#query-color").centre
    boxes = [f"#area .color:nth-child({number})" for number in range(1, 5)]
    episode.click(min(boxes, key=lambda box: distance(episode.picture(box).centre, wanted)))


def select_the_shades(episode: Episode) -> None:
    (colour,) = episode.groups_of(r"all the shades of (\w+)")
    wanted = {"red": 0, "green": 120, "blue": 240}[colour]
    for number in range(1, 13):
        box = f"#area span:nth-child({number})"
        if abs((hue(episode.picture(box).centre) - wanted + 180) % 360 - 180) < 60:
            episode.click(box)
    episode.click("#submit")


_WARMTH = {"HOT": (0, 5), "WARM": (5, 10), "COLD": (10, 40), "ICE COLD": (40, 400)}
"""Range of distances in pixels for each word of the page."""


def find_the_hot_place(episode: Episode) -> None:
    """Hover over places that agree with all answers so far, until one is hot."""
    places = [(x, y) for y in range(5, 121, 2) for x in range(5, 150, 2)]
    while True:
        x, y = places[len(places) // 2]
        episode.run("hover", "--at", f"{x},{y}", "#touch-area")
        answer = episode.text("#display")
        if answer == "HOT":
            break
        low, high = _WARMTH[answer]
        places = [place for place in places if low - 2 <= math.dist(place, (x, y)) < high + 2 and place != (x, y)]
    episode.click_at(x, y, "#touch-area")


def _act_until_done(episode: Episode, *argv: str) -> None:
    """Run a command that may come when the page has just ended the episode."""
    outcome = episode.session.run(*argv)
    assert outcome.exit_code == 0 or episode.done, outcome.stderr


def follow_the_circle(episode: Episode) -> None:
    while not episode.done:
        x, y = point(episode, "#circ")
        _act_until_done(episode, "hover", "--at", f"{round(x)},{round(y)}", "#area_svg")


def click_the_moving_circles(episode: Episode) -> None:
    """Click circles near the left and the right edge, where they are slow. A click may miss by half a circle."""
    circle = "xpath=//*[name()='circle'][(@cx > -17 and @cx < 20) or (@cx > 140 and @cx < 177)]"
    while not episode.done:
        outcome = episode.session.run("get", "attr", "cx", circle, then=[("get", "attr", "cy", circle)])
        if outcome.exit_code == 0:
            x, y = (min(max(float(answer["value"]), 3), 157) for answer in outcome.data)
            _act_until_done(episode, "click", "--at", f"{round(x)},{round(y)}", "#area_svg")
