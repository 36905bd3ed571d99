"""Starts the next program of a kind while nobody waits for it, so that the next call finds it running."""

from __future__ import annotations

from collections.abc import Callable

import anyio

from browser_shell.core.errors import SandboxUnavailable
from browser_shell.process import spawn

_QUIET_SECONDS = 0.02
"""A start keeps the event loop busy for some milliseconds; the answer to the call before it goes out first."""


class SpareCommands:
    """At most one waiting program for each name. It has got nothing yet: what it will do comes on its stdin."""

    def __init__(self, build: Callable[[str], spawn.Command], *, in_use: Callable[[str], bool]) -> None:
        self._build = build
        self._in_use = in_use
        """Whether a command of this name runs now. A start beside it would only take its processor away."""
        self._waiting: dict[str, spawn.Begun] = {}
        self._starting: dict[str, anyio.Event] = {}
        self._wished: set[str] = set()
        self._hurried: set[str] = set()
        self._hurry = anyio.Event()
        self._wish_made = anyio.Event()

    async def take(self, name: str) -> spawn.Begun | None:
        """The waiting program of this name, if there is one and it still waits."""
        if name in self._starting:
            await self._starting[name].wait()
        begun = self._waiting.pop(name, None)
        if begun is None or begun.waits:
            return begun
        await spawn.discard(begun)
        return None

    def wish(self, name: str) -> None:
        """Asks for a new one. Nothing is lost if it never comes."""
        if name not in self._waiting:
            self._wished.add(name)
            self._wish_made.set()

    def hasten(self, name: str) -> None:
        """Asks for one at once: somebody is about to take it."""
        if name in self._waiting or name in self._starting:
            return
        self._hurried.add(name)
        self.wish(name)
        self._hurry.set()

    async def drop(self, name: str) -> None:
        """Ends the program of this name, and forgets the wish for one."""
        self._wished.discard(name)
        begun = self._waiting.pop(name, None)
        if begun is not None:
            await spawn.discard(begun)

    async def run(self) -> None:
        """Grants wishes until cancelled, and then leaves nothing behind."""
        try:
            while True:
                await self._wish_made.wait()
                self._wish_made = anyio.Event()
                with anyio.move_on_after(_QUIET_SECONDS):
                    await self._hurry.wait()
                await self._grant_some()
        finally:
            with anyio.CancelScope(shield=True):
                for name in list(self._waiting):
                    await self.drop(name)

    async def _grant_some(self) -> None:
        """Those in a hurry alone; all of them when nobody is."""
        hurried, self._hurried, self._hurry = self._hurried & self._wished, set(), anyio.Event()
        for name in hurried or tuple(self._wished):
            await self._grant(name)
        if self._wished:
            self._wish_made.set()

    async def _grant(self, name: str) -> None:
        if name not in self._wished:
            return
        if self._in_use(name):
            self._wished.discard(name)  # Calls come one upon the other; the end of this one wishes again.
            return
        started = self._starting[name] = anyio.Event()
        try:
            begun = await spawn.begin(self._build(name))
        except SandboxUnavailable:
            self._wished.discard(name)
            return
        finally:
            del self._starting[name]
            started.set()
        if name in self._wished and name not in self._waiting:
            self._wished.discard(name)
            self._waiting[name] = begun
        else:
            await spawn.discard(begun)  # It was dropped while it started.
