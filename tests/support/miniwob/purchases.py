"""Tasks of tickets, flights, food and stocks."""

from __future__ import annotations

import re
import time

from support.miniwob.dates import pick_date
from support.miniwob.episodes import Episode


def _minutes(duration: str) -> int:
    hours, minutes = re.findall(r"(\d+)h (\d+)m", duration)[0]
    return int(hours) * 60 + int(minutes)


def buy_the_ticket(episode: Episode) -> None:
    tickets = re.findall(r"(\d+h \d+m)\s+Book for \$(\d+)", episode.text("#area"))
    values = [int(price) if "cost" in episode.query else _minutes(duration) for duration, price in tickets]
    best = min(values) if re.search("cheapest|shortest", episode.query) else max(values)
    episode.click(f"xpath=(//button)[{values.index(best) + 1}]")


def _choose_airport(episode: Episode, field: str, suggestions: str, place: str) -> None:
    episode.run("type", field, place)
    episode.run("wait", f"{suggestions} li")
    offered = episode.text(suggestions).split("\n")
    item = next(item for item in offered if f"({place})" in item or item.startswith(f"{place} ("))
    episode.click(f"xpath=//li[contains(@class, 'ui-menu-item')][. = '{item}']")
    episode.run("wait", suggestions, "--state", "hidden")


def book_the_flight(episode: Episode) -> None:
    best, origin, destination = episode.groups_of(r"Book the (\w+) one-way flight from: (.+) to: (.+) on")
    _choose_airport(episode, "#flight-from", "#ui-id-1", origin)
    _choose_airport(episode, "#flight-to", "#ui-id-2", destination)
    pick_date(episode)
    episode.click("#search")
    episode.run("wait", ".flight-price")
    flights = re.findall(r"(\d+h \d+m)\s+Book flight for \$(\d+)", episode.text("#results"))
    values = [int(price) if best == "cheapest" else _minutes(duration) for duration, price in flights]
    episode.click(f"xpath=(//button[@class='flight-price'])[{values.index(min(values)) + 1}]")


def _add_food(episode: Episode, condition: str) -> None:
    episode.click(f"xpath=//div[contains(@class, 'food-item')][{condition}]//span[@class='add']")


def order_the_food(episode: Episode) -> None:
    by_kind = re.search(r"Order (\d+) items that are (\S+)", episode.query)
    if by_kind:
        for _ in range(int(by_kind[1])):
            _add_food(episode, f".//img[@alt='{by_kind[2]}']")
    else:
        (names,) = episode.groups_of(r"Order one of each item: (.+)")
        for name in names.split(","):
            _add_food(episode, f".//div[@class='item-name'][normalize-space(.)='{name.strip()}']")
    episode.click_named("button", "Order!")


def buy_the_stock(episode: Episode) -> None:
    """Buy below the threshold. The price may rise by 1.50 in each tenth of a second before the click."""
    threshold = float(episode.groups_of(r"less than \$([\d.]+)\.$")[0])
    started_at = time.monotonic()

    def is_low() -> bool:
        margin = max(0, 5 - 0.7 * (time.monotonic() - started_at))
        price = episode.text("#stock-price").removeprefix("$")
        return price != "" and float(price) <= threshold - margin

    episode.until(is_low, lambda: None, at_most=2_000)
    episode.click("#buy")
