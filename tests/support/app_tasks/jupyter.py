"""Tasks in JupyterLab, checked in its files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.applications import Applications
from support.scripted_agent import Step, Task, TaskBuilder, ref


def _cells(path: Path) -> list[Any]:
    """Return type, source and text output of each cell that is not empty."""
    if not path.exists():
        return []
    return [
        [
            cell["cell_type"],
            "".join(cell["source"]),
            "".join("".join(part.get("text", "")) for part in cell.get("outputs", [])),
        ]
        for cell in json.loads(path.read_text())["cells"]
        if cell["source"]
    ]


def _open_lab(apps: Applications, path: str = "/lab?reset") -> list[Step]:
    return [("open", apps.url("jupyter", path)), ("wait", ".jp-DirListing-content"), ("snapshot", "-i")]


def run_a_new_notebook(apps: Applications, run: str) -> Task:
    return Task(
        goal="Create a notebook from the launcher, run two cells in it, and save it under a new name.",
        calls=[
            [*_open_lab(apps), ("wait", ".jp-LauncherCard")],
            [
                ("click", ".jp-LauncherCard[data-category=Notebook]"),
                ("wait", ".jp-Notebook .cm-content"),
                ("wait", "--text", "Idle"),
                ("snapshot", "-i", "--delta"),
            ],
            [
                ("click", ".jp-Notebook .jp-Cell:nth-of-type(1) .cm-content"),
                ("type", ".jp-Notebook .jp-mod-active .cm-content", "total = sum(range(10))"),
                ("press", "Shift+Enter"),
                ("type", ".jp-Notebook .jp-mod-active .cm-content", "print('total is', total)"),
                ("press", "Shift+Enter"),
                ("wait", "--text", "total is 45"),
            ],
            [
                ("press", "Control+s"),
                ("wait", ".jp-Dialog input"),
                ("fill", ".jp-Dialog input", f"{run}.ipynb"),
                ("click", "role=button name=Rename"),
            ],
            [("wait", ".jp-Dialog", "--state", "hidden"), ("press", "Control+s")],
        ],
        actual=lambda: _cells(apps.notebooks / f"{run}.ipynb"),
        expected=[["code", "total = sum(range(10))", ""], ["code", "print('total is', total)", "total is 45\n"]],
    )


def edit_a_text_file(apps: Applications, run: str) -> Task:
    file = apps.notebooks / f"notes-{run}.txt"
    file.write_text("first line\nsecond line\nthird line\n")
    return Task(
        goal="Open a text file from the file browser, replace a word, append a line, and save it from the menu.",
        calls=[
            _open_lab(apps),
            [
                ("dblclick", f"xpath=//li[contains(@class, 'jp-DirListing-item')][contains(., '{file.name}')]"),
                ("wait", ".jp-FileEditor .cm-content"),
            ],
            [
                ("select-text", ".jp-FileEditor .cm-content", "second"),
                ("press", "2"),
                ("press", "n"),
                ("press", "d"),
                ("type", ".jp-FileEditor .cm-content", "fourth line"),
                ("snapshot", "-i"),
            ],
            [("click", ref("menuitem", "File")), ("wait", ".lm-Menu"), ("snapshot", "-i", "--delta")],
            [("click", ref("menuitem", "Save Text Ctrl+S")), ("wait", ".lm-Menu", "--state", "hidden")],
        ],
        actual=file.read_text,
        expected="first line\n2nd line\nthird line\nfourth line",
    )


def write_markdown_and_change_the_order(apps: Applications, run: str) -> Task:
    path = apps.notebooks / f"{run}-report.ipynb"
    cell: dict[str, Any] = {"cell_type": "code", "metadata": {}, "execution_count": None, "outputs": []}
    cells = [{**cell, "id": f"c{number}", "source": f"print({number})"} for number in (1, 2)]
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    return Task(
        goal="In an existing notebook, add a markdown title at the top, move the last cell up, run all cells and save.",
        calls=[
            [
                ("open", apps.url("jupyter", f"/lab/tree/{path.name}?reset")),
                ("wait", ".jp-Notebook .cm-content"),
                ("snapshot", "-i"),
            ],
            [
                ("click", "role=button name=Select"),
            ],
            [
                ("click", ".jp-Notebook .jp-Cell .jp-InputPrompt"),
                ("press", "a"),
                ("press", "m"),
                ("press", "Enter"),
                ("type", ".jp-Notebook .jp-mod-active .cm-content", "# Report"),
                ("press", "Shift+Enter"),
                ("snapshot", "-i", "--delta"),
            ],
        ],
        actual=lambda: _cells(path),
        expected=[["markdown", "# Report", ""], ["code", "print(2)", "2\n"], ["code", "print(1)", "1\n"]],
    )


TASKS: tuple[TaskBuilder, ...] = (run_a_new_notebook, edit_a_text_file)
