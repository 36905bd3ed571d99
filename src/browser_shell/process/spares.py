"""Starts the next program of a kind before its call needs it: half of a short call is the start of its program."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import anyio

from browser_shell.core.errors import SandboxUnavailable
from browser_shell.process import spawn


class SpareCommands:
    """At most one waiting program for each name. It has got nothing yet: what it will do comes on its stdin."""

    def __init__(self, build: Callable[[str], spawn.Command], *, in_use: Callable[[str], bool]) -> None:
        self._build = build
        self._in_use = in_use
        """Whether a command of this name runs now. A start beside it would only take its processor away."""
        self._waiting: dict[str, spawn.Begun] = {}
        self._wished: set[str] = set()
        self._kept = False
        """Whether somebody sees to it that nothing is left behind."""

    async def take(self, name: str) -> spawn.Begun | None:
        """The waiting program of this name, if there is one and it still waits."""
        begun = self._waiting.pop(name, None)
        if begun is None or begun.waits:
            return begun
        await spawn.discard(begun)
        return None

    def wish(self, name: str) -> None:
        """Asks for a new one. Nothing is lost if it never comes."""
        if self._kept and name not in self._wished:
            self._wished.add(name)
            asyncio.get_running_loop().call_soon(self._grant, name)  # After the answer to the call before it.

    def _grant(self, name: str) -> None:
        if name in self._wished:
            self.start(name)

    def start(self, name: str) -> None:
        """Starts one at once: somebody is about to take it. Whoever cannot have one finds out when it matters."""
        self._wished.discard(name)
        if not self._kept or name in self._waiting or self._in_use(name):
            return
        try:
            self._waiting[name] = spawn.begin(self._build(name))
        except SandboxUnavailable:
            return

    async def drop(self, name: str) -> None:
        """Ends the program of this name, and forgets the wish for one."""
        self._wished.discard(name)
        begun = self._waiting.pop(name, None)
        if begun is not None:
            await spawn.discard(begun)

    async def run(self) -> None:
        """Until cancelled, wishes are granted; then nothing is left behind."""
        self._kept = True
        try:
            await anyio.sleep_forever()
        finally:
            self._kept = False
            with anyio.CancelScope(shield=True):
                for name in list(self._waiting):
                    await self.drop(name)
