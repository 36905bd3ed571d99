"""Plans: the typed form of a call after its arguments are parsed. No raw argv is used beyond these types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import TypeAlias

from browser_shell.core.egress import IpAddress

NO_OPTIONS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlTarget:
    """A URL after WHATWG parsing. Only `href`, the canonical form, is passed on."""

    href: str
    scheme: str
    host: str
    """Canonical ASCII host without brackets and trailing dot; '' for `about:blank`."""
    port: int
    address: IpAddress | None = None
    """The address, if the host is an address literal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserCommand:
    """One subcommand of `browser-shell`, inside the grammar of `policy/commands.py`."""

    session_id: str
    name: str
    """The subcommand, for example `open` or `wait`."""
    operands: tuple[str, ...] = ()
    """Positional values in order. `open` has the canonical URL."""
    options: Mapping[str, str] = field(default_factory=lambda: NO_OPTIONS)
    """Values by canonical option name without dashes. A switch has the value ''."""
    timeout_seconds: int
    targets: tuple[UrlTarget, ...] = ()
    """All URLs that this command opens."""

    @property
    def typed_text(self) -> str | None:
        """The text that the command types, which may be a password; None for commands that type nothing."""
        match self.name:
            case "fill" | "type" | "select":
                return "\n".join(self.operands[1:])
            case "press":
                return "\n".join(self.operands)
            case "dialog" if len(self.operands) > 1:
                return "\n".join(self.operands[1:])
            case _:
                return None

    @property
    def host(self) -> str:
        """The host of the first URL, for records."""
        return self.targets[0].host if self.targets else ""

    @property
    def overhead_seconds(self) -> int:
        """Seconds that the backend may need beyond the timeout."""
        return 0


class JobRunner(Enum):
    """The programs that a job can run. None of them executes a command of the caller."""

    PYTEST = "pytest"
    PLAYWRIGHT_PYTHON = "playwright-python"
    PLAYWRIGHT_NODE = "playwright-node"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerJob:
    """One run of tests in a fresh container, inside the grammar of `policy/job_arguments.py`."""

    name: str
    """The name of the tool."""
    runner: JobRunner
    project: str = "."
    """Directory in the workspace in which the runner starts."""
    tests: tuple[str, ...] = ()
    """Files, directories and single tests, relative to the project. An empty tuple selects all tests."""
    keyword: str = ""
    markers: str = ""
    max_failures: int = 0
    """Number of failures after which the run stops; 0 for no limit."""
    workers: int = 1
    retries: int = 0
    output_lines: int = 50
    """Number of last output lines in the answer."""
    screenshots: bool = False
    videos: bool = False
    traces: bool = False
    timeout_seconds: int

    @property
    def host(self) -> str:
        return ""

    @property
    def overhead_seconds(self) -> int:
        """Seconds to create and remove the container, and to read its output."""
        return 120


Plan: TypeAlias = BrowserCommand | ContainerJob
