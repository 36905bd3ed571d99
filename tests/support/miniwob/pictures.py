"""Screenshots: colours, counted sides and drawn cells."""

from __future__ import annotations

import cmath
import colorsys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO

from PIL import Image

Colour = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Picture:
    """A decoded screenshot."""

    image: Image.Image

    @classmethod
    def decode(cls, data: bytes) -> Picture:
        return cls(Image.open(BytesIO(data)).convert("RGB"))

    def pixel(self, x: float, y: float) -> Colour:
        red, green, blue = self.image.getpixel((int(x), int(y)))  # type: ignore[misc] # An RGB image has tuples.
        return red, green, blue

    @property
    def centre(self) -> Colour:
        return self.pixel(self.image.width / 2, self.image.height / 2)

    def brightness(self, x: float, y: float) -> float:
        """Return 0 for black, 255 for white."""
        return sum(self.pixel(x, y)) / 3

    def points(self, low: float, high: float) -> Iterator[tuple[int, int]]:
        """Find the pixels in a range of brightness."""
        for y in range(self.image.height):
            for x in range(self.image.width):
                if low <= self.brightness(x, y) < high:
                    yield x, y


def distance(one: Colour, two: Colour) -> int:
    """Return how different two colours are."""
    return sum(abs(a - b) for a, b in zip(one, two, strict=True))


def hue(colour: Colour) -> float:
    """Return the hue in degrees: 0 is red, 120 is green, 240 is blue."""
    return colorsys.rgb_to_hsv(*(part / 255 for part in colour))[0] * 360


def sides_of_polygon(picture: Picture) -> int:
    """Count the sides of the outline of a regular polygon with 3 to 7 sides.

    The distance of the outline from its centre, as a function of the angle, repeats once per side.
    """
    points = list(picture.points(0, 128))
    centre = complex(sum(x for x, _ in points) / len(points), sum(y for _, y in points) / len(points))
    outline = [complex(x, y) - centre for x, y in points]

    def strength(sides: int) -> float:
        return abs(sum(abs(point) * cmath.exp(1j * sides * cmath.phase(point)) for point in outline))

    return max(range(3, 8), key=strength)


def grid_of_cells(picture: Picture, columns: int, rows: int) -> list[list[bool]]:
    """Return which cells of a grid are white. Its background is nearly black, and the other cells are grey."""
    left, top, right, bottom = _bounds(picture.points(0, 60))
    cells = ((x, y) for x, y in picture.points(60, 256) if left < x < right and top < y < bottom)
    left, top, right, bottom = _bounds(cells)
    width, height = (right + 1 - left) / columns, (bottom + 1 - top) / rows
    return [
        [
            picture.brightness(left + (column + 0.5) * width, top + (row + 0.5) * height) > 200
            for column in range(columns)
        ]
        for row in range(rows)
    ]


def _bounds(points: Iterable[tuple[int, int]]) -> tuple[int, int, int, int]:
    """Return the least and the greatest coordinates: left, top, right, bottom."""
    xs, ys = zip(*points, strict=True)
    return min(xs), min(ys), max(xs), max(ys)
