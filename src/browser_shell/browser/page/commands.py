"""The table of commands: which part executes each one, and how its effect is verified."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import TypeAlias

from browser_shell.browser.page import pointer, waiting
from browser_shell.browser.page.page import Page
from browser_shell.core.calls import BrowserCommand
from browser_shell.core.json_values import JsonObject

PageCommand: TypeAlias = Callable[[Page, BrowserCommand], Awaitable[JsonObject]]


class Effect(Enum):
    """The effect of a command, which decides how long the answer waits for it."""

    NONE = "reads the page"
    VALUE = "changes a value, which the command reads back"
    CHANGE = "may change anything, so the answer waits for the first change"


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
        "screenshot": Entry(verified_by="the picture"),
        "pdf": Entry(verified_by="the document"),
        "snapshot": Entry(verified_by="the answer"),
        "get": Entry(verified_by="the answer"),
        "is": Entry(verified_by="the answer"),
        "fill": Entry(verified_by="nothing"),
        "type": Entry(verified_by="nothing"),
        "press": Entry(verified_by="nothing"),
        "select": Entry(verified_by="nothing"),
        "check": Entry(verified_by="nothing"),
        "uncheck": Entry(verified_by="nothing"),
        "focus": Entry(verified_by="nothing"),
        "scroll": Entry(verified_by="nothing"),
        "wait for the load": Entry(verified_by="the condition"),
        # The page: waits.
        "wait": Entry(run=waiting.wait, verified_by="the condition"),
        # The page: acts with the mouse.
        "click": Entry(
            run=pointer.click, effect=Effect.CHANGE, verified_by="click event of the element, seen by a first listener"
        ),
        "dblclick": Entry(
            run=pointer.dblclick,
            effect=Effect.CHANGE,
            verified_by="dblclick event of the element, seen by a first listener",
        ),
        "hover": Entry(run=pointer.hover, effect=Effect.CHANGE, verified_by=":hover of the element"),
        "drag": Entry(run=pointer.drag, effect=Effect.CHANGE, verified_by="position of both ends, and the change"),
    }
)
"""Commands that are executed in a page. `tab`, `dialog` and `close` concern the session and are not listed."""


def entry_of(plan: BrowserCommand) -> Entry:
    """Return the entry of a command that acts on a page."""
    waits_for_load = plan.name == "wait" and not {"url", "load"}.isdisjoint(plan.options)
    return COMMANDS["wait for the load" if waits_for_load else plan.name]
