"""Tasks with drag and drop and on canvases, checked in what the applications store."""

from __future__ import annotations

from typing import Any

from support.applications import Applications
from support.scripted_agent import Step, Task, TaskBuilder


def _card(name: str) -> str:
    return f"xpath=//li[normalize-space()='{name}']"


def _move_cards(apps: Applications, page: str) -> Task:
    return Task(
        goal="Move 'Mow lawn' to Doing, 'Bake bread', which is hidden by scrolling, to Done, and rank Alpha last.",
        calls=[
            [("open", apps.widgets.url(page)), ("snapshot", "-i")],
            [
                ("drag", _card("Mow lawn"), "#doing"),
                ("drag", _card("Bake bread"), "#done"),
                ("drag", "[title='Move Alpha']", "[title='Move Delta']"),
                ("get", "text", "#board"),
            ],
        ],
        actual=lambda: apps.widgets.last("board"),
        expected={
            "backlog": ["Paint fence", "Fix roof", "Buy milk", "Call Ann", "Sort mail", "Wash car"],
            "doing": ["Mow lawn"],
            "done": ["Bake bread"],
            "ranking": ["Beta", "Gamma", "Delta", "Alpha"],
        },
    )


def move_cards_by_drag_and_drop(apps: Applications, run: str) -> Task:
    return _move_cards(apps, f"kanban.html?{run}")


def move_cards_by_pointer(apps: Applications, run: str) -> Task:
    return _move_cards(apps, f"kanban.html?pointer&{run}")


def arrange_the_floor_plan(apps: Applications, run: str) -> Task:
    def plan() -> Any:
        shapes = apps.widgets.last("plan")
        return shapes and {
            name: [round(shape["x"] / 10) * 10, round(shape["y"] / 10) * 10, shape["fill"]]
            for name, shape in shapes.items()
        }

    box = "#stage"
    return Task(
        goal="Drag the table and the lamp to new places on the canvas, and paint the chair blue with a double click.",
        calls=[
            [("open", apps.widgets.url(f"konva.html?{run}")), ("screenshot",)],
            [
                ("click", "--at", "80,225", box),
                ("wait", "--text", "Chair"),
                ("drag", "--from", "90,160", "--to", "390,260"),
                ("drag", "--from", "90,440", "--to", "290,140"),
            ],
        ],
        actual=plan,
        expected={"Table": [340, 140, "brown"], "Chair": [40, 200, "orange"], "Lamp": [240, 20, "yellow"]},
    )


def draw_a_diagram(apps: Applications, run: str) -> Task:
    def scene() -> Any:
        return [
            [element["type"], element["text"] if element["type"] == "text" else ""]
            for element in apps.widgets.last("scene") or []
        ]

    return Task(
        goal="Draw a rectangle and an ellipse on the canvas, and write a text below them.",
        calls=[
            [("open", apps.widgets.url(f"excalidraw.html?{run}")), ("snapshot", "-i")],
            [
                ("check", "role=radio name=Rectangle"),
                ("drag", "--from", "300,200", "--to", "420,280"),
                ("check", "role=radio name=Ellipse"),
                ("drag", "--from", "500,200", "--to", "620,280"),
                ("check", "role=radio name=Text"),
                ("click", "--at", "400,380"),
                ("type", "textarea.excalidraw-wysiwyg", f"Plan {run}"),
                ("press", "Escape"),
            ],
        ],
        actual=scene,
        expected=[["rectangle", ""], ["ellipse", ""], ["text", f"Plan {run}"]],
    )


def _flows(apps: Applications) -> list[Any]:
    flows: list[Any] = apps.fetch("node_red", "/flows")
    return flows


def wire_a_flow(apps: Applications, run: str) -> Task:
    def nodes() -> Any:
        found = {node["type"]: node for node in _flows(apps) if node["type"] in ("inject", "debug")}
        if set(found) != {"inject", "debug"}:
            return sorted(found)
        return [found["inject"]["name"], found["inject"]["wires"] == [[found["debug"]["id"]]]]

    palette: list[Step] = [
        ("drag", ".red-ui-palette-node[data-palette-type=inject]", "#red-ui-workspace-chart"),
    ]
    return Task(
        goal="Drag an inject and a debug node into the flow, name the first, wire them and deploy.",
        calls=[[("open", apps.url("node_red")), ("wait", ".red-ui-palette-node"), ("snapshot", "-i")], palette],
        actual=nodes,
        expected=[run, True],
    )


TASKS: tuple[TaskBuilder, ...] = (
    move_cards_by_drag_and_drop,
    move_cards_by_pointer,
    arrange_the_floor_plan,
    draw_a_diagram,
)
