"""Facts about processes, from /proc."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

_LISTEN = "0A"


def state(pid: int) -> str:
    """State letter as in `ps`: R, S, Z and so on; empty when there is no such process."""
    fields = _stat(pid)
    return fields[0] if fields else ""


def alive(pid: int) -> bool:
    return state(pid) not in ("", "Z", "X")


def descendants(root: int) -> list[int]:
    """All descendants. A server is a subreaper, so its orphaned daemons are included."""
    parents = {int(entry.name): _parent(int(entry.name)) for entry in Path("/proc").iterdir() if entry.name.isdigit()}
    found = [root]
    for pid in found:
        found.extend(child for child, parent in parents.items() if parent == pid)
    return found[1:]


def zombies(root: int) -> list[int]:
    return [pid for pid in descendants(root) if state(pid) == "Z"]


def argv(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace").rstrip("\0").split("\0")
    except OSError:
        return []


def program(pid: int) -> str:
    """File name of the program. Children of Chromium show their command line as one word."""
    return Path(argv(pid)[0].split(" ")[0]).name if argv(pid) else ""


def status(pid: int, name: str) -> str:
    """A line of /proc/PID/status, for example `Seccomp` or `Uid`."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(f"{name}:")), "")


def listening_ports(pid: int) -> set[int]:
    """TCP ports, IPv4 and IPv6, that this process listens on."""
    owned = _sockets(pid)
    ports: set[int] = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text(encoding="ascii").splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTEN and fields[9] in owned:
                ports.add(int(fields[1].rpartition(":")[2], 16))
    return ports


def _sockets(pid: int) -> set[str]:
    found: set[str] = set()
    with suppress(OSError):  # The process has ended.
        for entry in list(Path(f"/proc/{pid}/fd").iterdir()):
            with suppress(OSError):  # This descriptor was closed meanwhile.
                target = str(entry.readlink())
                if target.startswith("socket:["):
                    found.add(target[8:-1])
    return found


def _parent(pid: int) -> int:
    fields = _stat(pid)
    return int(fields[1]) if fields else 0


def _stat(pid: int) -> list[str]:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()


def open_files() -> int:
    """Number of open file descriptors of this process."""
    return len(list(Path("/proc/self/fd").iterdir()))
