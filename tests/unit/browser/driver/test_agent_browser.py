"""What drivers are busy with decides what they may be told ahead of the browser."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from browser_shell.browser.driver.agent_browser import AgentBrowserDriver, DriverSettings
from browser_shell.core.errors import SandboxUnavailable
from browser_shell.process import orphans
from support.processes import alive, open_files

SAYS_NOTHING = "#!/bin/sh\nexec sleep 30\n"
ANSWERS = "#!/bin/sh\necho '[{\"success\":true}]'\n"
SAYS_WHAT_NOBODY_READS = "#!/bin/sh\necho nonsense\n"
# As agent-browser does: the daemon leaves the group of its CLI at once, and is known once it has written its note.
HAS_A_DAEMON = """#!/bin/sh
setsid sh -c 'echo $$ >"$HOME/born"; sleep 0.15; echo $$ >"$AGENT_BROWSER_SOCKET_DIR/a.pid"; exec sleep 30' &
exec sleep 30
"""

EACH_TIME_ANOTHER_DAEMON = """#!/bin/sh
setsid sleep 30 >/dev/null 2>&1 &
echo $! >"$AGENT_BROWSER_SOCKET_DIR/a.pid"
echo $! >>"$HOME/born"
echo '[{"success":true}]'
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return tmp_path / "driver"


@pytest.fixture
async def driver(tmp_path: Path, program: Path) -> AsyncIterator[AgentBrowserDriver]:
    before = open_files()
    yield AgentBrowserDriver(
        DriverSettings(
            program=program,
            sockets=tmp_path,
            home=tmp_path,
            config=tmp_path / "config",
            action_policy=tmp_path / "policy",
            devtools_port=1,
            screenshot_format="png",
            screenshot_quality=80,
            account=None,
        )
    )
    with anyio.fail_after(5):
        while open_files() > before:  # noqa: ASYNC110  programs that have answered are seen out in their own time
            await anyio.sleep(0.01)


def becomes(program: Path, text: str) -> None:
    program.write_text(text)
    program.chmod(0o755)


async def give_up_on(driver: AgentBrowserDriver, *words: str) -> list[str]:
    """Returns what was under way while it ran."""
    seen: list[str] = []

    async def look() -> None:
        await anyio.sleep(0.1)
        seen.extend(driver.under_way())
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(look)
        await driver.run("a", [words], seconds=20)
    return seen


async def test_a_command_that_nobody_waits_for_is_under_way_until_its_daemon_is_ended(
    driver: AgentBrowserDriver, program: Path
) -> None:
    becomes(program, SAYS_NOTHING)
    assert driver.under_way() == []
    assert await give_up_on(driver, "focus", "#a") == ["focus"]
    assert driver.under_way() == ["focus"]
    await driver.kill("a")
    assert driver.under_way() == []


async def test_the_next_answer_of_the_session_ends_it_too(driver: AgentBrowserDriver, program: Path) -> None:
    becomes(program, SAYS_NOTHING)
    await give_up_on(driver, "type", "#a", "text")
    becomes(program, ANSWERS)
    await driver.run("b", [("get", "url")], seconds=20)
    assert driver.under_way() == ["type"]
    await driver.run("a", [("get", "url")], seconds=20)
    assert driver.under_way() == []


async def test_all_that_were_given_up_are_under_way(driver: AgentBrowserDriver, program: Path) -> None:
    becomes(program, SAYS_NOTHING)
    await give_up_on(driver, "type", "#a", "text")
    await give_up_on(driver, "fill", "#a", "text")
    assert sorted(driver.under_way()) == ["fill", "type"]


async def test_what_is_no_answer_of_the_daemon_ends_nothing(driver: AgentBrowserDriver, program: Path) -> None:
    becomes(program, SAYS_NOTHING)
    await give_up_on(driver, "hover", "#a")
    becomes(program, SAYS_WHAT_NOBODY_READS)
    await driver.run("a", [("get", "url")], seconds=20)
    assert driver.under_way() == ["hover"]


async def test_a_command_that_never_began_is_not_under_way(driver: AgentBrowserDriver) -> None:
    with pytest.raises(SandboxUnavailable):  # There is no program yet.
        await driver.run("a", [("hover", "#a")], seconds=20)
    assert driver.under_way() == []


async def test_a_daemon_whose_start_is_cut_short_is_ended_before_anybody_knows_it(
    driver: AgentBrowserDriver, program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orphans, "runs_program", lambda pid, program: True)  # A script runs its shell.
    becomes(program, HAS_A_DAEMON)
    with anyio.move_on_after(0.1):
        await driver.make_ready("a", "0" * 32)
    daemon = int((tmp_path / "born").read_text())
    with anyio.fail_after(5):
        while alive(daemon):  # noqa: ASYNC110
            await anyio.sleep(0.01)


async def test_a_daemon_that_another_has_replaced_is_ended(
    driver: AgentBrowserDriver, program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orphans, "runs_program", lambda pid, program: True)
    becomes(program, EACH_TIME_ANOTHER_DAEMON)
    await driver.make_ready("a", "0" * 32)
    await driver.run("a", [("get", "url")], seconds=20)
    first, *others = [int(pid) for pid in (tmp_path / "born").read_text().split()]
    replaced = not alive(first)
    await driver.kill("a")
    for pid in filter(alive, others):
        os.kill(pid, signal.SIGKILL)
    assert replaced
