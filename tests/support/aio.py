"""The AIO overlay in an engine, and the report of verify.sh."""

from __future__ import annotations

import re
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
VERIFY = ROOT / "deploy" / "aio" / "verify.sh"
# AIO starts as root and creates its account, which needs these six capabilities.
LOCKS = (
    *("--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--memory", "2g", "--pids-limit", "512"),
    *(word for name in ("CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID") for word in ("--cap-add", name)),
)
_LINE = re.compile(r"^(PASS|FAIL) ([^:\n]*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Report:
    """Result of verify.sh."""

    exit_code: int
    passed: frozenset[str]
    failed: frozenset[str]
    text: str


@dataclass(frozen=True, slots=True)
class Aio:
    """A running engine with the two images."""

    engine: str
    overlay: str
    stand_in: str
    env: dict[str, str]

    def finish(self, *arguments: str, seconds: float = 60) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.engine, *arguments], env=self.env, capture_output=True, text=True, timeout=seconds, check=False
        )

    def do(self, *arguments: str, seconds: float = 60) -> str:
        ended = self.finish(*arguments, seconds=seconds)
        assert ended.returncode == 0, f"{arguments}: {ended.stdout}{ended.stderr}"
        return ended.stdout.strip()

    def verify(self, image: str, *flags: str, only: str = "") -> Report:
        options = ("--only", only) if only else ()
        ended = subprocess.run(
            [str(VERIFY), "--engine", self.engine, *options, image, *flags],
            env=self.env,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        lines = _LINE.findall(ended.stdout)
        return Report(
            exit_code=ended.returncode,
            passed=frozenset(name for word, name in lines if word == "PASS"),
            failed=frozenset(name for word, name in lines if word == "FAIL"),
            text=ended.stdout + ended.stderr,
        )


class BackgroundReport:
    """A run of verify.sh in a thread, while other tests run."""

    def __init__(self, aio: Aio, image: str, flags: Sequence[str]) -> None:
        self._reports: list[Report] = []
        self._thread = threading.Thread(target=lambda: self._reports.append(aio.verify(image, *flags)))
        self._thread.start()

    def wait(self) -> Report:
        self._thread.join(320)
        return self._reports[0]
