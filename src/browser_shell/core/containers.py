"""One run of a disposable container, as values: what is asked for, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import MappingProxyType


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerLimits:
    """What one container may use. Memory is memory and swap together."""

    memory_bytes: int = 1024 * 1024 * 1024
    cpus: float = 1.0
    timeout_seconds: int = 120
    processes: int = 256
    scratch_bytes: int = 256 * 1024 * 1024
    """Of the writable, in-memory /tmp."""
    output_bytes: int = 512 * 1024 * 1024
    """Of everything that the run leaves under /output."""
    log_bytes: int = 16 * 1024 * 1024
    """Of standard output and error together; the rest is thrown away and said so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerOrder:
    """A program to run in a fresh container that has no network. `argv` was built by us, never by a caller."""

    run_id: str
    image: str
    """A digest or a local image id: never a tag, which may mean something else tomorrow."""
    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    workspace: Path
    """Seen read-only at /work."""
    output: Path
    """Seen at /output, the only place whose files outlive the run."""
    log_path: Path
    """Where the program's output is kept, whole up to the limit."""
    limits: ContainerLimits


class ContainerEnd(Enum):
    """Why a container is no more."""

    EXITED = "exited"
    TIMED_OUT = "timed_out"
    OUT_OF_MEMORY = "out_of_memory"
    OUTPUT_FULL = "output_full"
    """It wrote more under /output than it may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerTimings:
    """Seconds since the order, in the order in which they are reached."""

    created: float
    started: float
    first_output: float | None
    ended: float
    removed: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerReport:
    """What came of an order. The exit code is the engine's word; nothing that the program printed can change it."""

    container_id: str
    image_id: str
    end: ContainerEnd
    exit_code: int
    log_size: int
    """Bytes in the log file."""
    log_cut: bool
    timings: ContainerTimings
