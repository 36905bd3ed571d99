"""The tools of one endpoint, by name."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Generic

from browser_shell.core.errors import PolicyBlocked, UnknownTool
from browser_shell.core.ports import PlanT_co, Tool
from browser_shell.policy.messages import quoted

RESERVED = frozenset({"run_shell"})
"""Names that no tool may have. Clients that ask for one get a clear refusal."""


class ToolRegistry(Generic[PlanT_co]):
    """The tools that clients can call."""

    def __init__(self, tools: Sequence[Tool[PlanT_co]]) -> None:
        by_name: dict[str, Tool[PlanT_co]] = {}
        for tool in tools:
            if tool.name in RESERVED:
                raise _reserved(tool.name)
            if tool.name in by_name:
                raise ValueError(f"two tools are called {tool.name}")
            by_name[tool.name] = tool
        self._tools = MappingProxyType(by_name)

    def get(self, name: str) -> Tool[PlanT_co]:
        """Raises: UnknownTool, PolicyBlocked for a reserved name."""
        if name in RESERVED:
            raise _reserved(name)
        tool = self._tools.get(name)
        if tool is None:
            known = ", ".join(self._tools)
            raise UnknownTool(f"there is no tool {quoted(name)}; known: {known}", rule_id="tool.unknown")
        return tool

    def all(self) -> Sequence[Tool[PlanT_co]]:
        """Return the tools in the order in which they were given."""
        return tuple(self._tools.values())


def _reserved(name: str) -> PolicyBlocked:
    return PolicyBlocked(f"{name} is a reserved name; this server runs no shell commands", rule_id="tool.reserved")
