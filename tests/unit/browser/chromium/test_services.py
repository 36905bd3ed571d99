"""Files and life time of the browser's programs. Links in place of their files are replaced, never opened."""

from __future__ import annotations

import stat
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import cast

import anyio
import pytest
from anyio.abc import Process

from browser_shell.browser.chromium import display as display_module
from browser_shell.browser.chromium.display import RunningDisplay, keep_window_manager, running_display
from browser_shell.browser.chromium.jail import JailSettings, running_jail
from browser_shell.browser.chromium.process import ChromiumSettings, unjailed_chromium
from browser_shell.browser.chromium.services import open_new_file, running_service
from browser_shell.core.errors import BrowserUnavailable, SandboxUnavailable
from support.layouts import flat_layout
from support.processes import alive, open_files

RECORDS = b"audit records\n"


def service(directory: Path, *argv: str) -> AbstractAsyncContextManager[Process]:
    for name in ("identities", "logs"):
        (directory / name).mkdir(exist_ok=True)
    return running_service(
        "test",
        argv=argv,
        env={"NAME": "value"},
        cwd=directory,
        layout=replace(flat_layout(directory), identities=directory / "identities", logs=directory / "logs"),
        grace_seconds=1,
    )


async def test_a_service_writes_its_output_to_its_log_file(tmp_path: Path) -> None:
    async with service(tmp_path, "/bin/sh", "-c", 'echo "$NAME" >&2') as process:
        assert await process.wait() == 0
    assert (tmp_path / "logs" / "test.log").read_text() == "value\n"


async def test_a_service_is_stopped_and_its_identity_removed_at_the_end_of_the_block(tmp_path: Path) -> None:
    async with service(tmp_path, "/bin/sleep", "60") as process:
        assert (tmp_path / "identities" / "test").read_text().split()[0] == str(process.pid)
    assert not alive(process.pid)
    assert not (tmp_path / "identities" / "test").exists()


@pytest.mark.parametrize("name", ["logs/test.log", "identities/test"])
async def test_a_directory_in_place_of_a_file_is_reported_and_nothing_is_left(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir(parents=True)
    files = open_files()
    with pytest.raises(BrowserUnavailable, match=r"^test(\.log)? cannot be created \(Is a directory\)"):
        async with service(tmp_path, "/bin/sleep", "60"):
            pytest.fail("the service has started")
    assert open_files() == files


async def test_a_directory_in_place_of_the_identity_does_not_keep_a_service_from_ending(tmp_path: Path) -> None:
    async with service(tmp_path, "/bin/sleep", "60") as process:
        (tmp_path / "identities" / "test").unlink()
        (tmp_path / "identities" / "test").mkdir()
    assert not alive(process.pid)


def test_a_missing_directory_is_reported(tmp_path: Path) -> None:
    with pytest.raises(BrowserUnavailable, match="No such file or directory"):
        open_new_file(tmp_path / "absent" / "test.log")


@asynccontextmanager
async def start_window_manager(directory: Path) -> AsyncIterator[None]:
    display = RunningDisplay(process=cast(Process, None), env={})
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(keep_window_manager, flat_layout(directory), display)
        with anyio.fail_after(5):
            while (directory / "window-manager.log").is_symlink():  # noqa: ASYNC110  a file has no event
                await anyio.sleep(0.01)
        yield
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def start_jail(directory: Path) -> AsyncIterator[None]:
    settings = JailSettings(layout=flat_layout(directory))
    async with running_jail(settings, ("/bin/true",), {}):
        yield


@asynccontextmanager
async def start_chromium(directory: Path) -> AsyncIterator[None]:
    settings = ChromiumSettings(
        program=Path("/bin/true"),
        layout=flat_layout(directory),
        port=9222,
        width=1,
        height=1,
        proxy_port=1,
        timezone="",
    )
    async with unjailed_chromium(settings, {}):
        yield


@asynccontextmanager
async def start_display(directory: Path) -> AsyncIterator[None]:
    async with running_display(flat_layout(directory), width=640, height=480):
        yield


@pytest.mark.promise("audit:no-links")
@pytest.mark.parametrize(
    ("start", "names"),
    [
        (start_display, ["xvnc.log", "xvnc", "Xauthority"]),
        (start_window_manager, ["window-manager.log", "window-manager"]),
        (start_jail, ["chromium.log", "chromium"]),
        (start_chromium, ["chromium.log", "chromium"]),
    ],
)
async def test_every_program_gets_new_files_in_place_of_links(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    start: Callable[[Path], AbstractAsyncContextManager[None]],
    names: list[str],
) -> None:
    monkeypatch.setattr(display_module, "XVNC", "/bin/true")
    (tmp_path / "audit.jsonl").write_bytes(RECORDS)
    for name in names:
        (tmp_path / name).symlink_to(tmp_path / "audit.jsonl")
    files = open_files()
    with suppress(SandboxUnavailable):  # With these settings neither a display nor a jail becomes ready.
        async with start(tmp_path):
            pass
    assert stat.S_ISREG((tmp_path / names[0]).lstat().st_mode)
    assert (tmp_path / "audit.jsonl").read_bytes() == RECORDS
    assert open_files() == files
