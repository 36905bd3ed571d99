"""Runs agent-browser: a constant command line, the command as JSON on stdin, the environment listed in full."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio

from browser_shell.browser.driver.reply import DriverReply, read_reply
from browser_shell.core.errors import SandboxUnavailable
from browser_shell.core.json_values import JsonValue
from browser_shell.process import orphans, spawn
from browser_shell.process.accounts import Account
from browser_shell.process.conversation import Bounds
from browser_shell.process.spares import SpareCommands

Words = Sequence[str]
_Note = tuple[int, int]
"""Which file it is, and when it was written."""

# A snapshot of a page with 900 controls is 73 kB; this leaves room for one fifty times as large.
_MAX_OUTPUT_BYTES = 4 * 1024 * 1024
_PREPARE_SECONDS = 15.0
_POLL_SECONDS = 0.01
_REAP_POLLS = 100
_NEWBORN_POLLS = 30
_SETTLE_SECONDS = 1.0
_DAEMON_IDLE_MS = 600_000
# A daemon keeps what its pages write to their consoles, as much as they write, and it lives outside the jail. At work
# it takes 13 MB, and 270 MB for a picture of 62 MB, which is more than may be handed out.
_MAX_DAEMON_BYTES = 512 * 1024 * 1024
_NO_ANSWER_OF_THE_DAEMON = frozenset({"unreadable", "output_too_large", "outcome_unknown", "page_wedged"})

# agent-browser's own names of what our commands do. The second layer: a command that slipped past our grammar
# would still be refused by the daemon.
ALLOWED_ACTIONS = (
    *("launch", "navigate", "back", "forward", "reload", "url", "title", "gettext", "snapshot"),
    *(
        "click",
        "dblclick",
        "hover",
        "focus",
        "check",
        "uncheck",
        "fill",
        "type",
        "keyboard",
        "press",
        "select",
        "scroll",
    ),
    *("wait", "waitforurl", "waitforloadstate", "isvisible", "isenabled", "ischecked"),
    *("screenshot", "pdf", "tab_switch", "stream_disable"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverSettings:
    """Where the driver is and where it keeps its files."""

    program: Path
    sockets: Path
    """Private to the account, and short: a socket's path has at most 107 bytes."""
    home: Path
    """Empty. The driver would read a configuration from it."""
    config: Path
    """An empty configuration: naming it turns off the ones that the driver would look for."""
    action_policy: Path
    devtools_port: int
    screenshot_format: str
    screenshot_quality: int
    account: Account | None


def write_driver_files(settings: DriverSettings) -> None:
    """Writes the constant files that the environment points to."""
    for path, content in (
        (settings.config, {}),
        (settings.action_policy, {"default": "deny", "allow": list(ALLOWED_ACTIONS)}),
    ):
        path.unlink(missing_ok=True)  # An earlier server's own, which it made unwritable.
        path.write_text(json.dumps(content), encoding="utf-8")
        path.chmod(0o444)


@dataclass(frozen=True, slots=True)
class _Daemon:
    """Of one session, made ready."""

    witness: orphans.LivenessProbe
    note: _Note
    """Of its pid file: another daemon would write its own."""


class AgentBrowserDriver:
    """The agent-browser CLI and its daemons, one daemon a session."""

    def __init__(self, settings: DriverSettings) -> None:
        self._settings = settings
        self._env = _environment(settings)
        self._daemons: dict[str, _Daemon] = {}
        self._busy: dict[str, Sequence[Words]] = {}
        """The sessions whose driver is at work, and with what."""
        self._adrift: dict[str, frozenset[str]] = {}
        """The commands that a daemon may still be busy with although nobody waits for them. They are over with the
        daemon, or with its next answer: a daemon does one thing after the other."""
        self._let_go: dict[str, set[orphans.ProcessIdentity]] = {}
        """Daemons that were not ended when another took their place. They end with their session at the latest."""
        self._spares = SpareCommands(self._command, in_use=self._busy.__contains__)

    async def keep_spares(self) -> None:
        """Has the next CLI of each session waiting on its stdin, until cancelled: half of a short call is its start."""
        await self._spares.run()

    async def make_ready(self, name: str, target_id: str) -> bool:
        """Starts the session's daemon on this page if it does not run. True when it is a new one.

        Raises: SandboxUnavailable.
        """
        if self._is_ready(name):
            return False
        await self.kill(name)
        self._pin(name, target_id)
        await self._close_control_port(name)
        return True

    async def run(self, name: str, commands: Sequence[Words], *, annotate: bool = False, seconds: float) -> DriverReply:
        """Runs the commands in order, stopping at the first failure, and returns what the last one said.

        Raises: ExecutionTimedOut, SandboxUnavailable.
        """
        self._busy[name] = commands
        try:
            reply = await self._invoke(name, commands, annotate=annotate, seconds=seconds)
            if reply.code not in _NO_ANSWER_OF_THE_DAEMON:
                self._adrift.pop(name, None)
        except SandboxUnavailable:
            raise  # The CLI did not start.
        except BaseException:
            self._adrift[name] = self._adrift.get(name, frozenset()) | {words[0] for words in commands}
            raise
        finally:
            del self._busy[name]
        if name in self._daemons:
            self._spares.wish(name)
            if not self._is_ready(name):
                await self._replace(name)
        return reply

    def _is_ready(self, name: str) -> bool:
        """Whether the daemon that was made ready lives, and is still the session's."""
        known = self._daemons.get(name)
        return known is not None and known.witness.lives and self._note_of(name) == known.note

    async def _replace(self, name: str) -> None:
        """The CLI found the daemon dead, and may have started another, with the control port that each one opens."""
        known, running = self._forget(name), self._daemon_of(name)
        if known is not None and known != running:
            orphans.kill_now(known)
            await _reap(known.pid)
        if running is not None:
            await self._close_control_port(name)

    def _forget(self, name: str) -> orphans.ProcessIdentity | None:
        known = self._daemons.pop(name, None)
        if known is None:
            return None
        known.witness.close()
        return known.witness.mark

    def under_way(self) -> list[str]:
        """The names of the commands that drivers are busy with. For any thread."""
        busy = [words[0] for commands in (*self._busy.values(),) for words in commands]
        return [*busy, *(word for adrift in (*self._adrift.values(),) for word in adrift)]

    def foresee(self, name: str) -> None:
        """A command of this session is about to come: its CLI may start now, and waits for its words."""
        if name in self._daemons and name not in self._busy:
            self._spares.start(name)

    async def settle(self, name: str) -> None:
        """Waits a moment until the idle daemons of other sessions have taken note of this session's new page.

        Every daemon attaches to every page of the browser. One that is still at it when that page begins to load would
        answer its own session only when the page has come, however long that takes.
        """
        with anyio.move_on_after(_SETTLE_SECONDS):
            async with anyio.create_task_group() as tasks:
                for other in self._daemons.keys() - self._busy.keys() - {name}:
                    tasks.start_soon(self._hear_from, other)

    async def _hear_from(self, name: str) -> None:
        """A daemon answers one request after another, so any answer says that it has done what came before."""
        try:
            async with await anyio.connect_unix(self._settings.sockets / f"{name}.sock") as stream:
                await stream.send(b'{"id":"settle","action":"settle"}\n')  # Nothing the action policy allows.
                await stream.receive()
        except (OSError, anyio.EndOfStream, anyio.BrokenResourceError):
            return

    def replace_later(self, name: str) -> None:
        """The session's daemon is busy with a command that nobody waits for; the next command gets another one.

        Not killed at once: a dialog that is open would be answered with no.
        """
        known = self._forget(name)
        if known is not None:
            self._let_go.setdefault(name, set()).add(known)

    async def kill(self, name: str) -> None:
        """Ends the daemon at once. SIGTERM would wait for the command that it is busy with."""
        # First: no spare is started for a daemon that is no more.
        known = self._forget(name)
        await self._spares.drop(name)
        marks = {mark for mark in (known, self._daemon_of(name)) if mark is not None} | self._let_go.pop(name, set())
        for mark in marks:
            orphans.kill_now(mark)
        self._adrift.pop(name, None)
        with anyio.CancelScope(shield=True):
            for mark in marks:
                await _reap(mark.pid)
        for leftover in self._settings.sockets.glob(f"{name}.*"):
            leftover.unlink(missing_ok=True)

    def end_leftovers(self) -> int:
        """Ends daemons of a server that was killed. Returns how many there were."""
        ended = 0
        for note in self._settings.sockets.glob("*.pid"):
            mark = self._daemon_of(note.stem)
            if mark is not None:
                orphans.kill_now(mark)
                ended += 1
        for leftover in self._settings.sockets.iterdir():
            leftover.unlink(missing_ok=True)
        return ended

    async def _close_control_port(self, name: str) -> None:
        """Every daemon opens an unauthenticated control server on loopback; close it before anything else happens."""
        try:
            reply = await self._invoke(name, [("stream", "disable")], annotate=False, seconds=_PREPARE_SECONDS)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self._end_newborn(name)
            raise
        note, mark = self._note_of(name), self._daemon_of(name)
        witness = _witness_of(mark) if mark is not None else None
        bounded = mark is not None and orphans.bound_memory(mark, _MAX_DAEMON_BYTES)
        if not (reply.success and note and witness and bounded) or self._control_port_of(name).exists():
            if witness is not None:
                witness.close()
            await self.kill(name)
            raise SandboxUnavailable(f"the driver could not be made ready: {reply.error or 'no daemon'}")
        self._daemons[name] = _Daemon(witness, note)

    async def _end_newborn(self, name: str) -> None:
        """Its CLI was ended, but a daemon may be on its way: it can be found once it has written its note."""
        for _ in range(_NEWBORN_POLLS):
            if self._note_of(name) is not None:
                break
            await anyio.sleep(_POLL_SECONDS)
        await self.kill(name)

    async def _invoke(self, name: str, commands: Sequence[Words], *, annotate: bool, seconds: float) -> DriverReply:
        stdin: JsonValue = [list(words) for words in commands]
        begun = None if annotate else await self._spares.take(name)
        if begun is None:
            begun = spawn.begin(self._command(name, annotate=annotate))
        return read_reply(await spawn.finish(begun, json.dumps(stdin).encode("utf-8"), seconds=seconds))

    def _command(self, name: str, *, annotate: bool = False) -> spawn.Command:
        return spawn.Command(
            argv=self._argv(name, annotate=annotate),
            env=self._env,
            cwd=self._settings.home,
            bounds=Bounds(max_output_bytes=_MAX_OUTPUT_BYTES, one_line=True),
            account=self._settings.account,
        )

    def _argv(self, name: str, *, annotate: bool) -> tuple[str, ...]:
        """Nothing that a client said is ever in here: agent-browser takes global flags from anywhere in its argv."""
        return (
            *(str(self._settings.program), "--cdp", str(self._settings.devtools_port), "--json"),
            *("--session", name, "--pin-tab"),
            *(("--annotate",) if annotate else ()),
            *("batch", "--bail", "--omit-command"),
        )

    def _pin(self, name: str, target_id: str) -> None:
        """The daemon reads at its start which page is its own."""
        path = self._settings.sockets / f"{name}.target"
        content = json.dumps({"targetId": target_id, "url": "about:blank", "pinned": True})
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(content)
        if self._settings.account is not None:
            os.chown(path, self._settings.account.uid, self._settings.account.gid, follow_symlinks=False)

    def _control_port_of(self, name: str) -> Path:
        return self._settings.sockets / f"{name}.stream"

    def _note_of(self, name: str) -> _Note | None:
        try:
            found = os.lstat(f"{self._settings.sockets}/{name}.pid")
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns

    def _daemon_of(self, name: str) -> orphans.ProcessIdentity | None:
        """The live daemon that wrote the session's pid file, if it really is the driver's program."""
        try:
            handle = os.open(f"{self._settings.sockets}/{name}.pid", os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return None
        try:
            pid = int(os.read(handle, 32))
        except ValueError:
            return None
        finally:
            os.close(handle)
        mark = orphans.mark_of(pid)
        return mark if mark is not None and orphans.runs_program(pid, self._settings.program) else None


def _witness_of(mark: orphans.ProcessIdentity) -> orphans.LivenessProbe | None:
    try:
        return orphans.LivenessProbe(mark)
    except OSError:
        return None


async def _reap(pid: int) -> None:
    for _ in range(_REAP_POLLS):
        if orphans.reap(pid):
            return
        await anyio.sleep(_POLL_SECONDS)


def _environment(settings: DriverSettings) -> dict[str, str]:
    """Identical for every call: the CLI restarts a daemon whose settings differ, and without its action policy."""
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": str(settings.home),
        "LC_ALL": "C.UTF-8",
        "NO_COLOR": "1",
        "AGENT_BROWSER_SOCKET_DIR": str(settings.sockets),
        "AGENT_BROWSER_CONFIG": str(settings.config),
        "AGENT_BROWSER_ACTION_POLICY": str(settings.action_policy),
        "AGENT_BROWSER_PLUGINS": "[]",
        "AGENT_BROWSER_NO_WEBMCP": "1",
        "AGENT_BROWSER_SCREENSHOT_DIR": str(settings.home),
        "AGENT_BROWSER_SCREENSHOT_FORMAT": settings.screenshot_format,
        "AGENT_BROWSER_SCREENSHOT_QUALITY": str(settings.screenshot_quality),
        "AGENT_BROWSER_IDLE_TIMEOUT_MS": str(_DAEMON_IDLE_MS),
        "AGENT_BROWSER_DEFAULT_TIMEOUT": "15000",
        # A daemon serves one session, one command after the other. As on a machine with one core it then has one
        # thread for that instead of one per core, which hand work to each other; and one heap.
        "TOKIO_WORKER_THREADS": "1",
        "MALLOC_ARENA_MAX": "1",
    }
