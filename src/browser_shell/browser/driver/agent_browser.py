"""Life cycle of agent-browser's daemons: one per session, started by the pinned CLI, then used over its socket."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import anyio

from browser_shell.browser.chromium.runtime_dirs import RuntimeLayout
from browser_shell.browser.driver.actions import Action, Ping
from browser_shell.browser.driver.connection import DaemonConnection, DriverReply, connect, parse_reply
from browser_shell.core.errors import ExecutionTimedOut, SandboxUnavailable
from browser_shell.process import orphans, spawn
from browser_shell.process.files import create_file, read_plain_file

_START_SECONDS = 15.0
_MAX_START_OUTPUT_BYTES = 64 * 1024
_POLL_SECONDS = 0.01
_REAP_POLLS = 100
_PID_FILE_POLLS = 30
_OTHERS_IDLE_SECONDS = 1.0
_DAEMON_IDLE_MS = 600_000
_MAX_DAEMON_BYTES = 512 * 1024 * 1024
"""A daemon runs outside the jail and stores what its pages write to their consoles, so its memory is limited. It needs
13 MB."""

_TARGET_CLOSED = ("Session with given id not found", "No target with given id found")
"""Parts of the errors of a start during which a page of another session closed. A daemon attaches to every page."""
_MAX_PID_FILE_BYTES = len("4194304\n")
ALLOWED_ACTIONS = (
    *("launch", "navigate", "back", "forward", "reload", "url", "waitforurl", "waitforloadstate"),
    *("pdf", "tab_switch", "stream_disable"),
)
"""The allowlist of the daemon's action policy, a second layer: the server only sends the classes in `actions`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverSettings:
    """Program, directories and port of the driver."""

    program: Path
    layout: RuntimeLayout
    devtools_port: int

    @property
    def config(self) -> Path:
        """An empty configuration. The driver reads no other file when one is given."""
        return self.layout.config / "agent-browser.json"

    @property
    def action_policy(self) -> Path:
        return self.layout.config / "action-policy.json"


def write_driver_files(settings: DriverSettings) -> None:
    """Write the configuration and the action policy."""
    for path, content in (
        (settings.config, {}),
        (settings.action_policy, {"default": "deny", "allow": sorted(ALLOWED_ACTIONS)}),
    ):
        path.unlink(missing_ok=True)  # A file of an earlier server is read-only.
        path.write_text(json.dumps(content), encoding="utf-8")
        path.chmod(0o444)


class _OtherTargetClosed(SandboxUnavailable):
    """The start failed because a page of another session closed. The start can be repeated."""


@dataclass(slots=True)
class _Daemon:
    identity: orphans.ProcessIdentity
    connection: DaemonConnection
    detached: bool = False

    @property
    def is_usable(self) -> bool:
        return not self.detached and not self.connection.is_closed and orphans.is_alive(self.identity)


class AgentBrowserDriver:
    """The daemons of all sessions, by the driver's session name."""

    def __init__(self, settings: DriverSettings) -> None:
        self._settings = settings
        self._env = _environment(settings)
        self._daemons: dict[str, _Daemon] = {}

    async def make_ready(self, name: str, target_id: str) -> bool:
        """Start the session's daemon on this page if none runs. Return whether a new one was started.

        Raises: SandboxUnavailable.
        """
        daemon = self._daemons.get(name)
        if daemon is not None and daemon.is_usable:
            return False
        await self.kill(name)
        try:
            self._daemons[name] = await self._start_on(name, target_id)
        except _OtherTargetClosed:
            self._daemons[name] = await self._start_on(name, target_id)
        return True

    async def _start_on(self, name: str, target_id: str) -> _Daemon:
        self._write_target_file(name, target_id)
        try:
            return await self._start(name)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self._wait_for_pid_file(name)
                await self.kill(name)
            raise

    async def run(self, name: str, action: Action, *, seconds: float) -> DriverReply:
        """Run one action and return its reply.

        Raises: ExecutionTimedOut, SandboxUnavailable when the session's daemon has ended.
        """
        daemon = self._daemons.get(name)
        if daemon is None or daemon.detached:
            raise SandboxUnavailable("the session has no driver")
        try:
            with anyio.fail_after(seconds):
                return await daemon.connection.request(action)
        except TimeoutError as late:
            raise ExecutionTimedOut(f"not finished after {seconds:.0f} s") from late

    async def wait_for_idle_daemons(self, *, except_for: str) -> None:
        """Wait, for at most a second, until the idle daemons of other sessions have attached to a new page.

        Every daemon attaches to every page of the browser. A daemon that is still attaching when the page starts to
        load replies to its own session only after the page has loaded.
        """
        with anyio.move_on_after(_OTHERS_IDLE_SECONDS):
            async with anyio.create_task_group() as tasks:
                for name, daemon in self._daemons.items():
                    if name != except_for and daemon.is_usable and not daemon.connection.is_busy:
                        tasks.start_soon(self._ping, name)

    async def _ping(self, name: str) -> None:
        """Use a connection of its own: the session's connection may be needed at the same time."""
        try:
            connection = await connect(self._file(name, "sock"))
            try:
                await connection.request(Ping())
            finally:
                connection.close()
        except SandboxUnavailable:
            return

    def detach(self, name: str) -> None:
        """Let the next command start a new daemon, because this one is busy with an abandoned command.

        It is not killed at once: killing it would dismiss a dialog that is open.
        """
        if (daemon := self._daemons.get(name)) is not None:
            daemon.detached = True

    async def kill(self, name: str) -> None:
        """End the session's daemon with SIGKILL and remove its files. SIGTERM would wait for a running command."""
        daemon = self._daemons.pop(name, None)
        if daemon is not None:
            daemon.connection.close()
        # After a start that failed, only the pid file names the daemon. It may have become a zombie.
        identity = daemon.identity if daemon is not None else self._running_daemon(name)
        pid = daemon.identity.pid if daemon is not None else self._pid_in_file(name)
        if identity is not None:
            orphans.kill_now(identity)
        if pid:
            with anyio.CancelScope(shield=True):
                await _reap(pid)
        for leftover in self._settings.layout.sockets.glob(f"{name}.*"):
            leftover.unlink(missing_ok=True)

    def end_leftovers(self) -> int:
        """End daemons of a server that was killed. Return how many there were."""
        ended = 0
        for pid_file in self._settings.layout.sockets.glob("*.pid"):
            identity = self._running_daemon(pid_file.stem)
            if identity is not None:
                orphans.kill_now(identity)
                ended += 1
        for leftover in self._settings.layout.sockets.iterdir():
            leftover.unlink(missing_ok=True)
        return ended

    async def _start(self, name: str) -> _Daemon:
        """Let the CLI start the daemon, whose first command closes its control port.

        Every daemon opens an unauthenticated HTTP and WebSocket control server on loopback.
        """
        output = await spawn.run(self._start_command(name), seconds=_START_SECONDS)
        reply = parse_reply(output.stdout)
        identity = self._running_daemon(name)
        if any(part in reply.error for part in _TARGET_CLOSED):
            raise _OtherTargetClosed(f"the driver could not be started: {reply.error}")
        if not reply.success or output.exit_code != 0 or identity is None:
            raise SandboxUnavailable(f"the driver could not be started: {reply.error or 'no daemon'}")
        if not orphans.limit_memory(identity, _MAX_DAEMON_BYTES) or self._file(name, "stream").exists():
            raise SandboxUnavailable(
                "the driver could not be started: its control port is open, or its memory could not be limited"
            )
        return _Daemon(identity, await connect(self._file(name, "sock")))

    def _start_command(self, name: str) -> spawn.Command:
        """Contains no client text: agent-browser accepts global options anywhere in its arguments."""
        settings = self._settings
        return spawn.Command(
            argv=(
                *(str(settings.program), "--cdp", str(settings.devtools_port), "--json"),
                *("--session", name, "--pin-tab", "stream", "disable"),
            ),
            env=self._env,
            cwd=settings.layout.driver_home,
            max_output_bytes=_MAX_START_OUTPUT_BYTES,
            account=settings.layout.account,
        )

    async def _wait_for_pid_file(self, name: str) -> None:
        """Give a daemon whose CLI was killed time to write its pid file, so that it can be found and killed."""
        for _ in range(_PID_FILE_POLLS):
            if self._file(name, "pid").exists():
                return
            await anyio.sleep(_POLL_SECONDS)

    def _write_target_file(self, name: str, target_id: str) -> None:
        """Write the file from which a starting daemon reads which page it acts on."""
        path = self._file(name, "target")
        with create_file(path) as file:
            file.write(json.dumps({"targetId": target_id, "url": "about:blank", "pinned": True}).encode("ascii"))
        account = self._settings.layout.account
        if account is not None:
            os.chown(path, account.uid, account.gid, follow_symlinks=False)

    def _file(self, name: str, kind: str) -> Path:
        """The path of a file that belongs to the session's daemon."""
        return self._settings.layout.sockets / f"{name}.{kind}"

    def _pid_in_file(self, name: str) -> int:
        """The pid that the session's daemon wrote; 0 without one."""
        content = read_plain_file(self._file(name, "pid"), max_bytes=_MAX_PID_FILE_BYTES) or b""
        return int(content) if content.strip().isdigit() else 0

    def _running_daemon(self, name: str) -> orphans.ProcessIdentity | None:
        """The live daemon that wrote the session's pid file, if it executes the driver's program."""
        pid = self._pid_in_file(name)
        identity = orphans.identity_of(pid)
        return identity if identity is not None and orphans.runs_program(pid, self._settings.program) else None


async def _reap(pid: int) -> None:
    for _ in range(_REAP_POLLS):
        if orphans.reap(pid):
            return
        await anyio.sleep(_POLL_SECONDS)


def _environment(settings: DriverSettings) -> dict[str, str]:
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": str(settings.layout.driver_home),
        "LC_ALL": "C.UTF-8",
        "NO_COLOR": "1",
        "AGENT_BROWSER_SOCKET_DIR": str(settings.layout.sockets),
        "AGENT_BROWSER_CONFIG": str(settings.config),
        "AGENT_BROWSER_ACTION_POLICY": str(settings.action_policy),
        "AGENT_BROWSER_PLUGINS": "[]",
        "AGENT_BROWSER_NO_WEBMCP": "1",
        # A daemon would accept alerts and beforeunload dialogs, also those of other sessions.
        "AGENT_BROWSER_NO_AUTO_DIALOG": "1",
        "AGENT_BROWSER_SCREENSHOT_DIR": str(settings.layout.driver_home),
        "AGENT_BROWSER_IDLE_TIMEOUT_MS": str(_DAEMON_IDLE_MS),
        "AGENT_BROWSER_DEFAULT_TIMEOUT": "15000",
        # A daemon handles one command at a time: one worker thread and one malloc arena are enough.
        "TOKIO_WORKER_THREADS": "1",
        "MALLOC_ARENA_MAX": "1",
    }
