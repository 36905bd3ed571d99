"""Tasks in the rich text editors TinyMCE and CKEditor, checked in the HTML that they save."""

from __future__ import annotations

import re

from support.applications import Applications
from support.scripted_agent import Task, TaskBuilder, ref


def _letter(apps: Applications, subject: str) -> str | None:
    letters = [letter["body"] for letter in apps.widgets.stored.get("letter", []) if letter["subject"] == subject]
    return re.sub(r"\s*\n\s*", "", letters[-1]) if letters else None


def write_a_letter(apps: Applications, run: str) -> Task:
    return Task(
        goal="Replace the letter by two paragraphs and a list of two items; one word is bold.",
        calls=[
            [("open", apps.widgets.url("tinymce.html")), ("snapshot", "-i")],
            [
                ("fill", ref("textbox", "Subject"), run),
                ("fill", "role=textbox name=Rich Text Area", f"Hello {run}"),
                ("select-text", "role=textbox name=Rich Text Area", "Hello"),
                ("click", ref("button", "Bold")),
                ("type", "role=textbox name=Rich Text Area", "\nBuy:\n"),
                ("click", ref("button", "Bullet list")),
                ("type", "role=textbox name=Rich Text Area", "apples\npears"),
                ("click", ref("button", "Save letter")),
                ("wait", "--text", "Saved"),
            ],
        ],
        actual=lambda: _letter(apps, run),
        expected=f"<p><strong>Hello</strong> {run}</p><p>Buy:</p><ul><li>apples</li><li>pears</li></ul>",
    )


def insert_a_link_and_replace(apps: Applications, run: str) -> Task:
    return Task(
        goal="Link the word 'reader' to an address by the dialog, and replace 'old' by 'new' with find and replace.",
        calls=[
            [("open", apps.widgets.url("tinymce.html")), ("snapshot", "-i")],
            [
                ("fill", ref("textbox", "Subject"), run),
                ("select-text", "role=textbox name=Rich Text Area", "reader"),
                ("click", ref("button", "Insert/edit link")),
                ("snapshot", "-i", "--delta"),
            ],
            [("fill", ref("combobox", "URL"), f"https://example.com/{run}"), ("click", ref("button", "Save"))],
            [("click", ref("button", "Find and replace")), ("snapshot", "-i", "--delta")],
            [
                ("fill", ref("textbox", "Find"), "old"),
                ("fill", ref("textbox", "Replace with"), "new"),
                ("click", ref("button", "Find")),
                ("click", ref("button", "Replace all")),
                ("click", ref("button", "Close")),
                ("click", ref("button", "Save letter")),
            ],
        ],
        actual=lambda: _letter(apps, run),
        expected=f'<p>Dear <a href="https://example.com/{run}">reader</a>,</p><p>new text</p>',
    )


def edit_an_article(apps: Applications, run: str) -> Task:
    return Task(
        goal="Turn the first paragraph into a heading, put the second into italics, and append a paragraph.",
        calls=[
            [("open", apps.widgets.url("ckeditor.html")), ("snapshot", "-i")],
            [
                ("select-text", ".ck-content", "First paragraph."),
                ("click", ref("button", "Paragraph, Heading")),
                ("click", "role=menuitemradio name=Heading 1"),
                ("select-text", ".ck-content", "Second"),
                ("click", ref("button", "Italic")),
                ("type", ".ck-content", f"\nEnd {run}"),
                ("click", ref("button", "Save article")),
            ],
        ],
        actual=lambda: apps.widgets.last("article"),
        expected=f"<h2>First paragraph.</h2><p><i>Second</i> paragraph.</p><p>End {run}</p>",
    )


TASKS: tuple[TaskBuilder, ...] = (write_a_letter, insert_a_link_and_replace, edit_an_article)
