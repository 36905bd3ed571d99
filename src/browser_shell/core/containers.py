"""One run of a disposable container: the order and the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import MappingProxyType

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerLimits:
    """Resource limits of one container."""

    memory_bytes: int = 1024 * MIB
    """Memory and swap together, including the files in /tmp and /output."""
    cpus: float = 1.0
    timeout_seconds: int = 120
    processes: int = 256
    scratch_bytes: int = 256 * MIB
    """Size of /tmp, which lies in memory."""
    output_bytes: int = 512 * MIB
    """Size of /output, which lies in memory. /tmp and /output together must leave memory for the program."""
    output_entries: int = 10_000
    """Number of files and directories in /output."""
    log_bytes: int = 16 * MIB
    """Size of standard output and error together. The rest is discarded, and the report states it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerOrder:
    """A program to run in a fresh container without network. The server builds `argv`, never a caller."""

    run_id: str
    image: str
    """Digest or local image id. A tag is not accepted, because it can change its meaning."""
    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    workspace: Path
    """Mounted read-only at /work. It must be world-readable, because the program runs under its own account."""
    output: Path
    """Destination of the files in /output, copied after all processes have ended. It must be empty or missing.

    The container has no access to this directory. Only regular files and directories are copied, with modes that the
    server sets.
    """
    log_path: Path
    """Log file for the output of the program, up to the limit. It must not exist yet."""
    limits: ContainerLimits


class ContainerEnd(Enum):
    """Why a container ended."""

    EXITED = "exited"
    TIMED_OUT = "timed_out"
    OUT_OF_MEMORY = "out_of_memory"
    OUTPUT_FULL = "output_full"
    """The job filled /output. Files that it wrote last may be missing."""


class RefusalReason(Enum):
    """Why a file of /output was not copied."""

    LINK = "link"
    SPECIAL_FILE = "special_file"
    UNREADABLE = "unreadable"
    TOO_LARGE = "too_large"
    TOO_DEEP = "too_deep"
    TOO_MANY = "too_many"
    BAD_NAME = "bad_name"


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedOutput:
    """A file of /output that was not copied."""

    path: str
    """Printable ASCII; all other bytes are escaped."""
    reason: RefusalReason


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerTimings:
    """Seconds since the order was placed."""

    created: float
    started: float
    first_output: float | None
    ended: float
    removed: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerReport:
    """The result of an order. The exit code comes from the engine, so the output of the program cannot change it."""

    container_id: str
    end: ContainerEnd
    exit_code: int
    log_size: int
    """Bytes in the log file."""
    log_cut: bool
    timings: ContainerTimings
    output_complete: bool
    """Whether all of /output was copied, except refused files."""
    refused: tuple[RefusedOutput, ...] = ()
    """The first hundred refused files."""
    refused_count: int = 0
