"""Health probes and the private socket that serves their results."""

from __future__ import annotations

import stat
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from browser_shell.commands.health import render
from browser_shell.core.errors import BrowserUnavailable
from browser_shell.ops.health import PROBE_SECONDS, SOCKET_NAME, Health, Probe, ask_health, examine, serve_health


async def working() -> None:
    return


async def restarting() -> None:
    raise BrowserUnavailable("Chromium is restarting")


async def missing() -> None:
    raise FileNotFoundError(2, "No such file")


async def hanging() -> None:
    await anyio.sleep_forever()


@asynccontextmanager
async def serving(directory: Path, probes: Mapping[str, Probe]) -> AsyncIterator[Path]:
    path = directory / SOCKET_NAME
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve_health, directory, probes)
        with anyio.fail_after(5):
            while not path.is_socket() or stat.S_IMODE(path.stat().st_mode) != 0o600:  # noqa: ASYNC110  # a file
                await anyio.sleep(0.01)
        yield path
        tasks.cancel_scope.cancel()


async def query(path: Path) -> Health:
    return await anyio.to_thread.run_sync(ask_health, path)


async def test_server_is_ready_when_every_part_works(tmp_path: Path) -> None:
    async with serving(tmp_path, {"display": working, "cdp": working}) as path:
        health = await query(path)
    assert (health.live, health.ready, health.parts) == (True, True, {"display": "", "cdp": ""})


async def test_server_with_a_faulty_part_is_live_but_not_ready(tmp_path: Path) -> None:
    async with serving(tmp_path, {"display": working, "cdp": restarting, "driver": missing}) as path:
        health = await query(path)
    assert (health.live, health.ready) == (True, False)
    assert health.parts == {"display": "", "cdp": "Chromium is restarting", "driver": "No such file"}
    assert "cdp        Chromium is restarting" in render(health)


async def test_probe_without_an_answer_is_a_fault() -> None:
    health = await examine({"cdp": hanging, "display": working})
    assert health.parts == {"cdp": f"no answer within {PROBE_SECONDS:.0f} s", "display": ""}


@pytest.mark.promise("health:private")
async def test_socket_is_accessible_to_its_owner_only(tmp_path: Path) -> None:
    async with serving(tmp_path, {}) as path:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not path.exists()


async def test_socket_of_a_killed_server_is_replaced(tmp_path: Path) -> None:
    (tmp_path / SOCKET_NAME).touch()
    async with serving(tmp_path, {}) as path:
        assert (await query(path)).ready


async def test_client_disconnect_does_not_stop_the_server(tmp_path: Path) -> None:
    async with serving(tmp_path, {}) as path:
        for _ in range(5):
            async with await anyio.connect_unix(path):
                pass
        assert (await query(path)).live


def test_missing_server_is_not_live(tmp_path: Path) -> None:
    health = ask_health(tmp_path / "none")
    assert (health.live, health.ready) == (False, False)
    assert render(health) == "no server answers"
