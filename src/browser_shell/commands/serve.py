"""`browser-shell serve` and `browser-shell stdio`: run a server of either profile."""

from __future__ import annotations

import argparse
import logging
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import structlog

from browser_shell.commands.greeting import greeting
from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.server.common import Assemble, build_access, serve_over_http, serve_over_stdio
from browser_shell.server.container_locks import require_locks
from browser_shell.settings import Settings, read_settings

_HIGHEST_PORT = 65535


def add_serve_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    serve = commands.add_parser("serve", help="serve MCP and the live view over HTTP")
    serve.add_argument("--host", help="address to listen on (default: PUBLIC_HOST or 127.0.0.1)")
    serve.add_argument("--port", type=_port, help="public port (default: PUBLIC_PORT or 8080; 0 picks a free one)")
    serve.add_argument(
        "--unsafe-no-auth",
        action="store_true",
        help="accept calls without a token: every program that reaches the port drives the browser (loopback only)",
    )
    _add_server_options(serve)
    serve.set_defaults(command=_serve)


def add_stdio_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    stdio = commands.add_parser("stdio", help="serve MCP over standard input and output")
    _add_server_options(stdio)
    stdio.set_defaults(command=_stdio)


def _add_server_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--profile",
        choices=("minimal", "write"),
        default="minimal",
        help="minimal: the browser; write: test jobs in containers, without a browser (default: minimal)",
    )
    parser.add_argument(
        "--workspace",
        type=Path,
        metavar="DIR",
        help="directory whose tests the write profile runs (default: BROWSER_SHELL_WORKSPACE)",
    )
    parser.add_argument("--policy", type=Path, metavar="FILE", help="policy file, JSON or YAML (BROWSER_SHELL_POLICY)")
    parser.add_argument(
        "--unsafe-attach",
        type=_port,
        metavar="PORT",
        help="drive a running Chromium by its DevTools port; the flags it was started with are not checked",
    )
    parser.add_argument(
        "--unsafe-no-jail",
        action="store_true",
        help="run Chromium on this machine's own network; its pages may then reach hosts that the policy forbids",
    )


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= _HIGHEST_PORT):
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 to {_HIGHEST_PORT}, not {text[:40]!r}")
    return int(text)


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

    def on_ready(port: int, job_image: str) -> None:
        print(greeting(settings, token=access.token, port=port, job_image=job_image), flush=True)

    anyio.run(partial(serve_over_http, settings, _assembly(arguments.profile), access=access, on_ready=on_ready))
    return 0


def _stdio(arguments: argparse.Namespace) -> int:
    _log_to_stderr()
    settings = _settings(arguments)
    _report_unsafe(settings)
    anyio.run(serve_over_stdio, settings, _assembly(arguments.profile))
    return 0


def _assembly(profile: str) -> Assemble:
    """Import only the profile in use: the client of a container engine takes 10 MB."""
    if profile == "write":
        from browser_shell.server.job_server import assemble_jobs

        return assemble_jobs
    from browser_shell.server.browser_server import assemble_browser

    return assemble_browser


def _settings(arguments: argparse.Namespace) -> Settings:
    policy_path = arguments.policy.resolve() if arguments.policy else None
    settings = read_settings(policy_path=policy_path, port=getattr(arguments, "port", None))
    is_write, workspace = arguments.profile == "write", arguments.workspace
    changes_browser = arguments.unsafe_no_jail or arguments.unsafe_attach is not None
    if is_write and changes_browser:
        raise ConfigurationInvalid("--unsafe-attach and --unsafe-no-jail: --profile write has no browser")
    if workspace is not None and not is_write:
        raise ConfigurationInvalid("--workspace: only with --profile write")
    if workspace is not None:
        settings = replace(settings, jobs=replace(settings.jobs, workspace=workspace.resolve()))
    if settings.in_container and changes_browser:
        raise ConfigurationInvalid("--unsafe-no-jail and --unsafe-attach: the image runs its own browser in its jail")
    require_locks(settings)
    if settings.ignored:
        structlog.get_logger().info("settings_ignored", names=",".join(settings.ignored))
    return replace(settings, unsafe_attach_port=arguments.unsafe_attach, unsafe_no_jail=arguments.unsafe_no_jail)


def _report_unsafe(settings: Settings) -> None:
    lines = list(settings.policy.unsafe_settings())
    if settings.in_container and settings.unsafe_missing_locks:
        locks = ", ".join(settings.unsafe_missing_locks)
        lines.append(f"BROWSER_SHELL_UNSAFE_MISSING_LOCKS: this container may run without {locks}")
    if settings.unsafe_attach_port is not None:
        lines.append(f"--unsafe-attach {settings.unsafe_attach_port}: another program started the browser")
    if settings.unsafe_no_jail:
        lines.append("--unsafe-no-jail: Chromium is on this machine's network; only its proxy settings restrict it")
    if settings.access.unsafe_no_auth:
        lines.append(
            f"--unsafe-no-auth: every program that reaches {settings.host} can use the tools and watch the browser"
        )
    for line in lines:
        print(f"UNSAFE: {line}", file=sys.stderr)


def _log_to_stderr() -> None:
    """Send all log lines to standard error, because over stdio standard output carries the protocol."""
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
