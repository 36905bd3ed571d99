"""Tasks as data, and an agent that works through one with calls of a session."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from support.applications import Applications
from support.server import Session

_CHECK_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Ref:
    """An element of an earlier look, by what the agent read there."""

    role: str
    name: str
    number: int = 1
    """1 for the first element with this role and name."""

    def find(self, look: str) -> str:
        """Return the element's @ref in the text of a look, or ''."""
        name = f' "{re.escape(self.name)}"' if self.name else ""
        refs = re.findall(rf"- {self.role}{name}[^\n]*?\bref=(e\d+)", look, re.IGNORECASE)
        return f"@{refs[self.number - 1]}" if len(refs) >= self.number else ""


Step = Sequence[str | Ref]
"""One command: argv, in which refs stand for elements of earlier looks."""


def ref(role: str, name: str = "", number: int = 1) -> Ref:
    return Ref(role, name, number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A goal, the steps to it, and the state of the application that shows that it was reached."""

    goal: str
    calls: Sequence[Sequence[Step]]
    """Steps by call, in the fewest calls. A step with refs needs the look of an earlier call."""
    actual: Callable[[], Any]
    """Reads the state from the application's own side: its database, files or interface."""
    expected: Any

    @property
    def steps(self) -> list[Step]:
        return [step for call in self.calls for step in call]


TaskBuilder = Callable[[Applications, str], Task]
"""Builds a task; the second argument is a word that makes names unique to one run."""


@dataclass(slots=True)
class ScriptedAgent:
    """Works through the steps of a task and counts what it needed."""

    session: Session
    looks: list[str] = field(default_factory=list)
    """Texts with refs, oldest first."""
    results: list[str] = field(default_factory=list)
    """The result of each call as the model reads it."""
    seconds: float = 0.0

    def work(self, task: Task, *, batched: bool) -> None:
        calls = task.calls if batched else [[step] for step in task.steps]
        for call in calls:
            self.call(call)
        self._check(task)

    def call(self, steps: Sequence[Step]) -> None:
        argvs = [[self._word(word) for word in step] for step in steps]
        arguments = {"session_id": self.session.session_id, "argv": argvs[0], "timeout_sec": 30}
        if argvs[1:]:
            arguments["then"] = argvs[1:]
        started_at = time.monotonic()
        reply = self.session.server.rpc(
            {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "tools/call",
                "params": {"name": "browser-shell", "arguments": arguments},
            }
        )
        self.seconds += time.monotonic() - started_at
        assert "result" in reply, f"{argvs}\n{reply}"
        self.results.append(reply["result"]["content"][0]["text"])
        result = reply["result"]["structuredContent"]
        assert result["exit_code"] == 0, f"{argvs}\n{result['stdout']}{result['stderr']}{self._last_look()}"
        data = json.loads(result["stdout"])
        for part in data if argvs[1:] else [data]:
            self.looks += _looks_in(part)

    def _word(self, word: str | Ref) -> str:
        if isinstance(word, str):
            return word
        for look in reversed(self.looks):
            if found := word.find(look):
                return found
        raise AssertionError(f"no {word} in{self._last_look()}")

    def _last_look(self) -> str:
        return f"\nlast look:\n{self.looks[-1]}" if self.looks else ""

    def _check(self, task: Task) -> None:
        """Poll the application until it has the expected state: some save in the background."""
        deadline = time.monotonic() + _CHECK_SECONDS
        while (actual := task.actual()) != task.expected and time.monotonic() < deadline:
            time.sleep(0.05)
        assert actual == task.expected, (
            f"{task.goal}\nexpected {json.dumps(task.expected)}\nactual   {json.dumps(actual)}"
        )


def _looks_in(data: dict[str, Any]) -> list[str]:
    """Return the texts with refs in the data of a step: a tree, the changes since the last look, or matches."""
    found = [data.get("snapshot"), data.get("lines")]
    if isinstance(found[0], dict):
        found = [found[0].get("tree"), found[0].get("changes")]
    return [text for text in found if isinstance(text, str)]
