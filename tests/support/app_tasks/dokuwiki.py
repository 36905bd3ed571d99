"""Tasks in DokuWiki, checked in its page files."""

from __future__ import annotations

from support.applications import PASSWORD, USER, Applications
from support.scripted_agent import Step, Task, TaskBuilder, ref


def _sign_in(apps: Applications, page: str) -> list[list[Step]]:
    return [
        [("open", apps.url("dokuwiki", f"/doku.php?id={page}&do=login")), ("snapshot", "-i")],
        [
            ("fill", ref("textbox", "Username"), USER),
            ("fill", ref("textbox", "Password"), PASSWORD),
            ("click", ref("button", "Log In")),
            ("snapshot", "-i"),
        ],
    ]


def write_a_page(apps: Applications, run: str) -> Task:
    page = apps.wiki / f"{run}.txt"
    return Task(
        goal="Write a new wiki page, preview it, and save it with a summary.",
        calls=[
            *_sign_in(apps, run),
            [("click", ref("link", "Create this page [e]")), ("snapshot", "-i")],
            [
                ("fill", "#wiki__text", f"====== {run} ======\n\nSome important words.\n"),
                ("select-text", "#wiki__text", "important"),
                ("click", "role=button name=Bold Text"),
                ("click", "role=button name=Preview"),
                ("fill", "#edit__summary", "first version"),
                ("click", "role=button name=Save"),
                ("get", "text", "#dokuwiki__content"),
            ],
        ],
        actual=lambda: page.read_text() if page.exists() else None,
        expected=f"====== {run} ======\n\nSome **important** words.\n",
    )


TASKS: tuple[TaskBuilder, ...] = (write_a_page,)
