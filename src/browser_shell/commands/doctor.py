"""`browser-shell doctor`: try each part that a deployment needs, and print how to repair what fails."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import anyio
import structlog

from browser_shell.browser.chromium.display import running_display
from browser_shell.browser.chromium.jail import running_jail
from browser_shell.browser.chromium.runtime_dirs import RuntimeLayout, claimed_layout
from browser_shell.core.errors import BrowserShellError, ConfigurationInvalid, first_error
from browser_shell.core.records import AuditRecord
from browser_shell.http.server import listen_on
from browser_shell.process.accounts import Account, account_to_drop_to
from browser_shell.server.browser_server import build_browser, check_programs, free_port, jail_settings
from browser_shell.server.common import SystemClock, build_access
from browser_shell.settings import DRIVER_SHA256, Settings, read_settings

_EXIT_UNHEALTHY = 1
_START_SECONDS = 25.0
_MIN_FREE_BYTES = 200 * 1024 * 1024
_EARLIEST_TIME = 1_790_000_000.0
"""Before the release of this code. An earlier clock makes every token look not yet valid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Result of one check."""

    name: str
    healthy: bool
    detail: str
    fix: str = ""


class _NoRecords:
    """An audit log and human control without effect: a check is not a call, and has no viewer."""

    async def record(self, record: AuditRecord) -> None:
        return

    def seconds_left(self) -> float:
        return 0.0


def add_doctor_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    doctor = commands.add_parser("doctor", help="try each part a deployment needs, and print how to repair failures")
    doctor.add_argument("--policy", type=Path, metavar="FILE", help="policy file, JSON or YAML (BROWSER_SHELL_POLICY)")
    doctor.add_argument("--json", action="store_true", help="print JSON instead of text")
    doctor.set_defaults(command=_doctor)


def _doctor(arguments: argparse.Namespace) -> int:
    # Log lines of the parts would appear between the findings.
    structlog.configure(processors=[_drop_event])
    settings = read_settings(policy_path=arguments.policy.resolve() if arguments.policy else None)
    findings: list[Finding] = anyio.run(examine, settings)
    print(json.dumps([asdict(finding) for finding in findings]) if arguments.json else render(findings))
    return 0 if all(finding.healthy for finding in findings) else _EXIT_UNHEALTHY


def _drop_event(logger: object, method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    raise structlog.DropEvent


async def examine(settings: Settings) -> list[Finding]:
    """Run all checks, those that others depend on first."""
    findings = [_platform(), _clock(), _policy(settings), _key(settings), _state(settings), _port(settings)]
    try:
        account = account_to_drop_to(settings.account)
        findings.append(_good("account", account.name if account else f"uid {os.geteuid()}, not root"))
        check_programs(settings)
        findings.append(_good("programs", "Chromium, Xvnc, window manager, and the pinned agent-browser"))
    except ConfigurationInvalid as error:
        return [*findings, Finding(name="programs", healthy=False, detail=error.public_message, fix="make install")]
    with _throwaway_layout(account) as (layout, port):
        settings = replace(settings, devtools_port=port)
        for name, check, fix in _LIVE_CHECKS:
            try:
                findings.append(_good(name, await check(settings, layout)))
            except* BrowserShellError as faults:
                detail = first_error(faults).public_message
                findings.append(Finding(name=name, healthy=False, detail=detail, fix=fix))
    return findings


def render(findings: list[Finding]) -> str:
    lines = []
    for finding in findings:
        lines.append(f"{'ok  ' if finding.healthy else 'FAIL'}  {finding.name:<22}{finding.detail}")
        if not finding.healthy and finding.fix:
            lines.append(f"      {'':<22}fix: {finding.fix}")
    return "\n".join(lines)


def _good(name: str, detail: str) -> Finding:
    return Finding(name=name, healthy=True, detail=detail)


def _platform() -> Finding:
    system, machine = platform.system(), platform.machine()
    healthy = system == "Linux" and machine in DRIVER_SHA256
    return Finding(name="platform", healthy=healthy, detail=f"{system} {machine}", fix="use Linux on x86_64 or aarch64")


def _clock() -> Finding:
    now = time.time()
    return Finding(
        name="clock",
        healthy=now > _EARLIEST_TIME,
        detail=time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now)),
        fix="set the clock (timedatectl set-ntp true): tokens are valid for a limited time",
    )


def _policy(settings: Settings) -> Finding:
    unsafe = settings.policy.unsafe_settings()
    detail = f"{settings.policy_source}, digest {settings.policy.digest()[:12]}"
    return _good("policy", "; ".join([detail, *(f"UNSAFE {line}" for line in unsafe)]))


def _key(settings: Settings) -> Finding:
    try:
        access = build_access(settings)
    except ConfigurationInvalid as error:
        fix = "browser-shell token keygen makes a key pair and prints the value of JWT_PUBLIC_KEY"
        return Finding(name="key", healthy=False, detail=error.public_message, fix=fix)
    return _good(
        "key", "none set: a throw-away key is made at each start" if access.token else "JWT_PUBLIC_KEY is usable"
    )


def _state(settings: Settings) -> Finding:
    directory = settings.state_directory
    existing = next(parent for parent in (directory, *directory.parents) if parent.exists())
    free = shutil.disk_usage(existing).free
    healthy = os.access(existing, os.W_OK) and free > _MIN_FREE_BYTES
    return Finding(
        name="state directory",
        healthy=healthy,
        detail=f"{directory}, {free // 2**20} MiB free",
        fix="free some space, or set BROWSER_SHELL_STATE_DIR: calls that cannot be recorded are refused",
    )


def _port(settings: Settings) -> Finding:
    try:
        listen_on(settings.host, settings.port).close()
    except ConfigurationInvalid as error:
        fix = "stop the program that listens there, perhaps another browser-shell, or set PUBLIC_PORT"
        return Finding(name="public port", healthy=False, detail=error.public_message, fix=fix)
    return _good("public port", f"{settings.host}:{settings.port} is free")


@contextmanager
def _throwaway_layout(account: Account | None) -> Iterator[tuple[RuntimeLayout, int]]:
    """Create directories for the checks that start programs. Yield them with a free DevTools port."""
    with tempfile.TemporaryDirectory(prefix="bsd-") as directory:
        Path(directory).chmod(0o711)
        port = free_port()
        with claimed_layout(Path(directory) / "r", port, account) as layout:
            yield layout, port


async def _try_jail(settings: Settings, layout: RuntimeLayout) -> str:
    async with running_jail(jail_settings(settings, layout), ("/bin/true",), {}) as jail:
        await jail.process.wait()
    return "a network namespace without a route can be made"


async def _try_display(settings: Settings, layout: RuntimeLayout) -> str:
    width, height = settings.display_width, settings.display_height
    async with running_display(layout, width=width, height=height) as display:
        return f"Xvnc runs, display {display.env['DISPLAY']}"


async def _try_browser(settings: Settings, layout: RuntimeLayout) -> str:
    """Start the complete browser side and check that its renderers are sandboxed."""
    with ExitStack() as resources:
        parts = build_browser(
            settings,
            layout=layout,
            clock=SystemClock(),
            audit=_NoRecords(),
            human=_NoRecords(),
            show_activity=lambda activity: None,
            resources=resources,
        )
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(parts.supervisor.run)
            try:
                connection = await parts.supervisor.connection(seconds=_START_SECONDS)
                await connection.devtools.call("Target.createTarget", {"url": "about:blank"})
                is_sandboxed = await _has_sandboxed_renderer(str(layout.profile))
            finally:
                tasks.cancel_scope.cancel()
    if not is_sandboxed:
        raise ConfigurationInvalid("Chromium runs, but none of its renderers is in a seccomp sandbox")
    return "Chromium runs in its jail, its renderers under seccomp"


async def _has_sandboxed_renderer(profile: str) -> bool:
    """Wait up to 5 seconds for a renderer with a seccomp filter."""
    for _ in range(50):
        if _sandboxed_renderer_exists(profile):
            return True
        await anyio.sleep(0.1)
    return False


def _sandboxed_renderer_exists(profile: str) -> bool:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().decode("utf-8", "replace")
            status = (process / "status").read_text(encoding="utf-8")
        except OSError:
            continue
        if "--type=renderer" in command and profile in command and "Seccomp:\t2" in status:
            return True
    return False


_LIVE_CHECKS: tuple[tuple[str, Callable[[Settings, RuntimeLayout], Awaitable[str]], str], ...] = (
    ("jail", _try_jail, "allow unprivileged user namespaces as the detail explains"),
    ("display", _try_display, "apt-get install tigervnc-standalone-server; check that /tmp is writable"),
    ("Chromium and sandbox", _try_browser, "see the detail; make install installs missing programs"),
)
