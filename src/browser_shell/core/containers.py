"""One run of a disposable container, as values: what is asked for, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import MappingProxyType

MIB = 1024 * 1024


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
    """Of the writable, in-memory /output. With /tmp it counts to the memory, and must leave room for the program."""
    output_entries: int = 10_000
    """Of files and directories under /output."""
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
    """Seen read-only at /work. Everybody must be able to read it: the program has an account of its own."""
    output: Path
    """Where the files of the container's /output go when all its processes are gone. It must be empty, or not there.

    The container never sees this directory. Only plain files and directories arrive, made by us with our own modes.
    """
    log_path: Path
    """Where the program's output is kept, whole up to the limit. It must not be there yet."""
    limits: ContainerLimits


class ContainerEnd(Enum):
    """Why a container is no more."""

    EXITED = "exited"
    TIMED_OUT = "timed_out"
    OUT_OF_MEMORY = "out_of_memory"
    OUTPUT_FULL = "output_full"
    """It filled /output: what it wrote last may be missing."""


class RefusalReason(Enum):
    """Why something under /output was not taken over."""

    LINK = "link"
    SPECIAL_FILE = "special_file"
    UNREADABLE = "unreadable"
    TOO_LARGE = "too_large"
    TOO_DEEP = "too_deep"
    TOO_MANY = "too_many"
    BAD_NAME = "bad_name"


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedOutput:
    """Something that the program left under /output and that was not taken over."""

    path: str
    """Printable ASCII: every other byte is escaped."""
    reason: RefusalReason


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
    output_complete: bool
    """Whether all of /output arrived, but for what was refused."""
    refused: tuple[RefusedOutput, ...] = ()
    """The first hundred."""
    refused_count: int = 0
