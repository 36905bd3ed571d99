"""Scripts in a jail, and network namespaces of processes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio

from browser_shell.browser.chromium.jail import INTERPRETER, Jail, JailSettings, running_jail
from browser_shell.process.accounts import account_to_drop_to, make_private_directory
from support.layouts import flat_layout

ACCOUNT = "browser-shell"


def jail_settings(directory: Path, **changes: Any) -> JailSettings:
    """Create the directories of a jail in a directory that the unprivileged account can enter."""
    account = account_to_drop_to(ACCOUNT)
    layout = replace(
        flat_layout(directory, account),
        identities=make_private_directory(directory / "identities", owner=None),
        logs=make_private_directory(directory / "log", owner=None),
        chromium_home=make_private_directory(directory / "home", owner=account),
    )
    policies = make_private_directory(layout.chromium_policies, owner=None, mode=0o755)
    (policies / "here.json").write_text("{}", encoding="utf-8")
    return JailSettings(layout=layout, **changes)


@asynccontextmanager
async def running_script(settings: JailSettings, script: str) -> AsyncIterator[Jail]:
    """Run a Python script in a jail. Its output goes to the log file."""
    argv = (str(INTERPRETER), "-I", "-u", "-c", script)
    async with running_jail(settings, argv, {"PATH": "/usr/bin:/bin"}) as jail:
        yield jail


async def output_in_jail(settings: JailSettings, script: str) -> Any:
    """Run a Python script in a jail and return the JSON that it prints. The script finds `json` imported."""
    async with running_script(settings, f"import json\n{script}") as jail:
        with anyio.fail_after(10):
            await jail.process.wait()
    return json.loads((settings.layout.logs / "chromium.log").read_text(encoding="utf-8"))


def network_of(pid: int | str) -> int:
    """Return the inode of the process's network namespace."""
    return Path(f"/proc/{pid}/ns/net").stat().st_ino


def in_same_network(pid: int) -> list[int]:
    """Return all processes in the network namespace of a process."""
    network, pids = network_of(pid), []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if network_of(path.name) == network:
                pids.append(int(path.name))
    return sorted(pids)
