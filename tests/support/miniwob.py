"""MiniWoB tasks without their Python environment: the pages start an episode on load and report its reward."""

from __future__ import annotations

import mimetypes
import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from support.pages import Site, wait_until
from support.server import Session
from support.snapshots import ref_of

# Runs after the page's own `onload` handler: sets a seed, removes the time limit and reports the reward.
_START = """<script>addEventListener('load', () => {
  const end = core.endEpisode
  core.endEpisode = function (...values) {
    const counts = core.EP_TIMER !== null
    end.apply(core, values)
    if (counts) report({reward: WOB_RAW_REWARD_GLOBAL, done: WOB_DONE_GLOBAL})
  }
  core.EPISODE_MAX_TIME = 2 ** 31 - 1
  Math.seedrandom('seed %d')
  core.startEpisodeReal()
})</script>"""


def _pages() -> Path:
    spec = find_spec("miniwob")  # Located, not imported: its environment needs packages that are not installed here.
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "html"


@dataclass(frozen=True, slots=True)
class Episode:
    """One attempt at a task. All actions are calls of the tool."""

    session: Session
    rewards: list[Any]

    @property
    def query(self) -> str:
        return str(self.text("#query"))

    def quoted(self) -> list[str]:
        return re.findall(r'"([^"]*)"', self.query)

    def text(self, selector: str) -> str:
        return str(self.session.ok("get", "text", selector)["text"])

    def snapshot(self) -> str:
        return str(self.session.ok("snapshot", "-i")["snapshot"])

    def run(self, *argv: str | int) -> Any:
        return self.session.ok(*argv)

    def click(self, selector: str) -> None:
        self.run("click", selector)

    def click_named(self, role: str, name: str) -> None:
        self.click(ref_of(self.snapshot(), role, name))

    def visible(self, selector: str) -> bool:
        return self.session.run("is", "visible", selector).stdout.find('"visible":true') >= 0

    def reward(self) -> float:
        """Return the reward that the page computed, without its time penalty."""
        wait_until(lambda: bool(self.rewards), what="the end of the episode")
        assert self.rewards[0]["done"] is True
        return float(self.rewards[0]["reward"])


class Episodes:
    """The pages of the miniwob package on a site."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self._root = _pages()
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
