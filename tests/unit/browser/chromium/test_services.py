"""Log files of the browser side are new regular files. Links and FIFOs in their place are removed, never opened."""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import cast

import anyio
import pytest
from anyio.abc import Process

from browser_shell.browser.chromium import display as display_module
from browser_shell.browser.chromium.display import DisplaySettings, RunningDisplay, keep_window_manager, running_display
from browser_shell.browser.chromium.jail import JailSettings, running_jail
from browser_shell.browser.chromium.log_files import open_log_file
from browser_shell.browser.chromium.process import ChromiumSettings, unjailed_chromium
from browser_shell.core.errors import BrowserUnavailable, SandboxUnavailable
from support.processes import open_files

RECORDS = b"audit records\n"


def test_a_missing_file_is_created_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "chromium.log"
    with open_log_file(path) as log:
        log.write(b"output")
        assert not os.get_inheritable(log.fileno())
    assert path.read_bytes() == b"output"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_an_existing_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "chromium.log"
    path.write_bytes(b"output of an earlier run")
    with open_log_file(path) as log:
        log.write(b"new")
    assert path.read_bytes() == b"new"


def make_symlink(path: Path) -> None:
    path.symlink_to(path.with_name("audit.jsonl"))


def make_dangling_symlink(path: Path) -> None:
    path.symlink_to(path.with_name("absent"))


def make_hard_link(path: Path) -> None:
    path.hardlink_to(path.with_name("audit.jsonl"))


@pytest.mark.parametrize("make_entry", [make_symlink, make_dangling_symlink, make_hard_link, os.mkfifo])
def test_a_link_or_fifo_is_replaced_and_its_target_is_left_unchanged(
    tmp_path: Path, make_entry: Callable[[Path], None]
) -> None:
    records, path = tmp_path / "audit.jsonl", tmp_path / "chromium.log"
    records.write_bytes(RECORDS)
    make_entry(path)
    with open_log_file(path) as log:
        log.write(b"output")
    assert stat.S_ISREG(path.lstat().st_mode)
    assert path.read_bytes() == b"output"
    assert records.read_bytes() == RECORDS
    assert not (tmp_path / "absent").exists()


def test_a_fifo_with_a_reader_receives_nothing(tmp_path: Path) -> None:
    path = tmp_path / "chromium.log"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with open_log_file(path) as log:
            log.write(b"output")
        assert os.read(reader, 100) == b""
    finally:
        os.close(reader)


def test_a_directory_is_reported_and_left_unchanged(tmp_path: Path) -> None:
    (tmp_path / "chromium.log").mkdir()
    files = open_files()
    with pytest.raises(BrowserUnavailable, match=r"^chromium\.log cannot be created \(Is a directory\)"):
        open_log_file(tmp_path / "chromium.log")
    assert (tmp_path / "chromium.log").is_dir()
    assert open_files() == files


def test_an_entry_that_appears_after_the_removal_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, records = tmp_path / "chromium.log", tmp_path / "audit.jsonl"
    records.write_bytes(RECORDS)
    make_symlink(path)
    monkeypatch.setattr(Path, "unlink", lambda *_, **__: None)  # As if the link were made again at once.
    with pytest.raises(BrowserUnavailable, match="File exists"):
        open_log_file(path)
    assert records.read_bytes() == RECORDS


def test_a_missing_directory_is_reported(tmp_path: Path) -> None:
    with pytest.raises(BrowserUnavailable, match="No such file or directory"):
        open_log_file(tmp_path / "absent" / "chromium.log")


def display_settings(folder: Path) -> DisplaySettings:
    return DisplaySettings(
        directory=folder,
        window_manager_home=folder,
        marks=folder,
        logs=folder,
        width=640,
        height=480,
        account=None,
    )


@asynccontextmanager
async def window_manager(folder: Path) -> AsyncIterator[None]:
    display = RunningDisplay(process=cast(Process, None), env={})
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(keep_window_manager, display_settings(folder), display)
        with anyio.fail_after(5):
            while (folder / "window-manager.log").is_symlink():  # noqa: ASYNC110  a file has no event
                await anyio.sleep(0.01)
        yield
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def jail(folder: Path) -> AsyncIterator[None]:
    settings = JailSettings(
        marks=folder, logs=folder, home=folder, chromium_policies=folder, devtools_port=9222, account=None
    )
    async with running_jail(settings, ("/bin/true",), {}):
        yield


@asynccontextmanager
async def chromium(folder: Path) -> AsyncIterator[None]:
    settings = ChromiumSettings(
        program=Path("/bin/true"),
        profile=folder,
        home=folder,
        temporary=folder,
        marks=folder,
        logs=folder,
        port=9222,
        width=1,
        height=1,
        proxy_port=1,
        timezone="",
        account=None,
    )
    async with unjailed_chromium(settings, {}):
        yield


@asynccontextmanager
async def display(folder: Path) -> AsyncIterator[None]:
    async with running_display(display_settings(folder)):
        yield


@pytest.mark.promise("audit: a link in the place of a log file does not truncate the audit log")
@pytest.mark.parametrize(
    ("start", "name"),
    [
        (display, "xvnc.log"),
        (window_manager, "window-manager.log"),
        (jail, "chromium.log"),
        (chromium, "chromium.log"),
    ],
)
async def test_every_program_gets_a_new_log_file_in_place_of_a_link(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    start: Callable[[Path], AbstractAsyncContextManager[None]],
    name: str,
) -> None:
    monkeypatch.setattr(display_module, "XVNC", "/bin/true")
    (tmp_path / "audit.jsonl").write_bytes(RECORDS)
    make_symlink(tmp_path / name)
    files = open_files()
    with suppress(SandboxUnavailable):  # Neither a display nor a jail comes of these settings.
        async with start(tmp_path):
            pass
    assert stat.S_ISREG((tmp_path / name).lstat().st_mode)
    assert (tmp_path / "audit.jsonl").read_bytes() == RECORDS
    assert open_files() == files
