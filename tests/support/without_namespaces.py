"""Run a program where no user namespace can be created: `python without_namespaces.py PROGRAM ARGUMENT...`.

The program runs in a user namespace that maps every account to itself and whose limit of namespaces is zero.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

CLONE_NEWUSER = 0x10000000


def main() -> int:
    ready_to_map, mapped = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        if ctypes.CDLL(None).unshare(CLONE_NEWUSER) != 0:
            os._exit(99)
        os.write(ready_to_map[1], b"x")
        os.read(mapped[0], 1)
        Path("/proc/sys/user/max_user_namespaces").write_text("0", encoding="ascii")
        os.execv(sys.argv[1], sys.argv[1:])  # noqa: S606  no shell is the point
    os.read(ready_to_map[0], 1)
    id_map = "0 0 65536" if os.geteuid() == 0 else f"{os.getuid()} {os.getuid()} 1"
    if os.geteuid() != 0:
        Path(f"/proc/{child}/setgroups").write_text("deny", encoding="ascii")
    for name in ("uid_map", "gid_map"):
        Path(f"/proc/{child}/{name}").write_text(id_map, encoding="ascii")
    os.write(mapped[1], b"x")
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    sys.exit(main())
