"""A task list in NiceGUI (Quasar). Every change rewrites the file of APP_RECORDS."""

import json
import os
import pathlib

from nicegui import ui

records = pathlib.Path(os.environ["APP_RECORDS"])


@ui.page("/")
def index():
    tasks = []

    def store():
        records.write_text(json.dumps(tasks), encoding="utf-8")

    def remove(entry):
        tasks.remove(entry)
        store()
        show.refresh()

    def add():
        tasks.append(
            {
                "title": title.value,
                "owner": owner.value,
                "due": due.value,
                "effort": effort.value,
                "urgent": urgent.value,
            }
        )
        store()
        dialog.close()
        show.refresh()
        ui.notify("Task added")

    @ui.refreshable
    def show():
        for entry in tasks:
            with ui.row().classes("items-center"):
                ui.label(f"{entry['title']} ({entry['owner']})")
                ui.button(icon="delete", on_click=lambda entry=entry: remove(entry)).props(
                    f'aria-label="Delete {entry["title"]}"'
                )

    with ui.dialog() as dialog, ui.card():
        title = ui.input("Title")
        owner = ui.select(["Ann", "Bob", "Cid"], label="Owner")
        due = ui.date_input("Due") if hasattr(ui, "date_input") else ui.input("Due")
        effort = ui.slider(min=0, max=10, value=1)
        urgent = ui.switch("Urgent")
        ui.button("Add", on_click=add)
    ui.label("Tasks").classes("text-h4")
    ui.button("New task", on_click=dialog.open)
    show()


ui.run(host="127.0.0.1", port=int(os.environ["APP_PORT"]), show=False, reload=False, title="Tasks")
