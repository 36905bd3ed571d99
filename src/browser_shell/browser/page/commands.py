"""The table of commands: which part executes each one, and how its effect is verified."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import TypeAlias

from browser_shell.browser.page import (
    choices,
    fields,
    find,
    keyboard,
    looks,
    pictures,
    pointer,
    reading,
    scrolling,
    waiting,
)
from browser_shell.browser.page.page import Page
from browser_shell.core.calls import BrowserCommand
from browser_shell.core.json_values import JsonObject

PageCommand: TypeAlias = Callable[[Page, BrowserCommand], Awaitable[JsonObject]]


class Effect(Enum):
    """The effect of a command. It decides how long the server waits before it answers."""

    NONE = "reads the page"
    VALUE = "changes a value, which the command reads back"
    CHANGE = "may change anything, so the server waits for the first change"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """How one command is executed and verified."""

    run: PageCommand | None = None
    """The page function of the command; None when the driver executes it."""
    effect: Effect = Effect.NONE
    verified_by: str


COMMANDS: MappingProxyType[str, Entry] = MappingProxyType(
    {
        # The driver: navigation and documents.
        "open": Entry(verified_by="URL and title of the new document"),
        "back": Entry(verified_by="URL of the document"),
        "forward": Entry(verified_by="URL of the document"),
        "reload": Entry(verified_by="URL of the document"),
        "pdf": Entry(verified_by="the document"),
        "wait for the load": Entry(verified_by="the condition"),
        # The page: waits.
        "wait": Entry(run=waiting.wait, verified_by="the condition"),
        # The page: looks.
        "snapshot": Entry(run=looks.snapshot, verified_by="the answer"),
        "screenshot": Entry(run=pictures.screenshot, verified_by="the picture"),
        "find": Entry(run=find.find, verified_by="the answer"),
        # The page: acts with the mouse.
        "click": Entry(
            run=pointer.click,
            effect=Effect.CHANGE,
            verified_by="click event of the element, seen by a listener that runs before those of the page",
        ),
        "dblclick": Entry(
            run=pointer.dblclick,
            effect=Effect.CHANGE,
            verified_by="dblclick event of the element, seen by a listener that runs before those of the page",
        ),
        "hover": Entry(run=pointer.hover, effect=Effect.CHANGE, verified_by=":hover of the element"),
        "drag": Entry(run=pointer.drag, effect=Effect.CHANGE, verified_by="position of both ends, and the change"),
        # The page: fields and keys.
        "fill": Entry(run=fields.fill, effect=Effect.VALUE, verified_by="value of the field"),
        "type": Entry(run=fields.type_, effect=Effect.VALUE, verified_by="value of the field"),
        "focus": Entry(run=fields.focus, effect=Effect.VALUE, verified_by="focused element"),
        "select-text": Entry(run=fields.select_text, effect=Effect.VALUE, verified_by="selected text"),
        "check": Entry(run=choices.check, effect=Effect.VALUE, verified_by="state of the check box"),
        "uncheck": Entry(run=choices.uncheck, effect=Effect.VALUE, verified_by="state of the check box"),
        "select": Entry(run=choices.select, effect=Effect.VALUE, verified_by="selected options"),
        "press": Entry(run=keyboard.press, effect=Effect.CHANGE, verified_by="the change"),
        "scroll": Entry(run=scrolling.scroll, effect=Effect.VALUE, verified_by="scroll position"),
        # The page: reading.
        "get": Entry(run=reading.get, verified_by="the answer"),
        "is": Entry(run=reading.is_, verified_by="the answer"),
    }
)
"""Commands that act on a page or read it. `tab`, `dialog` and `close` concern the session and are not listed."""


def entry_of(plan: BrowserCommand) -> Entry:
    """Return the entry of a command that acts on a page."""
    if plan.name == "wait" and not {"url", "load"}.isdisjoint(plan.options):
        return COMMANDS["wait for the load"]
    return COMMANDS[plan.name]
