"""Tasks with web components (Shoelace), React (Material UI) and Vue (NiceGUI), checked in what their pages store."""

from __future__ import annotations

import json
from typing import Any

from support.applications import Applications
from support.scripted_agent import Task, TaskBuilder, ref


def _last(apps: Applications, name: str, key: str, value: str) -> Any:
    """Return the last stored value of this name in which the key has the value."""
    return next((entry for entry in reversed(apps.widgets.stored.get(name, [])) if entry.get(key) == value), None)


def register_a_guest(apps: Applications, run: str) -> Task:
    return Task(
        goal=f"Register {run} with every field of the form, the folded one included.",
        calls=[
            [("open", apps.widgets.url("shoelace.html")), ("snapshot", "-i")],
            [
                ("fill", "role=textbox name=Name", run),
                ("fill", ref("textbox", "Email"), f"{run}@example.com"),
                ("fill", ref("textbox", "Passphrase"), "open sesame"),
                ("fill", ref("date", "Arrival"), "2026-05-14"),
                ("click", ref("combobox", "Country")),
                ("click", "role=option name=France"),
                ("click", ref("combobox", "Languages")),
                ("click", "role=option name=Dutch"),
                ("click", "role=option name=Polish"),
                ("press", "Escape"),
                ("check", ref("radio", "Vegan")),
                ("fill", ref("slider", "Seats"), "4"),
            ],
            [
                ("focus", ref("slider", "Rating")),
                ("press", "ArrowRight"),
                ("press", "ArrowRight"),
                ("fill", ref("textbox", "Remarks"), "two\nlines"),
                ("check", ref("checkbox", "I accept the terms")),
                ("check", ref("switch", "Newsletter")),
                ("click", ref("button", "More")),
                ("fill", "role=textbox name=VAT number", "FR123"),
                ("click", ref("button", "Register")),
                ("wait", "--text", "Stored"),
            ],
        ],
        actual=lambda: _last(apps, "registration", "name", run),
        expected={
            "name": run,
            "email": f"{run}@example.com",
            "secret": "open sesame",
            "arrival": "2026-05-14",
            "country": "fr",
            "languages": ["nl", "pl"],
            "meal": "vegan",
            "seats": "4",
            "rating": 2,
            "remarks": "two\nlines",
            "terms": "yes",
            "news": "yes",
            "vat": "FR123",
        },
    )


def move_an_order_to_the_archive(apps: Applications, run: str) -> Task:
    return Task(
        goal="In the tab Orders choose 'Move to, Archive' from the menu and confirm it with a reason.",
        calls=[
            [("open", apps.widgets.url("shoelace.html")), ("click", "role=tab name=Orders"), ("snapshot", "-i")],
            [
                ("click", ref("button", "Actions")),
                ("hover", "role=menuitem name=Move to"),
                ("click", "role=menuitem name=Archive"),
            ],
            [("snapshot", "-i", "--delta")],
            [
                ("fill", ref("textbox", "Reason"), run),
                ("click", ref("button", "Confirm")),
                ("wait", "--text", "Stored"),
            ],
        ],
        actual=lambda: _last(apps, "action", "reason", run),
        expected={"action": "archive", "reason": run},
    )


def save_a_trip(apps: Applications, run: str) -> Task:
    return Task(
        goal=f"Save a first-class trip to Budapest for {run}: stops, seats, date, budget, insurance and rating.",
        calls=[
            [("open", apps.widgets.url("mui.html")), ("snapshot", "-i")],
            [
                ("fill", ref("textbox", "Traveller"), run),
                ("fill", ref("combobox", "City"), "buda"),
                ("click", "role=option name=Budapest"),
                ("click", ref("combobox", "Stops")),
                ("click", "role=option name=Bern"),
                ("click", ref("combobox", "Stops")),
                ("click", "role=option name=Dublin"),
                ("click", ref("combobox", "Class")),
                ("click", "role=option name=First class"),
                ("fill", ref("spinbutton", "Seats"), "3"),
            ],
            [
                ("click", ref("button", "Choose date, selected date is Mar 1, 2026")),
                ("click", "role=button name=Next month"),
                ("click", "role=button name=Next month"),
                ("click", "role=button name=Next month"),
                ("wait", "--text", "June 2026"),
                ("click", "role=gridcell name=24"),
                ("fill", ref("slider", "Budget"), "350"),
                ("check", ref("checkbox", "Insured")),
                ("check", ref("radio", "4 Stars")),
                ("click", ref("button", "Save trip")),
                ("wait", "--text", "Trip saved"),
            ],
        ],
        actual=lambda: _last(apps, "trip", "traveller", run),
        expected={
            "traveller": run,
            "city": "Budapest",
            "stops": ["Bern", "Dublin"],
            "class": "first",
            "seats": 3,
            "budget": 350,
            "insured": True,
            "rating": 4,
            "date": "2026-06-24",
        },
    )


def edit_and_delete_people(apps: Applications, run: str) -> Task:
    def people() -> list[Any]:
        return apps.widgets.last("people") or []

    apps.widgets.forget("people")
    return Task(
        goal="In the grid rename person 3, delete persons 5 and 7, and confirm.",
        calls=[
            [("open", apps.widgets.url("mui.html")), ("click", "role=tab name=People"), ("snapshot", "-i")],
            [
                ("dblclick", "[data-id='3'] [data-field=name]"),
                ("fill", "[data-id='3'] [data-field=name] input", run),
                ("press", "Enter"),
                ("check", "[data-id='5'] input[type=checkbox]"),
                ("check", "[data-id='7'] input[type=checkbox]"),
                ("click", "role=button name=Delete selected"),
                ("snapshot", "-i", "--delta"),
            ],
            [("click", ref("button", "Delete"))],
        ],
        actual=lambda: [len(people()), *[person["name"] for person in people()[:6]]],
        expected=[198, "Person 1", "Person 2", run, "Person 4", "Person 6", "Person 8"],
    )


def set_preferences(apps: Applications, run: str) -> Task:
    return Task(
        goal="Choose the dark theme from the menu, align right, switch alerts on and enter a phone number.",
        calls=[
            [("open", apps.widgets.url("mui.html")), ("click", "role=tab name=Preferences"), ("snapshot", "-i")],
            [
                ("click", ref("button", "Theme: light")),
                ("click", "role=menuitem name=dark"),
                ("click", ref("button", "Right")),
                ("check", "role=switch name=Alerts"),
                ("click", ref("button", "Contact")),
                ("fill", "role=textbox name=Phone", run),
            ],
        ],
        actual=lambda: _last(apps, "preferences", "phone", run),
        expected={"theme": "dark", "align": "right", "alerts": True, "phone": run},
    )


def add_and_delete_tasks(apps: Applications, run: str) -> Task:
    def added(title: str, owner: str) -> list[list[tuple[Any, ...]]]:
        return [
            [("click", ref("button", "New task")), ("wait", ".q-dialog"), ("snapshot", "-i")],
            [
                ("fill", ref("combobox", "Title"), title),
                ("click", ref("combobox", "Owner")),
                ("click", f"role=option name={owner}"),
                ("fill", ref("textbox", "Due"), "2026-05-14"),
                ("check", ref("switch", "Urgent")),
                ("click", ref("button", "Add")),
                ("wait", "--text", f"{title} ({owner})"),
            ],
        ]

    path = apps.folder / "nicegui.jsonl"
    return Task(
        goal="Add two tasks by the dialog, then delete the first.",
        calls=[
            [("open", apps.url("nicegui")), ("snapshot", "-i")],
            *added(f"Alpha {run}", "Bob"),
            *added(f"Beta {run}", "Cid"),
            [("click", f"role=button name=Delete Alpha {run}"), ("snapshot", "-i", "--delta")],
        ],
        actual=lambda: json.loads(path.read_text()) if path.exists() else None,
        expected=[{"title": f"Beta {run}", "owner": "Cid", "due": "2026-05-14", "effort": 1, "urgent": True}],
    )


TASKS: tuple[TaskBuilder, ...] = (
    register_a_guest,
    move_an_order_to_the_archive,
    save_a_trip,
    edit_and_delete_people,
    set_preferences,
    add_and_delete_tasks,
)
