"""Episodes of MiniWoB pages without their Python environment: a page starts one on load and reports its reward."""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from support.miniwob.pictures import Picture
from support.pages import Site, wait_until
from support.server import Session
from support.snapshots import ref_of

# Runs after the page's own `onload` handler: sets a seed, removes the time limit and reports the reward.
_START = """<script>addEventListener('load', () => {
  const end = core.endEpisode
  core.endEpisode = function (...values) {
    const counts = core.EP_TIMER !== null
    end.apply(core, values)
    if (counts && WOB_DONE_GLOBAL) report({reward: WOB_RAW_REWARD_GLOBAL})
  }
  core.EPISODE_MAX_TIME = 2 ** 31 - 1
  Math.seedrandom('seed %d')
  core.startEpisodeReal()
})</script>"""

_STEPS_PER_CALL = 13
"""The command of a call and its 12 further steps."""
AREA_TOP = 52
AREA_LEFT = 2
"""Pixels of the window above and left of the first element of a task: the task's text and a padding."""


def package_directory() -> Path:
    """Return the directory of the package's pages and their files."""
    spec = find_spec("miniwob")  # Located, not imported: its environment needs packages that are not installed here.
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "html"


@dataclass(frozen=True)
class Episode:
    """One attempt at a task. All actions are calls of the tool."""

    session: Session
    rewards: list[Any]

    @cached_property
    def query(self) -> str:
        """The task, as the page shows it."""
        return self.text("#query")

    def quoted(self) -> list[str]:
        return re.findall(r'"([^"]*)"', self.query)

    def groups_of(self, pattern: str) -> tuple[str, ...]:
        """Return the groups of a pattern in the task's text."""
        match = re.search(pattern, self.query)
        assert match, f"{pattern} is not in {self.query!r}"
        return match.groups()

    def run(self, *argv: str | int) -> Any:
        return self.session.ok(*argv)

    def steps(self, commands: Sequence[Sequence[str | int]]) -> list[Any]:
        """Run several commands in as few calls as possible; return the data of each."""
        data: list[Any] = []
        for start in range(0, len(commands), _STEPS_PER_CALL):
            first, *rest = commands[start : start + _STEPS_PER_CALL]
            answer = self.session.ok(*first, then=rest or None)
            data += answer if rest else [answer]
        return data

    def text(self, selector: str) -> str:
        return str(self.run("get", "text", selector)["text"])

    def value(self, selector: str) -> str:
        return str(self.run("get", "value", selector)["value"])

    def count(self, selector: str) -> int:
        return int(self.run("get", "count", selector)["count"])

    def attr(self, name: str, selector: str) -> str:
        return str(self.run("get", "attr", name, selector)["value"] or "")

    def numbers(self, selector: str, *names: str) -> list[float]:
        """Return attributes of an element that are numbers."""
        answers = self.steps([("get", "attr", name, selector) for name in names])
        return [float(str(answer["value"]).removesuffix("px")) for answer in answers]

    def visible(self, selector: str) -> bool:
        return self.session.run("is", "visible", selector).stdout.find('"visible":true') >= 0

    def snapshot(self) -> str:
        return str(self.run("snapshot", "-i")["snapshot"])

    def picture(self, selector: str) -> Picture:
        outcome = self.session.run("screenshot", selector)
        assert outcome.exit_code == 0, outcome.stderr
        return Picture.decode(outcome.attachments[0][1])

    def click(self, selector: str) -> None:
        self.run("click", selector)

    def click_at(self, x: float, y: float, selector: str) -> None:
        """Click at an offset inside an element."""
        self.run("click", "--at", f"{round(x)},{round(y)}", selector)

    def click_named(self, role: str, name: str) -> None:
        self.click(ref_of(self.snapshot(), role, name))

    def fill(self, selector: str, text: str | int) -> None:
        self.run("fill", selector, str(text))

    def submit(self) -> None:
        self.click("#subbtn")

    def press_times(self, key: str, times: int) -> None:
        self.steps([("press", key)] * times)

    def until(self, condition: Callable[[], bool], act: Callable[[], object], *, at_most: int = 50) -> None:
        """Repeat an act until a condition holds."""
        for _ in range(at_most):
            if condition():
                return
            act()
        assert condition(), f"{self.query!r}: the condition does not hold after {at_most} acts"

    @property
    def done(self) -> bool:
        """Whether the page has ended the episode."""
        return bool(self.rewards)

    def reward(self) -> float:
        """Return the reward that the page computed, without its time penalty; 0 if the episode has not ended."""
        with suppress(AssertionError):
            wait_until(lambda: self.done, seconds=3)
        return float(self.rewards[0]["reward"]) if self.done else 0.0


class Episodes:
    """The pages of the miniwob package on a site."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self._root = package_directory()
        for file in self._root.rglob("*"):
            if file.suffix in (".js", ".css", ".png", ".gif", ".jpg", ".svg"):
                kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
                site.add(f"/{file.relative_to(self._root)}", file.read_bytes(), {"Content-Type": kind})

    def begin(self, session: Session, task: str, seed: int) -> Episode:
        path = f"/miniwob/{task}-{seed}.html"
        page = (self._root / "miniwob" / f"{task}.html").read_text(encoding="utf-8")
        head, end, tail = page.rpartition("</body>")
        session.ok("open", self.site.add(path, head + self.site.report_script(path) + _START % seed + end + tail))
        session.ok("wait", "#sync-task-cover", "--state", "hidden")
        return Episode(session=session, rewards=self.site.reports[path])
