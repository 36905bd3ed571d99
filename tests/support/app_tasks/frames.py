"""Tasks in Streamlit and Gradio inside a frame of another site, checked in the records that they write."""

from __future__ import annotations

from typing import Any

from support.applications import Applications
from support.scripted_agent import Step, Task, TaskBuilder, ref


def _portal(name: str) -> Step:
    return ("open", f"http://widgets.test/frame/{name}")


def _records(apps: Applications, application: str, **values: Any) -> list[Any]:
    """Return the records with these values."""
    return [record for record in apps.records(application) if values.items() <= record.items()]


def book_a_room(apps: Applications, run: str) -> Task:
    return Task(
        goal=f"In the frame, book a suite for {run}: 3 nights, two extras, floor 5, by invoice, on the quiet side.",
        calls=[
            [_portal("streamlit"), ("wait", "--text", "Remarks"), ("snapshot", "-i")],
            [
                ("fill", ref("textbox", "Guest"), run),
                ("press", "Tab"),
                ("click", ref("combobox", "Room")),
                ("click", "role=option name=Suite"),
                ("fill", ref("spinbutton", "Nights"), "3"),
                ("press", "Enter"),
                ("click", ref("combobox", "Extras")),
                ("click", "role=option name=Breakfast"),
                ("click", "role=option name=Sauna"),
                ("press", "Escape"),
            ],
            [("snapshot", "-i")],
            [
                ("focus", "role=slider name=Floor"),
                ("press", "ArrowRight"),
                ("press", "ArrowRight"),
                ("check", ref("radio", "Invoice")),
                ("check", ref("switch", "Quiet side")),
                ("fill", ref("textbox", "Remarks"), "near the lift\nplease"),
                ("press", "Control+Enter"),
                ("click", ref("button", "Book now")),
            ],
        ],
        actual=lambda: _records(apps, "streamlit", name=run),
        expected=[
            {
                "kind": "booking",
                "name": run,
                "room": "Suite",
                "nights": 3,
                "extras": ["Breakfast", "Sauna"],
                "arrival": "2026-01-01",
                "floor": 5,
                "payment": "Invoice",
                "smoking": False,
                "quiet": True,
                "remarks": "near the lift\nplease",
            }
        ],
    )


def order_a_meal(apps: Applications, run: str) -> Task:
    return Task(
        goal=f"In the frame, order a curry for {run}: bread and chips, spice 7, 4 people, delivered, with notes.",
        calls=[
            [_portal("gradio"), ("snapshot", "-i")],
            [
                ("fill", ref("textbox", "Name"), run),
                ("click", ref("combobox", "Dish")),
                ("click", "role=option name=Curry"),
                ("check", ref("checkbox", "Bread")),
                ("check", ref("checkbox", "Chips")),
                ("fill", ref("slider", "range slider for Spice"), "7"),
                ("fill", ref("spinbutton", "People"), "4"),
                ("check", ref("radio", "Deliver")),
                ("fill", ref("textbox", "Notes"), "ring twice\nthen wait"),
                ("click", ref("button", "Order")),
            ],
        ],
        actual=lambda: _records(apps, "gradio", name=run),
        expected=[
            {
                "kind": "order",
                "name": run,
                "dish": "Curry",
                "sides": ["Bread", "Chips"],
                "spice": 7,
                "people": 4,
                "delivery": "Deliver",
                "notes": "ring twice\nthen wait",
            }
        ],
    )


def rate_the_meal(apps: Applications, run: str) -> Task:
    return Task(
        goal="In the second tab of the frame, open the details, comment, choose two numbers of stars, and rate.",
        calls=[
            [_portal("gradio"), ("snapshot", "-i")],
            [("click", ref("tab", "Rating")), ("click", "role=button name=Details"), ("snapshot", "-i")],
            [
                ("fill", ref("textbox", "Comment"), run),
                ("click", ref("combobox", "Stars")),
                ("click", "role=option name=4"),
                ("click", "role=option name=5"),
                ("press", "Escape"),
                ("click", ref("button", "Rate")),
            ],
        ],
        actual=lambda: _records(apps, "gradio", text=run),
        expected=[{"kind": "rating", "stars": [4, 5], "text": run}],
    )


TASKS: tuple[TaskBuilder, ...] = (book_a_room, order_a_meal, rate_the_meal)
