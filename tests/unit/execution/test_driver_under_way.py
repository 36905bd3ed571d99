"""What drivers are busy with decides what they may be told ahead of the browser."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from browser_shell.execution.driver import AgentBrowserDriver, DriverSettings
from support.processes import open_files

SAYS_NOTHING = "#!/bin/sh\nexec sleep 30\n"
ANSWERS = "#!/bin/sh\necho '[]'\n"


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
