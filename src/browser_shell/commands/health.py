"""`browser-shell health`: query the health socket of the server on this machine."""

from __future__ import annotations

import argparse
from pathlib import Path

from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.ops.health import SOCKET_NAME, Health, ask_health
from browser_shell.settings import JOBS_DIRECTORY, Settings, read_settings


def add_health_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    health = commands.add_parser("health", help="check the running server; exit code 0 when it is live")
    health.add_argument("--ready", action="store_true", help="exit with 0 only when it can serve a call now")
    health.add_argument(
        "--profile", choices=("minimal", "write"), default="minimal", help="profile of the server (default: minimal)"
    )
    health.set_defaults(command=_health)


def _health(arguments: argparse.Namespace) -> int:
    settings = read_settings()
    is_write = arguments.profile == "write"
    health = ask_health(settings.runtime_directory / JOBS_DIRECTORY / SOCKET_NAME if is_write else _socket(settings))
    print(render(health))
    return 0 if (health.ready if arguments.ready else health.live) else 1


def render(health: Health) -> str:
    if not health.live:
        return "no server answers"
    lines = [f"live, {'ready' if health.ready else 'not ready'}"]
    lines += [f"  {name:<10} {fault or 'ok'}" for name, fault in health.parts.items()]
    return "\n".join(lines)


def _socket(settings: Settings) -> Path:
    """Find the socket by DevTools port. With port 0, take the only server there is."""
    if settings.devtools_port:
        return settings.runtime_directory / str(settings.devtools_port) / SOCKET_NAME
    sockets = sorted(settings.runtime_directory.glob(f"[0-9]*/{SOCKET_NAME}"))
    if len(sockets) > 1:
        raise ConfigurationInvalid("several servers run here; set BROWSER_REMOTE_DEBUGGING_PORT to choose one")
    return sockets[0] if sockets else settings.runtime_directory / "none" / SOCKET_NAME
