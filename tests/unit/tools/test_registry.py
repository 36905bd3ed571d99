"""The tools of a server, by name."""

from __future__ import annotations

import pytest

from browser_shell.core.errors import PolicyBlocked, UnknownTool
from browser_shell.tools.browser_shell import BrowserShellTool
from browser_shell.tools.registry import ToolRegistry


class ShellTool(BrowserShellTool):
    name = "run_shell"


def test_a_tool_is_found_by_its_exact_name() -> None:
    tool = BrowserShellTool()
    registry = ToolRegistry([tool])
    assert registry.get("browser-shell") is tool
    assert list(registry.all()) == [tool]


@pytest.mark.parametrize("name", ["", "bash", "browser-shell ", "Browser-Shell", "browser-shell/../x"])
def test_other_names_are_unknown(name: str) -> None:
    with pytest.raises(UnknownTool) as caught:
        ToolRegistry([BrowserShellTool()]).get(name)
    assert caught.value.rule_id == "tool.unknown"


@pytest.mark.promise("tools:no-shell")
def test_run_shell_is_never_a_tool() -> None:
    with pytest.raises(PolicyBlocked) as caught:
        ToolRegistry([]).get("run_shell")
    assert caught.value.rule_id == "tool.reserved"
    with pytest.raises(PolicyBlocked):
        ToolRegistry([ShellTool()])


def test_two_tools_cannot_have_the_same_name() -> None:
    with pytest.raises(ValueError, match="two tools"):
        ToolRegistry([BrowserShellTool(), BrowserShellTool()])
