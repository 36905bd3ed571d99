"""Log files of the browser side are regular files with one name; everything else is refused and left unchanged."""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import cast

import anyio
import pytest
from anyio.abc import Process

from browser_shell.browser.chromium.display import DisplaySettings, RunningDisplay, keep_window_manager, running_display
from browser_shell.browser.chromium.jail import JailSettings, running_jail
from browser_shell.browser.chromium.log_files import open_log_file
from browser_shell.browser.chromium.process import ChromiumSettings, unjailed_chromium
from browser_shell.core.errors import BrowserUnavailable
from support.processes import open_files

RECORDS = b"audit records\n"


def test_a_missing_file_is_created_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "chromium.log"
    with open_log_file(path) as log:
        log.write(b"output")
        assert not os.get_inheritable(log.fileno())
    assert path.read_bytes() == b"output"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_an_existing_file_is_truncated(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("replace", [make_symlink, make_dangling_symlink, make_hard_link, os.mkfifo, Path.mkdir])
def test_anything_else_is_refused_and_left_unchanged(tmp_path: Path, replace: Callable[[Path], None]) -> None:
    records, path = tmp_path / "audit.jsonl", tmp_path / "chromium.log"
    records.write_bytes(RECORDS)
    replace(path)
    before, files = path.lstat(), open_files()
    with pytest.raises(BrowserUnavailable, match=r"^chromium\.log cannot be opened \(.+\)"):
        open_log_file(path)
    assert (path.lstat().st_ino, path.lstat().st_mode) == (before.st_ino, before.st_mode)
    assert records.read_bytes() == RECORDS
    assert not (tmp_path / "absent").exists()
    assert open_files() == files


def test_a_fifo_with_a_reader_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "chromium.log"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(BrowserUnavailable, match="not a regular file"):
            open_log_file(path)
    finally:
        os.close(reader)


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
    with anyio.fail_after(5):
        await keep_window_manager(display_settings(folder), display)
    yield


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
async def test_no_program_starts_with_a_link_as_its_log(
    tmp_path: Path, start: Callable[[Path], AbstractAsyncContextManager[None]], name: str
) -> None:
    (tmp_path / "audit.jsonl").write_bytes(RECORDS)
    make_symlink(tmp_path / name)
    files = open_files()
    with pytest.raises(BrowserUnavailable):
        async with start(tmp_path):
            pass
    assert (tmp_path / "audit.jsonl").read_bytes() == RECORDS
    assert open_files() == files
