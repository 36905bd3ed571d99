"""How this process learns that a child has ended."""

from __future__ import annotations

import asyncio
import sys


def watch_children_cheaply() -> None:
    """Before 3.12, asyncio starts a thread for every child; a handle on the process does the same for nothing.

    Call it inside the loop that will start the children.
    """
    if sys.version_info < (3, 12):
        watcher = asyncio.PidfdChildWatcher()
        watcher.attach_loop(asyncio.get_running_loop())
        asyncio.set_child_watcher(watcher)
