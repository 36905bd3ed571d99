"""Tasks with drag and drop and on canvases, checked in what the applications store."""

from __future__ import annotations

from typing import Any

from support.applications import Applications
from support.scripted_agent import Task, TaskBuilder


def _card(name: str) -> str:
    return f"xpath=//li[normalize-space()='{name}']"


def _move_cards(apps: Applications, page: str) -> Task:
    apps.widgets.forget("board")
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

    apps.widgets.forget("plan")
    return Task(
        goal="Select the chair on the canvas, then drag the table and the lamp to new places.",
        calls=[
            [("open", apps.widgets.url(f"konva.html?{run}")), ("screenshot",)],
            [
                ("click", "--at", "80,225", "#stage"),
                ("wait", "--text", "Chair"),
                ("drag", "--from", "89,146", "--to", "389,246"),
                ("drag", "--from", "89,426", "--to", "289,126"),
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

    apps.widgets.forget("scene")
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

    return Task(
        goal="Drag an inject and a debug node into the flow, wire them, name the first, and deploy.",
        calls=[
            [("open", apps.url("node_red")), ("wait", ".red-ui-palette-node"), ("screenshot",)],
            [
                ("drag", "--from", "98,154", "--to", "350,200"),
                ("drag", "--from", "66,194", "--to", "650,300"),
                ("drag", ".red-ui-flow-port-output .red-ui-flow-port", ".red-ui-flow-port-input .red-ui-flow-port"),
                ("dblclick", ".red-ui-flow-node-group[transform]"),
                ("wait", "#node-input-name"),
                ("fill", "#node-input-name", run),
                ("click", "role=button name=Done"),
                ("click", "#red-ui-header-button-deploy"),
                ("wait", "--text", "Successfully deployed"),
            ],
        ],
        actual=nodes,
        expected=[run, True],
    )


TASKS: tuple[TaskBuilder, ...] = (
    move_cards_by_drag_and_drop,
    move_cards_by_pointer,
    arrange_the_floor_plan,
    draw_a_diagram,
    wire_a_flow,
)
