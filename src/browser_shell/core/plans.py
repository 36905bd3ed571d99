"""What a call will do once its arguments have been understood. No raw argv lives beyond these types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from ipaddress import IPv4Address, IPv6Address
from types import MappingProxyType
from typing import TypeAlias

NO_OPTIONS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlTarget:
    """A URL after WHATWG parsing. Only `href`, the canonical serialisation, is ever handed on."""

    href: str
    scheme: str
    host: str
    """Canonical ASCII host without brackets and without a trailing dot; empty for `about:blank`."""
    port: int
    address: IPv4Address | IPv6Address | None = None
    """Set when the host is an address literal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserCommand:
    """One subcommand of `browser-shell`, already inside the grammar of `policy/commands.py`."""

    session_id: str
    name: str
    """The subcommand, for example `open` or `wait`."""
    operands: tuple[str, ...] = ()
    """Positional values in order. For `open` it is the canonical href."""
    options: Mapping[str, str] = field(default_factory=lambda: NO_OPTIONS)
    """Canonical option name without dashes, to its value; a switch has the value ''."""
    timeout_seconds: int
    targets: tuple[UrlTarget, ...] = ()
    """Every URL that this command asks the browser to visit."""

    @property
    def typed_text(self) -> str | None:
        """What goes into the page as if by a person: it may be a password. None for commands that type nothing."""
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
        """For records."""
        return self.targets[0].host if self.targets else ""

    @property
    def overhead_seconds(self) -> int:
        """What the backend may need beyond the timeout, as a matter of course."""
        return 0


class JobRunner(Enum):
    """The programs that a job can be. There is no other, and none takes a command of the caller's."""

    PYTEST = "pytest"
    PLAYWRIGHT_PYTHON = "playwright-python"
    PLAYWRIGHT_NODE = "playwright-node"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerJob:
    """One run of tests in a fresh container, already inside the grammar of `policy/job_arguments.py`."""

    name: str
    """The tool that was called."""
    runner: JobRunner
    project: str = "."
    """Directory of the workspace in which the runner starts."""
    tests: tuple[str, ...] = ()
    """Files, directories and single tests, relative to the project; none means all."""
    keyword: str = ""
    markers: str = ""
    max_failures: int = 0
    """0 means: go on to the end."""
    workers: int = 1
    retries: int = 0
    output_lines: int = 50
    """How many of the last lines of output the caller wants to see."""
    screenshots: bool = False
    videos: bool = False
    traces: bool = False
    timeout_seconds: int

    @property
    def host(self) -> str:
        return ""

    @property
    def overhead_seconds(self) -> int:
        """Making the container, ending it, and reading what it left behind."""
        return 120


Plan: TypeAlias = BrowserCommand | ContainerJob
