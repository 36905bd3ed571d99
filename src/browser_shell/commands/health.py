"""`browser-shell health`: asks the server of this machine how it is."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from browser_shell.core.errors import BrowserShellError, ConfigurationInvalid
from browser_shell.ops.health import SOCKET_NAME, Health, ask_health
from browser_shell.settings import JOBS_DIRECTORY, Settings, read_settings

if TYPE_CHECKING:
    from argparse import _SubParsersAction


_EXIT_BAD_SETTINGS = 2


def main() -> None:
    """This command alone, without what the others import."""
    parser = argparse.ArgumentParser(prog="browser-shell")
    add_health_command(parser.add_subparsers(required=True, metavar="command"))
    try:
        sys.exit(_health(parser.parse_args()))
    except BrowserShellError as fault:
        print(f"browser-shell: {fault.public_message}", file=sys.stderr)
        sys.exit(_EXIT_BAD_SETTINGS)


def add_health_command(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    health = commands.add_parser("health", help="ask the running server how it is; exit code 0 is well")
    health.add_argument("--ready", action="store_true", help="also fail when it could not serve a call right now")
    health.add_argument("--profile", choices=("minimal", "write"), default="minimal", help="of which server")
    health.set_defaults(command=_health)


def _health(arguments: argparse.Namespace) -> int:
    settings = read_settings()
    writes = arguments.profile == "write"
    health = ask_health(settings.runtime_directory / JOBS_DIRECTORY / SOCKET_NAME if writes else _socket(settings))
    print(in_words(health))
    return 0 if (health.ready if arguments.ready else health.live) else 1


def in_words(health: Health) -> str:
    if not health.live:
        return "no server answers"
    lines = [f"live, {'ready' if health.ready else 'not ready'}"]
    lines += [f"  {name:<10} {wrong or 'ok'}" for name, wrong in health.parts.items()]
    return "\n".join(lines)


def _socket(settings: Settings) -> Path:
    """Of the server with this DevTools port; when the port is left to chance, of the only server there is."""
    if settings.devtools_port:
        return settings.runtime_directory / str(settings.devtools_port) / SOCKET_NAME
    found = sorted(settings.runtime_directory.glob(f"[0-9]*/{SOCKET_NAME}"))
    if len(found) > 1:
        raise ConfigurationInvalid("several servers run here; set BROWSER_REMOTE_DEBUGGING_PORT to say which")
    return found[0] if found else settings.runtime_directory / "none" / SOCKET_NAME
