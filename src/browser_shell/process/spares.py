"""Starts the next program of a kind before its call needs it: half of a short call is the start of its program."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import anyio

from browser_shell.core.errors import SandboxUnavailable
from browser_shell.process import spawn

IDLE_SECONDS = 15.0
"""Who has not called for this long will not notice the start of a program either, and each takes 5 MB."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    begun: spawn.StartedProcess
    since: float


class SpareCommands:
    """At most one waiting program for each name. It has got nothing yet: what it will do comes on its stdin."""

    def __init__(
        self,
        build: Callable[[str], spawn.Command],
        *,
        in_use: Callable[[str], bool],
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self._build = build
        self._idle_seconds = idle_seconds
        self._in_use = in_use
        """Whether a command of this name runs now. A start beside it would only take its processor away."""
        self._waiting: dict[str, _Waiting] = {}
        self._wished: set[str] = set()
        self._kept = False
        """Whether somebody sees to it that nothing is left behind."""

    async def take(self, name: str) -> spawn.StartedProcess | None:
        """The waiting program of this name, if there is one and it still waits."""
        waiting = self._waiting.pop(name, None)
        if waiting is None:
            return None
        if waiting.begun.waits:
            return waiting.begun
        await spawn.discard(waiting.begun)
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
            self._waiting[name] = _Waiting(spawn.begin(self._build(name)), since=anyio.current_time())
        except SandboxUnavailable:
            return

    async def drop(self, name: str) -> None:
        """Ends the program of this name, and forgets the wish for one."""
        self._wished.discard(name)
        waiting = self._waiting.pop(name, None)
        if waiting is not None:
            await spawn.discard(waiting.begun)

    async def _drop_idle(self) -> None:
        for name, waiting in list(self._waiting.items()):
            idle = anyio.current_time() - waiting.since > self._idle_seconds
            if idle and self._waiting.get(name) is waiting:  # It may have been taken while another one was ended.
                await self.drop(name)

    async def run(self) -> None:
        """Until cancelled, wishes are granted, and nothing waits for long; then nothing is left behind."""
        self._kept = True
        try:
            while True:
                await anyio.sleep(self._idle_seconds / 2)
                await self._drop_idle()
        finally:
            self._kept = False
            with anyio.CancelScope(shield=True):
                for name in list(self._waiting):
                    await self.drop(name)
