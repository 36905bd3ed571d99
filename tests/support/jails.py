"""A jail around a small program, and a look at processes from outside."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from browser_shell.browser.chromium.jail import INTERPRETER, Jail, JailSettings, running_jail
from browser_shell.process.accounts import account_to_drop_to, make_private_directory

ACCOUNT = "browser-shell"


def jail_settings(folder: Path, **changes: Any) -> JailSettings:
    """For a folder that the account may enter."""
    account = account_to_drop_to(ACCOUNT)
    policies = make_private_directory(folder / "policies", owner=None, mode=0o755)
    (policies / "here.json").write_text("{}", encoding="utf-8")
    fields: dict[str, Any] = {
        "marks": make_private_directory(folder / "marks", owner=None),
        "logs": make_private_directory(folder / "log", owner=None),
        "home": make_private_directory(folder / "home", owner=account),
        "chromium_policies": policies,
        "devtools_port": 9222,
        "account": account,
    }
    return JailSettings(**{**fields, **changes})


@asynccontextmanager
async def a_jail(settings: JailSettings, script: str) -> AsyncIterator[Jail]:
    """Runs a Python script in a jail. What it prints goes to the log."""
    argv = (str(INTERPRETER), "-I", "-u", "-c", script)
    async with running_jail(settings, argv, {"PATH": "/usr/bin:/bin"}) as jail:
        yield jail


async def said_inside(settings: JailSettings, script: str) -> Any:
    """The JSON that a script printed in a jail."""
    async with a_jail(settings, f"import json\n{script}") as jail:
        with anyio.fail_after(10):
            await jail.process.wait()
    return json.loads((settings.logs / "chromium.log").read_text(encoding="utf-8"))


def facts(pid: int) -> dict[str, str]:
    """/proc/PID/status."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def command_line(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")


def is_alive(pid: int) -> bool:
    try:
        return facts(pid)["State"][:1] not in "ZX"
    except OSError:
        return False


def descendants(root: int) -> list[int]:
    """Every process below `root`, without it."""
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(path.parent.name)] = int(path.read_text(encoding="utf-8").rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found - {root})


def network_of(pid: int | str) -> int:
    """The number of its network namespace."""
    return Path(f"/proc/{pid}/ns/net").stat().st_ino


def in_same_network(pid: int) -> list[int]:
    """Every process whose network namespace is that of `pid`."""
    wanted, found = network_of(pid), []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if network_of(path.name) == wanted:
                found.append(int(path.name))
        except OSError:
            continue
    return sorted(found)
