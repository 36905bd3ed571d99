"""Elements of a page: handles in the isolated world of their frame."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from browser_shell.browser.page.frames import Frame
from browser_shell.core.json_values import JsonValue

CallFunction: TypeAlias = Callable[..., Awaitable[JsonValue]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Element:
    """One element. Its object id belongs to the isolated world of its frame, which the page cannot observe."""

    frame: Frame
    object_id: str
    label: str
    """The selector as the caller wrote it, for answers and messages."""
    call_function: CallFunction

    async def call(self, function: str, *args: JsonValue | Element) -> JsonValue:
        """Call a function with the element as `this`, and return its result by value. Promises are awaited.

        Raises: ActFailed, BrowserUnavailable, DevToolsError when the document is gone.
        """
        return await self.call_function(self.frame, function, *args, this=self)

    async def act(self, function: str, *args: JsonValue | Element) -> JsonValue:
        """Call a function as `call` does, on behalf of the user (HTML: user activation).

        Without an activation, Chromium shows no `beforeunload` dialog when a page with unsaved changes is left.
        """
        return await self.call_function(self.frame, function, *args, this=self, by_user=True)
