"""The parser of `browser-shell`, and what each command imports."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator

import pytest

from browser_shell.commands.cli import build_parser, run

COMMANDS = ("serve", "stdio", "policy", "audit", "evidence", "token", "health", "doctor")
PRINT_LOADED_MODULES = """
import sys
from contextlib import suppress
from browser_shell.commands.cli import run
with suppress(SystemExit):
    run(sys.argv[1:])
print(*sys.modules)
"""


def loaded_modules(*argv: str) -> set[str]:
    command = [sys.executable, "-c", PRINT_LOADED_MODULES, *argv]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return set(ended.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("argv", [["--help"], ["nonsense"], ["Serve"]])
def test_help_and_unknown_commands_list_all_commands(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(argv)
    output = "".join(capsys.readouterr())
    assert all(command in output for command in COMMANDS)


def test_a_missing_command_is_an_error() -> None:
    with pytest.raises(SystemExit, match="2"):
        run([])


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_a_help_page(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        run([command, "--help"])
    assert f"usage: browser-shell {command} " in capsys.readouterr().out


def without_help(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if not isinstance(action, argparse._SubParsersAction):
            if not action.help:
                yield f"{parser.prog} {action.dest}"
            continue
        described = {choice.dest for choice in action._choices_actions if choice.help}
        yield from (f"{parser.prog} {name}" for name in action.choices if name not in described)
        for child in action.choices.values():
            yield from without_help(child)


def test_every_command_and_option_has_a_help_text() -> None:
    assert list(without_help(build_parser())) == []


def test_a_server_does_not_import_other_commands() -> None:
    loaded = loaded_modules("serve", "--port", "nonsense")
    assert "browser_shell.commands.serve" in loaded
    others = {f"browser_shell.commands.{name}" for name in COMMANDS if name not in ("serve", "stdio")}
    assert not (others | {"browser_shell.audit.report"}) & loaded


def test_health_does_not_import_the_server() -> None:
    loaded = loaded_modules("health", "--profile", "nonsense")
    assert "browser_shell.commands.health" in loaded
    assert not {"browser_shell.commands.serve", "browser_shell.server.common", "mcp", "starlette"} & loaded
