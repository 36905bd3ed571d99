"""The command `browser-shell`."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path

import anyio
import structlog

from browser_shell import __version__
from browser_shell.commands.greeting import greeting
from browser_shell.core.errors import BrowserShellError, ConfigurationInvalid
from browser_shell.server.common import Assemble, build_access, serve_over_http, serve_over_stdio
from browser_shell.server.container_locks import require_locks
from browser_shell.settings import Settings, read_settings

_EXIT_BAD_SETTINGS = 2
_HIGHEST_PORT = 65535
_OTHERS = {
    "policy": ("browser_shell.commands.policy", "add_policy_commands"),
    "audit": ("browser_shell.commands.audit", "add_audit_commands"),
    "evidence": ("browser_shell.commands.evidence", "add_evidence_commands"),
    "token": ("browser_shell.commands.token", "add_token_command"),
    "health": ("browser_shell.commands.health", "add_health_command"),
    "doctor": ("browser_shell.commands.doctor_command", "add_doctor_command"),
}
"""Commands that serve nobody, with what adds each. A server does without the memory that their modules take."""


def main() -> None:
    """Entry point of the installed command."""
    sys.exit(run(sys.argv[1:]))


def run(argv: list[str]) -> int:
    """Runs one command and returns its exit code."""
    arguments = _parser(argv[0] if argv else "").parse_args(argv)
    command: Callable[[argparse.Namespace], int] = arguments.command
    try:
        return command(arguments)
    except BaseExceptionGroup as group:
        fault = _only_own_error(group)
        if fault is None:
            raise
        return _complain(fault)
    except BrowserShellError as fault:
        return _complain(fault)


def _complain(fault: BrowserShellError) -> int:
    print(f"browser-shell: {fault.public_message}", file=sys.stderr)
    return _EXIT_BAD_SETTINGS


def _only_own_error(group: BaseExceptionGroup[BaseException]) -> BrowserShellError | None:
    """Task groups wrap what went wrong; people should read the reason, not the wrapping."""
    own, others = group.split(BrowserShellError)
    if own is None or others is not None:
        return None
    first: BaseException = own
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    return first if isinstance(first, BrowserShellError) else None


def _parser(asked: str) -> argparse.ArgumentParser:
    """For the command that is asked for."""
    parser = argparse.ArgumentParser(prog="browser-shell", description="A locked-down browser for AI agents.")
    parser.add_argument("--version", action="version", version=f"browser-shell {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")

    server = commands.add_parser("serve", help="serve MCP and the live view over HTTP")
    server.add_argument("--host", help="address to listen on (default: PUBLIC_HOST or 127.0.0.1)")
    server.add_argument("--port", type=_port, help="public port (default: PUBLIC_PORT or 8080; 0 picks a free one)")
    server.add_argument(
        "--unsafe-no-auth",
        action="store_true",
        help="ask for no token; everyone who reaches the port drives the browser (loopback only)",
    )
    _add_server_options(server)
    server.set_defaults(command=_serve)

    stdio = commands.add_parser("stdio", help="serve MCP over standard input and output")
    _add_server_options(stdio)
    stdio.set_defaults(command=_stdio)

    if asked not in commands.choices:
        # Whoever asks for help, or for what does not exist, is told of all of them.
        for name in [asked] if asked in _OTHERS else _OTHERS:
            module, adder = _OTHERS[name]
            getattr(import_module(module), adder)(commands)
    return parser


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= _HIGHEST_PORT):
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 to {_HIGHEST_PORT}, not {text[:40]!r}")
    return int(text)


def _add_server_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--profile",
        choices=("minimal", "write"),
        default="minimal",
        help="minimal: the browser; write: test jobs in containers, and no browser",
    )
    parser.add_argument(
        "--workspace", type=Path, metavar="DIR", help="profile write: whose tests are run (BROWSER_SHELL_WORKSPACE)"
    )
    parser.add_argument("--policy", type=Path, metavar="FILE", help="policy file (JSON or YAML)")
    parser.add_argument(
        "--unsafe-attach",
        type=_port,
        metavar="PORT",
        help="drive a Chromium that somebody else started, by its DevTools port; its flags are then not ours",
    )
    parser.add_argument(
        "--unsafe-no-jail",
        action="store_true",
        help="run Chromium on this machine's own network; its pages may then reach what the policy forbids",
    )


def _settings(arguments: argparse.Namespace) -> Settings:
    policy_path = arguments.policy.resolve() if arguments.policy else None
    settings = read_settings(policy_path=policy_path, port=getattr(arguments, "port", None))
    writes, workspace = arguments.profile == "write", arguments.workspace
    if writes and (arguments.unsafe_attach is not None or arguments.unsafe_no_jail):
        raise ConfigurationInvalid("--profile write has no browser: --unsafe-attach and --unsafe-no-jail mean nothing")
    if workspace is not None and not writes:
        raise ConfigurationInvalid("--workspace: only with --profile write")
    if workspace is not None:
        settings = replace(settings, jobs=replace(settings.jobs, workspace=workspace.resolve()))
    if settings.in_container and (arguments.unsafe_no_jail or arguments.unsafe_attach is not None):
        raise ConfigurationInvalid("--unsafe-no-jail and --unsafe-attach: the image runs its own browser in its jail")
    require_locks(settings)
    if settings.ignored:
        structlog.get_logger().info("settings_ignored", names=",".join(settings.ignored))
    return replace(settings, unsafe_attach_port=arguments.unsafe_attach, unsafe_no_jail=arguments.unsafe_no_jail)


def _serve(arguments: argparse.Namespace) -> int:
    _log_to_stderr()
    settings = _settings(arguments)
    settings = replace(
        settings,
        host=arguments.host or settings.host,
        access=replace(settings.access, unsafe_no_auth=arguments.unsafe_no_auth),
    )
    access = build_access(settings)
    _report_unsafe(settings)
    on_ready = partial(_greet, settings, access.token)
    anyio.run(partial(serve_over_http, settings, _assembly(arguments.profile), access=access, on_ready=on_ready))
    return 0


def _stdio(arguments: argparse.Namespace) -> int:
    _log_to_stderr()
    settings = _settings(arguments)
    _report_unsafe(settings)
    anyio.run(serve_over_stdio, settings, _assembly(arguments.profile))
    return 0


def _assembly(profile: str) -> Assemble:
    """Import the profile's module only when it is used: the client of a container engine takes 10 MB."""
    if profile == "write":
        from browser_shell.server.job_server import assemble_jobs

        return assemble_jobs
    from browser_shell.server.browser_server import assemble_browser

    return assemble_browser


def _report_unsafe(settings: Settings) -> None:
    lines = list(settings.policy.unsafe_settings())
    if settings.in_container and settings.unsafe_missing_locks:
        locks = ", ".join(settings.unsafe_missing_locks)
        lines.append(f"BROWSER_SHELL_UNSAFE_MISSING_LOCKS: this container may run without {locks}")
    if settings.unsafe_attach_port is not None:
        lines.append(f"--unsafe-attach {settings.unsafe_attach_port}: the browser was started by somebody else")
    if settings.unsafe_no_jail:
        lines.append("--unsafe-no-jail: Chromium is on this machine's network; only its proxy settings hold it back")
    if settings.access.unsafe_no_auth:
        lines.append(
            f"--unsafe-no-auth: everyone who reaches {settings.host} may use this server's tools, and watch its browser"
        )
    for line in lines:
        print(f"UNSAFE: {line}", file=sys.stderr)


def _greet(settings: Settings, token: str | None, port: int, job_image: str = "") -> None:
    print(greeting(settings, token=token, port=port, job_image=job_image), flush=True)


def _log_to_stderr() -> None:
    """Standard output may belong to the protocol, so every log line goes to standard error."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s %(message)s")
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            structlog.processors.LogfmtRenderer(key_order=["timestamp", "level", "event"]),
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


if __name__ == "__main__":
    main()
