"""The policy's sections for container jobs. Every limit has a ceiling here that no file can lift."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from browser_shell.core.containers import ContainerLimits
from browser_shell.policy.messages import listed

JOB_TOOLS = ("run_playwright", "run_pytest")
MIB = 1024 * 1024
LEAST_MEMORY_MIB = 384
"""Scratch and output lie in the same memory; with less there is none left for a program."""
_RESERVED_MIB = 192
_CEILING = ContainerLimits()
_LONGEST_IMAGE = 255


def _job_tool(name: str) -> str:
    if name == "run_shell":
        raise ValueError("can never be allowed: this server runs no shell commands")
    if name not in JOB_TOOLS:
        raise ValueError(f"is not a tool that can be listed; known are {listed(JOB_TOOLS)}")
    return name


def _plain_directory(path: str) -> str:
    parts = PurePosixPath(path)
    if not parts.is_absolute() or ".." in parts.parts or "\0" in path or str(parts) != path or path == "/":
        raise ValueError("must be an absolute directory, not /, written without ., .. and double slashes")
    return path


JobToolName: TypeAlias = Annotated[str, AfterValidator(_job_tool)]
Directory: TypeAlias = Annotated[str, AfterValidator(_plain_directory)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class ToolsSection(_Section):
    """Which tools the write profile offers. The browser's profile has one tool, whatever stands here."""

    allowlist: Annotated[tuple[JobToolName, ...], Field(min_length=1)] | None = None
    """Narrows the job tools; null means all of them. `run_shell` cannot be listed."""


class PlaywrightSection(_Section):
    """What Playwright keeps of a run."""

    screenshots: bool = True
    """A picture of each page when its test ends."""
    videos: bool = False
    """A film of each page."""
    traces: bool = True
    """A trace of each test, for Playwright's viewer."""


class RetentionSection(_Section):
    """How long runs are kept. A run that goes on is never removed."""

    max_age_hours: Annotated[int, Field(ge=1, le=24 * 366)] = 24 * 7
    """Older runs are removed."""
    max_total_mib: Annotated[int, Field(ge=1, le=1024 * 1024)] = 2048
    """When all runs together are larger, the oldest are removed."""


class SandboxSection(_Section):
    """The containers in which jobs run. They have no network, and nothing here can give them one."""

    image: Annotated[str, Field(min_length=1, max_length=_LONGEST_IMAGE)] = "browser-shell/jobs:latest"
    """A digest or a local id. A tag is resolved to a local id once, at the start, and said. Nothing is ever pulled."""
    engine: Literal["docker", "podman"] = "docker"
    """Whose socket is asked when no setting names one."""
    memory_mib: Annotated[int, Field(ge=LEAST_MEMORY_MIB, le=_CEILING.memory_bytes // MIB)] = (
        _CEILING.memory_bytes // MIB
    )
    """Memory and swap together, with everything that the job writes to /tmp and /output."""
    cpus: Annotated[float, Field(ge=0.1, le=_CEILING.cpus)] = _CEILING.cpus
    """Processors."""
    timeout_seconds: Annotated[int, Field(ge=1, le=_CEILING.timeout_seconds)] = _CEILING.timeout_seconds
    """Longest run. Authenticator may ask for less."""
    pids: Annotated[int, Field(ge=16, le=_CEILING.processes)] = _CEILING.processes
    """Processes and threads at one time."""
    max_running: Annotated[int, Field(ge=1, le=16)] = 2
    """Jobs at one time, over all callers."""
    workspace_roots: Annotated[tuple[Directory, ...], Field(min_length=1)] | None = None
    """The server's workspace must be one of these directories, or lie in one; null means anywhere."""
    retention: RetentionSection = RetentionSection()
    """How long runs are kept."""

    def limits(self, timeout_seconds: int) -> ContainerLimits:
        """For one run. Scratch and output are held in memory and must leave room for programs."""
        scratch_mib = min(_CEILING.scratch_bytes // MIB, self.memory_mib // 4)
        output_mib = min(_CEILING.output_bytes // MIB, self.memory_mib - scratch_mib - _RESERVED_MIB)
        return ContainerLimits(
            memory_bytes=self.memory_mib * MIB,
            cpus=self.cpus,
            timeout_seconds=min(timeout_seconds, self.timeout_seconds),
            processes=self.pids,
            scratch_bytes=scratch_mib * MIB,
            output_bytes=output_mib * MIB,
        )
