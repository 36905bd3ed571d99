"""Tasks of arithmetic, counting and comparing."""

from __future__ import annotations

import re

from support.miniwob.episodes import Episode
from support.miniwob.pictures import sides_of_polygon


def calculate(episode: Episode) -> None:
    one, sign, two = re.findall(r"(\d+) ([-+x]) (\d+)", episode.text("#math-problem"))[0]
    left, right = int(one), int(two)
    episode.fill("#math-answer", {"+": left + right, "-": left - right, "x": left * right}[sign])
    episode.submit()


def solve_for_x(episode: Episode) -> None:
    left, sign, right, total = re.findall(r"(\w+) ([-+]) (\w+) = (\d+)", episode.text("#math-problem"))[0]
    if sign == "+":
        answer = int(total) - int(right if left == "x" else left)
    else:
        answer = int(total) + int(right) if left == "x" else int(left) - int(total)
    episode.fill("#math-answer", answer)
    episode.submit()


def count_the_blocks(episode: Episode) -> None:
    episode.fill("#math-answer", episode.count(".addition-block"))
    episode.submit()


def count_the_sides(episode: Episode) -> None:
    episode.click_named("button", str(sides_of_polygon(episode.picture("#c"))))


def guess_the_number(episode: Episode) -> None:
    low, high = 0, 9
    while not episode.done:
        guess = (low + high) // 2
        episode.fill("#tt", guess)
        episode.submit()
        if episode.visible("#higher"):
            low = guess + 1
        elif episode.visible("#lower"):
            high = guess - 1


def find_the_greatest_card(episode: Episode) -> None:
    cards = [f"#cardholder .card:nth-child({number})" for number in (1, 2, 3)]

    def turn(card: str) -> int:
        episode.click(card)
        return int(episode.text(card))

    values = {turn(card): card for card in cards}
    episode.click(values[max(values)])
    episode.click("#submit")


def generate_a_number(episode: Episode) -> None:
    def fits() -> bool:
        text = episode.text("#display-number")
        if not text.isdigit():
            return False
        number = int(text)
        limit = re.search(r"(less|greater) than (\d+)", episode.query)
        if limit:
            return number < int(limit[2]) if limit[1] == "less" else number > int(limit[2])
        return number % 2 == (1 if "odd" in episode.query else 0)

    episode.until(fits, lambda: episode.click("#generate"))
    episode.click("#submit")
