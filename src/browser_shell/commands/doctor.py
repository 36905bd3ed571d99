"""Tries, for real and one by one, everything that a deployment needs, and says how to mend what does not work."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import anyio

from browser_shell.browser.chromium.display import DisplaySettings, running_display
from browser_shell.browser.chromium.jail import JailSettings, running_jail
from browser_shell.browser.chromium.runtime_dirs import RuntimeLayout, claimed_layout
from browser_shell.core.access import Activity
from browser_shell.core.errors import BrowserShellError, ConfigurationInvalid
from browser_shell.core.records import AuditRecord
from browser_shell.process.accounts import Account, account_to_drop_to
from browser_shell.server.browser_server import build_browser, check_programs
from browser_shell.server.common import build_access
from browser_shell.settings import Settings

_START_SECONDS = 25.0
_LEAST_FREE_BYTES = 200 * 1024 * 1024
# The oldest date at which this code can run. A clock before it makes every token look not yet valid.
_EARLIEST_TIME = 1_790_000_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one check found."""

    name: str
    healthy: bool
    detail: str
    fix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bench:
    """A throw-away place to try things in."""

    settings: Settings
    layout: RuntimeLayout
    account: Account | None


class _Unrecorded:
    """A check is not a call: nothing that it does belongs into the audit log."""

    async def record(self, record: AuditRecord) -> None:
        return


class _Nobody:
    """No person watches a check."""

    def seconds_left(self) -> float:
        return 0.0

    def add(self, activity: Activity) -> None:
        return


class _Clock:
    def monotonic(self) -> float:
        return time.monotonic()

    def wall(self) -> float:
        return time.time()


async def examine(settings: Settings) -> list[Finding]:
    """Every finding, in an order in which each builds on those before it."""
    findings = [_platform(), _clock(), _policy(settings), _key(settings), _state(settings), _port(settings)]
    try:
        account = account_to_drop_to(settings.account)
        findings.append(_good("account", account.name if account else f"uid {os.geteuid()}, not root"))
        check_programs(settings)
        findings.append(_good("programs", "Chromium, Xvnc, window manager, and the pinned agent-browser"))
    except ConfigurationInvalid as wrong:
        return [*findings, Finding(name="programs", healthy=False, detail=wrong.public_message, fix="make install")]
    with _throw_away(settings, account) as bench:
        for name, check, fix in _LIVE_CHECKS:
            try:
                findings.append(_good(name, await check(bench)))
            except* BrowserShellError as faults:
                findings.append(Finding(name=name, healthy=False, detail=_first(faults), fix=fix))
    return findings


def render(findings: list[Finding]) -> str:
    """For people."""
    lines = []
    for finding in findings:
        lines.append(f"{'ok  ' if finding.healthy else 'FAIL'}  {finding.name:<22}{finding.detail}")
        if not finding.healthy and finding.fix:
            lines.append(f"      {'':<22}fix: {finding.fix}")
    return "\n".join(lines)


def _good(name: str, detail: str) -> Finding:
    return Finding(name=name, healthy=True, detail=detail)


def _first(faults: BaseExceptionGroup[BrowserShellError]) -> str:
    first = faults.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first.public_message


def _platform() -> Finding:
    system, machine = platform.system(), platform.machine()
    healthy = system == "Linux" and machine in ("x86_64", "aarch64")
    return Finding(name="platform", healthy=healthy, detail=f"{system} {machine}", fix="use Linux on x86_64 or aarch64")


def _clock() -> Finding:
    now = time.time()
    return Finding(
        name="clock",
        healthy=now > _EARLIEST_TIME,
        detail=time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now)),
        fix="set the clock (timedatectl set-ntp true): tokens are valid for a time",
    )


def _policy(settings: Settings) -> Finding:
    unsafe = settings.policy.unsafe_settings()
    detail = f"{settings.policy_source}, digest {settings.policy.digest()[:12]}"
    return _good("policy", "; ".join([detail, *(f"UNSAFE {line}" for line in unsafe)]))


def _key(settings: Settings) -> Finding:
    try:
        access = build_access(settings)
    except ConfigurationInvalid as wrong:
        fix = "browser-shell token keygen makes a key pair and prints the value to set"
        return Finding(name="key", healthy=False, detail=wrong.public_message, fix=fix)
    return _good(
        "key", "none set: a throw-away key is made at each start" if access.token else "JWT_PUBLIC_KEY is usable"
    )


def _state(settings: Settings) -> Finding:
    place = settings.state_directory
    existing = next(parent for parent in (place, *place.parents) if parent.exists())
    free = shutil.disk_usage(existing).free
    healthy = os.access(existing, os.W_OK) and free > _LEAST_FREE_BYTES
    return Finding(
        name="state directory",
        healthy=healthy,
        detail=f"{place}, {free // 2**20} MiB free",
        fix="free some space, or set BROWSER_SHELL_STATE_DIR: calls that cannot be recorded are refused",
    )


def _port(settings: Settings) -> Finding:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except OSError as taken:
            return Finding(
                name="public port",
                healthy=False,
                detail=f"{settings.host}:{settings.port}: {taken.strerror}",
                fix="stop what listens there (perhaps a browser-shell that runs already), or set PUBLIC_PORT",
            )
    return _good("public port", f"{settings.host}:{settings.port} is free")


@contextmanager
def _throw_away(settings: Settings, account: Account | None) -> Iterator[_Bench]:
    with tempfile.TemporaryDirectory(prefix="bsd-") as directory, socket.socket() as probe:
        Path(directory).chmod(0o711)
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
        probe.close()
        with claimed_layout(Path(directory) / "r", port, account) as layout:
            yield _Bench(settings=replace(settings, devtools_port=port), layout=layout, account=account)


async def _try_jail(bench: _Bench) -> str:
    policies = bench.layout.config / "empty"
    policies.mkdir()
    jail_settings = JailSettings(
        marks=bench.layout.marks,
        logs=bench.layout.logs,
        home=bench.layout.chromium_home,
        chromium_policies=policies,
        devtools_port=bench.settings.devtools_port,
        must_hide=bench.settings.needs_lock("mounts"),
        account=bench.account,
    )
    async with running_jail(jail_settings, ("/bin/true",), {}) as jail:
        await jail.process.wait()
    return "a network namespace without a route can be made"


async def _try_display(bench: _Bench) -> str:
    display_settings = DisplaySettings(
        directory=bench.layout.display,
        window_manager_home=bench.layout.driver_home,
        marks=bench.layout.marks,
        logs=bench.layout.logs,
        width=640,
        height=480,
        account=bench.account,
    )
    async with running_display(display_settings) as display:
        return f"Xvnc runs, display {display.env['DISPLAY']}"


async def _try_browser(bench: _Bench) -> str:
    """The whole browser side, and a look at how its renderers are confined."""
    with ExitStack() as resources:
        parts = build_browser(
            bench.settings,
            layout=bench.layout,
            account=bench.account,
            clock=_Clock(),
            audit=_Unrecorded(),
            human=_Nobody(),
            show_activity=_Nobody().add,
            resources=resources,
        )
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(parts.supervisor.run)
            try:
                connection = await parts.supervisor.connection(seconds=_START_SECONDS)
                await connection.devtools.call("Target.createTarget", {"url": "about:blank"})
                seen = await _renderer_confinement(str(bench.layout.profile))
            finally:
                tasks.cancel_scope.cancel()
    if not seen:
        raise ConfigurationInvalid("Chromium runs, but none of its renderers is in a seccomp sandbox")
    return "Chromium runs in its jail, its renderers under seccomp"


async def _renderer_confinement(profile: str) -> bool:
    """Whether a renderer of this profile's browser runs under a seccomp filter."""
    for _ in range(50):
        if any(_is_confined_renderer(process, profile) for process in _processes()):
            return True
        await anyio.sleep(0.1)
    return False


def _processes() -> list[Path]:
    return [entry for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _is_confined_renderer(process: Path, profile: str) -> bool:
    try:
        command = (process / "cmdline").read_bytes().decode("utf-8", "replace")
        status = (process / "status").read_text(encoding="utf-8")
    except OSError:
        return False
    return "--type=renderer" in command and profile in command and "Seccomp:\t2" in status


_LIVE_CHECKS: tuple[tuple[str, Callable[[_Bench], Awaitable[str]], str], ...] = (
    ("jail", _try_jail, "allow unprivileged user namespaces; the detail says how"),
    ("display", _try_display, "apt-get install tigervnc-standalone-server; check that /tmp is writable"),
    ("Chromium and sandbox", _try_browser, "see the detail; make install brings what is missing"),
)
