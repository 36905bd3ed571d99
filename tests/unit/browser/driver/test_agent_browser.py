"""Starting and ending daemons, with scripts in the place of agent-browser for faults that it does not produce."""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from browser_shell.browser.driver.actions import Navigate, PageAction
from browser_shell.browser.driver.agent_browser import AgentBrowserDriver, DriverSettings, write_driver_files
from browser_shell.core.errors import ExecutionTimedOut, SandboxUnavailable
from browser_shell.process import orphans
from support.layouts import flat_layout
from support.processes import alive, open_files, state

GET_URL = PageAction(action="url")
ALLOWED = (
    *("launch", "navigate", "back", "forward", "reload", "url", "waitforurl", "waitforloadstate"),
    *("pdf", "tab_switch", "stream_disable"),
)
DAEMON = """
import json, os, socket, sys, time
place = os.environ["AGENT_BROWSER_SOCKET_DIR"]
if os.fork():
    while not os.path.exists(place + "/a.sock"):
        time.sleep(0.01)
    print(json.dumps({"success": SUCCESS, "data": {}, "error": None if SUCCESS else "no browser"}))
    sys.exit()
os.setsid()
with open(place + "/started", "a") as file:
    file.write(f"{os.getpid()}\\n")
listener = socket.socket(socket.AF_UNIX)
listener.bind(place + "/new.sock")
listener.listen()
with open(place + "/a.pid", "w") as file:
    file.write(str(os.getpid()))
os.close(1)
os.close(2)
os.rename(place + "/new.sock", place + "/a.sock")
while True:
    client, _ = listener.accept()
    for line in client.makefile("rb"):
        client.sendall(REPLY)
"""
REPLIES = DAEMON.replace("SUCCESS", "True").replace("REPLY", 'b\'{"success":true,"data":{}}\\n\'')
NEVER_REPLIES = DAEMON.replace("SUCCESS", "True").replace("client.sendall(REPLY)", "time.sleep(60)")
CLOSES_CONNECTIONS = DAEMON.replace("SUCCESS", "True").replace("client.sendall(REPLY)", "break\n    client.close()")
REFUSES_TO_START = DAEMON.replace("SUCCESS", "False").replace("REPLY", "b''")
MEETS_A_CLOSED_PAGE = DAEMON.replace('"no browser"', '"CDP error (Runtime.enable): Session with given id not found"')
FAILS_ONCE = (
    MEETS_A_CLOSED_PAGE.replace("SUCCESS", "is_second")
    .replace("REPLY", "b''")
    .replace("if os.fork():", "is_second = os.path.exists(place + '/started')\nif os.fork():")
)
KEEPS_ITS_CONTROL_PORT = REPLIES.replace("os.setsid()", "os.setsid(); open(place + '/a.stream', 'w').close()")
DIES_AT_ITS_START = """
import json, os, sys, time
place = os.environ["AGENT_BROWSER_SOCKET_DIR"]
daemon = os.fork()
if daemon:
    os.waitid(os.P_PID, daemon, os.WEXITED | os.WNOWAIT)
    print(json.dumps({"success": True, "data": {}}))
    sys.exit()
os.setsid()
for file in ("/started", "/a.pid"):
    open(place + file, "w").write(str(os.getpid()))
"""
WRITES_ITS_PID_LATE = """
import os, time
place = os.environ["AGENT_BROWSER_SOCKET_DIR"]
if os.fork():
    time.sleep(60)
os.setsid()
with open(place + "/started", "a") as file:
    file.write(f"{os.getpid()}\\n")
time.sleep(0.15)
with open(place + "/a.pid", "w") as file:
    file.write(str(os.getpid()))
time.sleep(60)
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return tmp_path / "agent-browser"


@pytest.fixture
async def driver(tmp_path: Path, program: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[AgentBrowserDriver]:
    monkeypatch.setattr(orphans, "runs_program", lambda pid, program: True)  # A script runs its interpreter.
    before = open_files()
    driver = AgentBrowserDriver(DriverSettings(program=program, layout=flat_layout(tmp_path), devtools_port=1))
    yield driver
    await driver.kill("a")
    await anyio.wait_all_tasks_blocked()  # The event loop closes a connection in its next iteration.
    assert open_files() <= before


def install(program: Path, script: str) -> None:
    program.write_text(f"#!/usr/bin/python3 -IS\n{script}")
    program.chmod(0o755)


def started(directory: Path) -> list[int]:
    """The pids of the daemons that were started, oldest first."""
    return [int(pid) for pid in (directory / "started").read_text().split()]


async def is_gone(pid: int) -> bool:
    with anyio.move_on_after(5):
        while alive(pid):  # noqa: ASYNC110  there is no event to wait for
            await anyio.sleep(0.01)
        return True
    return False


async def test_one_daemon_serves_all_commands_of_a_session(
    driver: AgentBrowserDriver, program: Path, tmp_path: Path
) -> None:
    install(program, REPLIES)
    assert await driver.make_ready("a", "target")
    assert not await driver.make_ready("a", "target")
    for _ in range(3):
        assert (await driver.run("a", GET_URL, seconds=20)).success
    assert len(started(tmp_path)) == 1


async def test_a_start_that_met_a_closed_page_of_another_session_is_repeated(
    driver: AgentBrowserDriver, program: Path, tmp_path: Path
) -> None:
    install(program, FAILS_ONCE)
    assert await driver.make_ready("a", "target")
    assert len(started(tmp_path)) == 2


async def test_a_start_is_repeated_only_once(driver: AgentBrowserDriver, program: Path, tmp_path: Path) -> None:
    install(program, MEETS_A_CLOSED_PAGE.replace("SUCCESS", "False").replace("REPLY", "b''"))
    with pytest.raises(SandboxUnavailable, match="not found"):
        await driver.make_ready("a", "target")
    assert len(started(tmp_path)) == 2


async def test_a_daemon_that_died_is_replaced_before_the_next_command(
    driver: AgentBrowserDriver, program: Path, tmp_path: Path
) -> None:
    install(program, REPLIES)
    await driver.make_ready("a", "target")
    (first,) = started(tmp_path)
    identity = orphans.identity_of(first)
    assert identity is not None
    orphans.kill_now(identity)
    assert await is_gone(first)
    assert await driver.make_ready("a", "target")
    assert (await driver.run("a", GET_URL, seconds=20)).success
    assert len(started(tmp_path)) == 2


async def test_a_daemon_that_dies_during_a_command_is_an_error(
    driver: AgentBrowserDriver, program: Path, tmp_path: Path
) -> None:
    install(program, NEVER_REPLIES)
    await driver.make_ready("a", "target")
    (daemon,) = started(tmp_path)

    async def kill() -> None:
        await anyio.wait_all_tasks_blocked()
        identity = orphans.identity_of(daemon)
        assert identity is not None
        orphans.kill_now(identity)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(kill)
        with pytest.raises(SandboxUnavailable):
            await driver.run("a", GET_URL, seconds=20)


async def test_a_command_without_a_reply_ends_at_its_deadline(driver: AgentBrowserDriver, program: Path) -> None:
    install(program, NEVER_REPLIES)
    await driver.make_ready("a", "target")
    with pytest.raises(ExecutionTimedOut):
        await driver.run("a", GET_URL, seconds=0.1)


async def test_a_detached_daemon_lives_until_its_session_ends(
    driver: AgentBrowserDriver, program: Path, tmp_path: Path
) -> None:
    install(program, NEVER_REPLIES)
    await driver.make_ready("a", "target")
    (detached,) = started(tmp_path)
    driver.detach("a")
    assert alive(detached)
    with pytest.raises(SandboxUnavailable, match="no driver"):
        await driver.run("a", GET_URL, seconds=20)
    await driver.kill("a")
    assert await is_gone(detached)


@pytest.mark.parametrize("script", [REFUSES_TO_START, KEEPS_ITS_CONTROL_PORT])
async def test_a_daemon_that_is_not_ready_is_killed(
    driver: AgentBrowserDriver, program: Path, tmp_path: Path, script: str
) -> None:
    install(program, script)
    with pytest.raises(SandboxUnavailable, match="could not be started"):
        await driver.make_ready("a", "target")
    (daemon,) = started(tmp_path)
    assert await is_gone(daemon)
    assert not list(tmp_path.glob("a.*"))


@pytest.mark.promise("process:no-orphan")
async def test_a_cancelled_start_leaves_no_daemon(driver: AgentBrowserDriver, program: Path, tmp_path: Path) -> None:
    install(program, WRITES_ITS_PID_LATE)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(driver.make_ready, "a", "target")
        with anyio.fail_after(10):
            while not (tmp_path / "started").exists():  # noqa: ASYNC110  written by another process
                await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()
    (daemon,) = started(tmp_path)
    assert await is_gone(daemon)


@pytest.mark.promise("process:no-orphan")
async def test_a_daemon_that_dies_at_its_start_leaves_no_zombie(
    driver: AgentBrowserDriver, program: Path, tmp_path: Path
) -> None:
    install(program, DIES_AT_ITS_START)
    orphans.adopt_orphans()
    try:
        with pytest.raises(SandboxUnavailable, match="no daemon"):
            await driver.make_ready("a", "target")
        (daemon,) = started(tmp_path)
        assert state(daemon) == ""
    finally:
        ctypes.CDLL(None).prctl(orphans._PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


async def test_a_missing_program_is_an_error(driver: AgentBrowserDriver) -> None:
    with pytest.raises(SandboxUnavailable, match="cannot start agent-browser"):
        await driver.make_ready("a", "target")


@pytest.mark.promise("process:no-orphan")
async def test_daemons_of_an_earlier_server_are_killed(
    driver: AgentBrowserDriver, program: Path, tmp_path: Path
) -> None:
    install(program, REPLIES)
    await driver.make_ready("a", "target")
    (daemon,) = started(tmp_path)
    later = AgentBrowserDriver(driver._settings)
    program.unlink()
    (tmp_path / "started").unlink()
    assert later.end_leftovers() == 1
    assert await is_gone(daemon)


async def test_a_daemon_that_does_not_read_a_large_request_is_killed_in_time(
    driver: AgentBrowserDriver, program: Path, tmp_path: Path
) -> None:
    install(program, NEVER_REPLIES)
    await driver.make_ready("a", "target")
    large = Navigate(url="x" * 4_000_000)
    for action in (GET_URL, large):
        with pytest.raises(ExecutionTimedOut):
            await driver.run("a", action, seconds=0.1)
    started_at = anyio.current_time()
    await driver.kill("a")
    assert anyio.current_time() - started_at < 20
    (daemon,) = started(tmp_path)
    assert await is_gone(daemon)


async def test_a_daemon_that_closed_its_connection_is_replaced_before_the_next_command(
    driver: AgentBrowserDriver, program: Path, tmp_path: Path
) -> None:
    install(program, CLOSES_CONNECTIONS)
    await driver.make_ready("a", "target")
    with pytest.raises(SandboxUnavailable):
        await driver.run("a", GET_URL, seconds=20)
    assert await driver.make_ready("a", "target")
    first, _ = started(tmp_path)
    assert await is_gone(first)


async def test_the_known_daemon_is_killed_and_not_another_process_named_in_its_pid_file(
    driver: AgentBrowserDriver, program: Path, tmp_path: Path
) -> None:
    install(program, REPLIES)
    await driver.make_ready("a", "target")
    (daemon,) = started(tmp_path)
    async with await anyio.open_process(["/bin/sleep", "60"]) as other:
        (tmp_path / "a.pid").write_text(str(other.pid))
        await driver.kill("a")
        assert await is_gone(daemon)
        assert alive(other.pid)
        other.kill()


@pytest.mark.parametrize("content", ["", "0", "-1", "x", "9" * 8, "9" * 30])
async def test_a_pid_file_without_a_pid_names_no_process(
    driver: AgentBrowserDriver, tmp_path: Path, content: str
) -> None:
    (tmp_path / "a.pid").write_text(content)
    async with await anyio.open_process(["/bin/true"]) as child:
        await driver.kill("a")
        assert await child.wait() == 0
    assert not list(tmp_path.glob("a.*"))


async def test_a_pid_file_that_is_a_fifo_is_not_opened(driver: AgentBrowserDriver, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.pid")
    await driver.kill("a")
    assert not list(tmp_path.glob("a.*"))


async def test_idle_daemons_of_other_sessions_are_waited_for_and_busy_ones_are_not(
    driver: AgentBrowserDriver, program: Path
) -> None:
    install(program, NEVER_REPLIES)
    await driver.make_ready("a", "target")
    durations = []
    for _ in range(2):
        started_at = anyio.current_time()
        await driver.wait_for_idle_daemons(except_for="b")
        durations.append(anyio.current_time() - started_at)
        with pytest.raises(ExecutionTimedOut):
            await driver.run("a", GET_URL, seconds=0.1)
    assert durations[0] >= 0.9
    assert durations[1] < 0.5


async def test_the_daemons_own_policy_allows_only_actions_that_are_used(
    driver: AgentBrowserDriver, tmp_path: Path
) -> None:
    write_driver_files(driver._settings)
    policy = json.loads((tmp_path / "action-policy.json").read_text())
    assert policy == {"default": "deny", "allow": sorted(ALLOWED)}
