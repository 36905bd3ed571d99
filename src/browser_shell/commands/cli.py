"""The command `browser-shell`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from importlib import import_module

from browser_shell import __version__
from browser_shell.core.errors import BrowserShellError, first_error

_EXIT_BAD_SETTINGS = 2
_COMMANDS = {
    "serve": ("browser_shell.commands.serve", "add_serve_command"),
    "stdio": ("browser_shell.commands.serve", "add_stdio_command"),
    "policy": ("browser_shell.commands.policy", "add_policy_commands"),
    "audit": ("browser_shell.commands.audit", "add_audit_commands"),
    "evidence": ("browser_shell.commands.evidence", "add_evidence_commands"),
    "token": ("browser_shell.commands.token", "add_token_command"),
    "health": ("browser_shell.commands.health", "add_health_command"),
    "doctor": ("browser_shell.commands.doctor", "add_doctor_command"),
}
"""Module and function of each command. Lazy imports keep a server small and `health`, which containers poll, quick."""


def main() -> None:
    """Entry point of the installed command."""
    sys.exit(run(sys.argv[1:]))


def run(argv: list[str]) -> int:
    """Run one command and return its exit code."""
    arguments = build_parser(argv[0] if argv else "").parse_args(argv)
    command: Callable[[argparse.Namespace], int] = arguments.command
    try:
        return command(arguments)
    except BaseExceptionGroup as group:
        own, others = group.split(BrowserShellError)
        if own is None or others is not None:
            raise
        return _print_error(first_error(own))
    except BrowserShellError as error:
        return _print_error(error)


def build_parser(command: str = "") -> argparse.ArgumentParser:
    """Build the parser of one command, or of all when `command` names none."""
    parser = argparse.ArgumentParser(prog="browser-shell", description="A locked-down browser for AI agents.")
    parser.add_argument("--version", action="version", version=f"browser-shell {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")
    for name in [command] if command in _COMMANDS else _COMMANDS:
        module, function = _COMMANDS[name]
        getattr(import_module(module), function)(commands)
    return parser


def _print_error(error: BrowserShellError) -> int:
    print(f"browser-shell: {error.public_message}", file=sys.stderr)
    return _EXIT_BAD_SETTINGS


if __name__ == "__main__":
    main()
