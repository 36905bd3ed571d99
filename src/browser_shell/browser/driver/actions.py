"""Requests to agent-browser's daemon, and their construction from plans.

Each kind of request is a dataclass with a closed set of fields, so client text can only ever be a value. The daemon
itself accepts more keys: a `launch` with `initScripts` runs a local file. No class here has such a field.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Literal, TypeAlias

from browser_shell.core.calls import BrowserCommand
from browser_shell.core.json_values import JsonObject

PageActionName: TypeAlias = Literal["back", "forward", "reload", "url"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One request. Every subclass has a field `action`."""

    def encode(self, request_id: str) -> bytes:
        """Encode the request as one line of JSON, with names in camel case and without fields that are None."""
        request: JsonObject = {"id": request_id}
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None:
                first, *others = field.name.split("_")
                request[first + "".join(map(str.capitalize, others))] = value
        return json.dumps(request).encode("ascii") + b"\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ping(Action):
    """An action that the daemon does not know. It handles one request at a time, so any reply shows that it is idle."""

    action: Literal["ping"] = "ping"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageAction(Action):
    action: PageActionName


@dataclass(frozen=True, slots=True, kw_only=True)
class Navigate(Action):
    action: Literal["navigate"] = "navigate"
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchTab(Action):
    action: Literal["tab_switch"] = "tab_switch"
    tab_id: str
    """A DevTools target id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitForUrl(Action):
    action: Literal["waitforurl"] = "waitforurl"
    timeout: int
    url: str
    """A glob pattern."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitForLoadState(Action):
    action: Literal["waitforloadstate"] = "waitforloadstate"
    timeout: int
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pdf(Action):
    action: Literal["pdf"] = "pdf"
    path: str


def driver_action(plan: BrowserCommand, *, wait_ms: int) -> Action:
    """Return the request that carries out a plan. `wait_ms` bounds a `wait`."""
    match plan.name:
        case "open":
            return Navigate(url=plan.operands[0])
        case "back" | "forward" | "reload":
            return PageAction(action=plan.name)
        case "wait" if "url" in plan.options:
            return WaitForUrl(timeout=wait_ms, url=plan.options["url"])
        case "wait" if "load" in plan.options:
            return WaitForLoadState(timeout=wait_ms, state=plan.options["load"])
        case _:
            raise ValueError(f"the driver has no action for {plan.name}")
