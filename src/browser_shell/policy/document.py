"""The policy file: its sections, keys, ranges and defaults. `loading.py` reads it; only enforced rules have a key.

The reference of the policy file is generated from the docstrings of the sections and of their fields.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import PurePosixPath
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator

from browser_shell.core.access import ViewMode
from browser_shell.core.containers import MIB, ContainerLimits
from browser_shell.core.decisions import Decision, denied
from browser_shell.policy.addresses import parse_endpoint, parse_exemption
from browser_shell.policy.commands import COMMANDS
from browser_shell.policy.urls import BAD_PORTS, canonical_host, canonical_origin, canonical_suffix

JOB_TOOLS = ("run_playwright", "run_pytest")
_DEFAULT_CONCURRENT_JOBS = 2
"""A job takes a processor and a gigabyte of memory."""
_MIN_JOB_MEMORY_MIB = 384
"""The files in /tmp and /output lie in the same memory; with less, nothing is left for the program."""
_MEMORY_FOR_PROGRAMS_MIB = 192
_CEILING = ContainerLimits()
"""The largest limits of a job. No policy file can raise them."""


def _canonical_endpoint(text: str) -> str:
    return str(parse_endpoint(text))


def _valid_exemption(text: str) -> str:
    parse_exemption(text)
    return text


def _known_subcommand(name: str) -> str:
    if name not in COMMANDS:
        raise ValueError(f"is not a subcommand that can be allowed; known are {', '.join(COMMANDS)}")
    return name


def _usable_port(port: int) -> int:
    if port in BAD_PORTS:
        raise ValueError("is on the list of ports that every browser refuses")
    return port


def _known_job_tool(name: str) -> str:
    if name == "run_shell":
        raise ValueError("can never be allowed: this server runs no shell commands")
    if name not in JOB_TOOLS:
        raise ValueError(f"is not a tool that can be listed; known are {', '.join(JOB_TOOLS)}")
    return name


def _plain_directory(path: str) -> str:
    parts = PurePosixPath(path)
    if not parts.is_absolute() or ".." in parts.parts or "\0" in path or str(parts) != path or path == "/":
        raise ValueError("must be an absolute directory, not /, written without ., .. and double slashes")
    return path


def _absolute_file(path: str) -> str:
    if not PurePosixPath(path).is_absolute() or "\0" in path:
        raise ValueError("must be an absolute path of a file")
    return path


Host: TypeAlias = Annotated[str, AfterValidator(canonical_host)]
HostSuffix: TypeAlias = Annotated[str, AfterValidator(canonical_suffix)]
ExemptAddress: TypeAlias = Annotated[str, AfterValidator(_valid_exemption)]
EndpointText: TypeAlias = Annotated[str, AfterValidator(_canonical_endpoint)]
Port: TypeAlias = Annotated[int, Field(ge=1, le=65535), AfterValidator(_usable_port)]
Subcommand: TypeAlias = Annotated[str, AfterValidator(_known_subcommand)]
Subject: TypeAlias = Annotated[str, Field(min_length=1, max_length=255)]
JobToolName: TypeAlias = Annotated[str, AfterValidator(_known_job_tool)]
LimitedTool: TypeAlias = Literal["browser-shell", "run_playwright", "run_pytest"]
Directory: TypeAlias = Annotated[str, AfterValidator(_plain_directory)]
Origin: TypeAlias = Annotated[str, AfterValidator(canonical_origin)]
PemFile: TypeAlias = Annotated[str, AfterValidator(_absolute_file)]
CallsPerMinute: TypeAlias = Annotated[int, Field(ge=1, le=100_000)]
CallsPerDay: TypeAlias = Annotated[int, Field(ge=1, le=10_000_000)]
ConcurrentCalls: TypeAlias = Annotated[int, Field(ge=1, le=1_000)]
Retries: TypeAlias = Annotated[int, Field(ge=0, le=10_000)]
SecondsOfOneDay: TypeAlias = Annotated[int, Field(ge=1, le=86_400)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True)


class OpenSection(_Section):
    """URLs that the browser may open. The egress proxy applies the same rules to every connection of a page."""

    allow_schemes: tuple[Literal["http", "https"], ...] = ("http", "https")
    """URL schemes that may be opened. No other scheme can be allowed."""
    allow_about_blank: bool = True
    """Whether `about:blank` may be opened."""
    allow_hosts: tuple[Host, ...] = ()
    """Host names that may be opened, without their subdomains. If this list and `allow_host_suffixes` are both empty,
    every public host may be opened."""
    allow_host_suffixes: tuple[HostSuffix, ...] = ()
    """Domains whose subdomains may be opened. `.example.com` allows `www.example.com`, but not `example.com` itself."""
    allow_ports: Annotated[tuple[Port, ...], Field(min_length=1)] | None = None
    """Ports that may be opened. `null` allows every port except those that browsers refuse (WHATWG Fetch)."""
    unsafe_allow_addresses: tuple[ExemptAddress, ...] = ()
    """Non-public addresses that may be reached nevertheless, for local development. An entry is an address, a network
    (`10.1.0.0/16`) or an address with a port (`127.0.0.1:8080`). Cloud metadata addresses cannot be listed."""
    unsafe_resolve: dict[Host, EndpointText] = Field(default_factory=dict)
    """Host names with the `address:port` to dial instead of the addresses in DNS, for staging and tests."""

    @field_validator("unsafe_resolve", mode="before")
    @classmethod
    def _each_host_once(cls, value: object) -> object:
        # With two spellings of one host, the order of the entries would decide which address is dialled.
        if isinstance(value, dict):
            hosts = [_canonical_or_as_written(str(key)) for key in value]
            duplicates = sorted({host for host in hosts if hosts.count(host) > 1})
            if duplicates:
                raise ValueError(f"names the same host twice: {', '.join(duplicates)}")
        return value


class BrowserSection(_Section):
    """Certificates and login prompts of the browser. A warning about a certificate cannot be bypassed."""

    trust_certificates: tuple[PemFile, ...] = ()
    """PEM files with certificates of private authorities that the browser trusts, for every host. The server reads
    them at its start; a file that is missing or wrong stops the start."""
    allow_login_prompts: tuple[Origin, ...] = ()
    """Origins (`https://host` or `https://host:port`) whose HTTP authentication opens a login prompt, which a person
    answers in the live view. Pages of other origins fail with `CREDENTIALS_REQUIRED`."""


class CommandsSection(_Section):
    """Subcommands of `browser-shell` that clients may use."""

    allow: Annotated[tuple[Subcommand, ...], Field(min_length=1)] | None = None
    """Allowed subcommands. `null` allows all subcommands of this server; the list can only narrow them."""


class OutputSection(_Section):
    """Format and size of results."""

    max_characters: Annotated[int, Field(ge=1000, le=200_000)] = 30_000
    """Maximum length of `stdout` in characters, including the final newline. Shortened output is still valid JSON."""
    screenshot_format: Literal["jpeg", "png"] = "jpeg"
    """Image format of `screenshot`."""
    screenshot_quality: Annotated[int, Field(ge=1, le=100)] = 80
    """JPEG quality of `screenshot`, in percent. PNG images ignore it."""
    max_image_bytes: Annotated[int, Field(ge=1024, le=32 * MIB)] = 4 * MIB
    """Maximum size of a screenshot in bytes. A larger one fails with `OUTPUT_TOO_LARGE`."""
    max_pdf_bytes: Annotated[int, Field(ge=1024, le=64 * MIB)] = 8 * MIB
    """Maximum size of a PDF document in bytes. A larger one fails with `OUTPUT_TOO_LARGE`."""
    redact: bool = True
    """Whether values that look like tokens or passwords are removed from results."""


class SessionsSection(_Section):
    """Number and lifetime of browser sessions."""

    max: Annotated[int, Field(ge=1, le=64)] = 8
    """Maximum number of open sessions, over all callers."""
    max_per_subject: Annotated[int | None, Field(ge=1, le=64)] = None
    """Maximum number of open sessions of one subject, so that no caller takes all places. `null` is half of `max`, but
    at least 1. All callers without a token are one subject."""
    idle_seconds: Annotated[int, Field(ge=10, le=86_400)] = 900
    """Seconds after its last call at which a session is closed."""

    @property
    def max_of_one_subject(self) -> int:
        """The value of `max_per_subject` that applies."""
        return self.max_per_subject or max(1, self.max // 2)


class ViewingSection(_Section):
    """Subjects that may watch the live view. All sessions share one display, so every viewer sees all of them."""

    allow_subjects: tuple[Subject, ...] | None = None
    """Token subjects that may get viewer tickets. `null` allows all subjects."""
    control_subjects: tuple[Subject, ...] | None = None
    """Subjects among `allow_subjects` that may also use mouse and keyboard. `null` allows all of them."""
    control_idle_seconds: Annotated[int, Field(ge=1, le=600)] = 10
    """Seconds without mouse or keyboard input after which a takeover ends. Calls of agents are refused until then, or
    until the person hands control back."""

    def decide(self, subject: str, mode: ViewMode) -> Decision:
        """Decide whether a subject may have a ticket of this mode."""
        if self.allow_subjects is not None and subject not in self.allow_subjects:
            return denied("viewing.subject", "this subject may not watch")
        controls = self.control_subjects is None or subject in self.control_subjects
        if mode is ViewMode.CONTROL and not controls:
            return denied("viewing.control", "this subject may watch, but not take over")
        return Decision(allowed=True, rule_id="viewing.subject", reason="this subject may watch")


class GovernanceBudget(_Section):
    """Budget of one task. A task is one session of `browser-shell`, or all runs of one job tool."""

    max_retries: Retries = 10
    """How often a failing call may be repeated unchanged before it is refused."""
    elapsed_seconds: SecondsOfOneDay = 1_800
    """Seconds of execution that the task may use in one window."""
    window_seconds: SecondsOfOneDay = 3_600
    """Seconds from the first use of a budget until it is renewed."""


class BudgetOverride(_Section):
    """Budget values for one tool or subject."""

    max_retries: Retries | None = None
    """How often a failing call may be repeated unchanged. `null` keeps the more general value."""
    elapsed_seconds: SecondsOfOneDay | None = None
    """Seconds of execution in one window. `null` keeps the more general value."""
    window_seconds: SecondsOfOneDay | None = None
    """Seconds until the budget is renewed. `null` keeps the more general value."""

    def applied_to(self, budget: GovernanceBudget) -> GovernanceBudget:
        return budget.model_copy(update=self.model_dump(exclude_none=True))


class CallLimits(_Section):
    """Limits for one subject and one tool."""

    calls_per_minute: CallsPerMinute = 3_000
    """Rate: calls in any 60 seconds."""
    calls_per_day: CallsPerDay = 200_000
    """Quota: calls in any 24 hours."""
    concurrent_calls: ConcurrentCalls = 8
    """Calls that may run at the same time. Job tools have at most 2, unless `tools` or `subjects` sets another
    value."""
    budget: GovernanceBudget = GovernanceBudget()
    """Budget of one task."""


class LimitsOverride(_Section):
    """Limits for one tool or subject."""

    calls_per_minute: CallsPerMinute | None = None
    """Rate: calls in any 60 seconds. `null` keeps the more general value."""
    calls_per_day: CallsPerDay | None = None
    """Quota: calls in any 24 hours. `null` keeps the more general value."""
    concurrent_calls: ConcurrentCalls | None = None
    """Calls that may run at the same time. `null` keeps the more general value."""
    budget: BudgetOverride = BudgetOverride()
    """Budget of one task."""

    def applied_to(self, limits: CallLimits) -> CallLimits:
        changes = self.model_dump(exclude_none=True, exclude={"budget"})
        return limits.model_copy(update={**changes, "budget": self.budget.applied_to(limits.budget)})


class LimitsSection(CallLimits):
    """Limits for each subject and tool. Every value counts separately for each pair, and none can be unlimited."""

    tools: dict[LimitedTool, LimitsOverride] = Field(default_factory=dict)
    """Other values for single tools, by the name of the tool."""
    subjects: dict[Subject, LimitsOverride] = Field(default_factory=dict)
    """Other values for single token subjects. They take precedence over those in `tools`."""

    def of(self, subject: str, tool: str) -> CallLimits:
        """Return the limits of one subject and tool: general values, then the tool's, then the subject's."""
        limits = CallLimits(
            calls_per_minute=self.calls_per_minute,
            calls_per_day=self.calls_per_day,
            concurrent_calls=min(self.concurrent_calls, _DEFAULT_CONCURRENT_JOBS)
            if tool in JOB_TOOLS
            else self.concurrent_calls,
            budget=self.budget,
        )
        for name, override in self.tools.items():
            limits = override.applied_to(limits) if name == tool else limits
        override_of_subject = self.subjects.get(subject)
        return override_of_subject.applied_to(limits) if override_of_subject is not None else limits


class AuditSection(_Section):
    """Files and signatures of the audit log. The log cannot be turned off."""

    rotate_bytes: Annotated[int, Field(ge=64 * 1024, le=1024 * MIB)] = 32 * MIB
    """Size in bytes at which a log file is closed and the next one begins. Log files are never removed."""
    checkpoint_records: Annotated[int, Field(ge=1, le=10_000)] = 500
    """Number of records after which the log is signed."""
    checkpoint_seconds: Annotated[int, Field(ge=1, le=3600)] = 30
    """Seconds after which new records are signed, even if there are fewer than `checkpoint_records`."""


class ToolsSection(_Section):
    """Tools of the write profile. The browser profile always has one tool, `browser-shell`."""

    allowlist: Annotated[tuple[JobToolName, ...], Field(min_length=1)] | None = None
    """Job tools that are offered. `null` offers `run_playwright` and `run_pytest`; `run_shell` cannot be listed."""


class PlaywrightSection(_Section):
    """Artifacts that `run_playwright` keeps."""

    screenshots: bool = True
    """Whether a screenshot of each page is kept when its test ends."""
    videos: bool = False
    """Whether a video of each page is kept."""
    traces: bool = True
    """Whether a trace of each test is kept, for Playwright's trace viewer."""


class RetentionSection(_Section):
    """Lifetime of finished runs on the disk. An unfinished run is never removed."""

    max_age_hours: Annotated[int, Field(ge=1, le=24 * 366)] = 24 * 7
    """Age in hours at which a run is removed."""
    max_total_mib: Annotated[int, Field(ge=1, le=1024 * 1024)] = 2048
    """Total size of all runs in MiB above which the oldest runs are removed."""


class SandboxSection(_Section):
    """Containers in which jobs run. They have no network, and no key can give them one."""

    image: Annotated[str, Field(min_length=1, max_length=255)] = "browser-shell/jobs:latest"
    """Container image: a digest, a local id or a tag. The server resolves a tag to a local id once, at its start, and
    logs the id. Images are never pulled."""
    engine: Literal["docker", "podman"] = "docker"
    """Container engine whose default socket is used if no setting names a socket."""
    memory_mib: Annotated[int, Field(ge=_MIN_JOB_MEMORY_MIB, le=_CEILING.memory_bytes // MIB)] = (
        _CEILING.memory_bytes // MIB
    )
    """Memory and swap of a job in MiB, including the files that it writes to /tmp and /output."""
    cpus: Annotated[float, Field(ge=0.1, le=_CEILING.cpus)] = _CEILING.cpus
    """Number of processors that a job may use."""
    timeout_seconds: Annotated[int, Field(ge=1, le=_CEILING.timeout_seconds)] = _CEILING.timeout_seconds
    """Maximum duration of a job in seconds. A caller may request less with `timeout_sec`."""
    pids: Annotated[int, Field(ge=16, le=_CEILING.processes)] = _CEILING.processes
    """Maximum number of processes and threads of a job."""
    max_running: Annotated[int, Field(ge=1, le=16)] = 2
    """Maximum number of jobs that run at the same time, over all callers."""
    workspace_roots: Annotated[tuple[Directory, ...], Field(min_length=1)] | None = None
    """Absolute directories. The workspace of the server must be one of them or lie inside one; `null` allows any."""
    retention: RetentionSection = RetentionSection()
    """Lifetime of finished runs on the disk."""

    def limits(self, timeout_seconds: int) -> ContainerLimits:
        """Return the limits of one run. /tmp and /output are held in memory and leave room for the program."""
        scratch_mib = min(_CEILING.scratch_bytes // MIB, self.memory_mib // 4)
        output_mib = min(_CEILING.output_bytes // MIB, self.memory_mib - scratch_mib - _MEMORY_FOR_PROGRAMS_MIB)
        return ContainerLimits(
            memory_bytes=self.memory_mib * MIB,
            cpus=self.cpus,
            timeout_seconds=min(timeout_seconds, self.timeout_seconds),
            processes=self.pids,
            scratch_bytes=scratch_mib * MIB,
            output_bytes=output_mib * MIB,
        )


class PolicyDocument(_Section):
    """The policy file. An empty document is the safe default."""

    version: Literal[1] = 1
    """Version of the file format."""
    open: OpenSection = OpenSection()
    """URLs that the browser may open."""
    browser: BrowserSection = BrowserSection()
    """Certificates and login prompts of the browser."""
    commands: CommandsSection = CommandsSection()
    """Subcommands that clients may use."""
    output: OutputSection = OutputSection()
    """Format and size of results."""
    sessions: SessionsSection = SessionsSection()
    """Number and lifetime of browser sessions."""
    viewing: ViewingSection = ViewingSection()
    """Subjects that may watch the live view."""
    limits: LimitsSection = LimitsSection()
    """Limits for each subject and tool."""
    audit: AuditSection = AuditSection()
    """Files and signatures of the audit log."""
    tools: ToolsSection = ToolsSection()
    """Tools of the write profile."""
    playwright: PlaywrightSection = PlaywrightSection()
    """Artifacts that `run_playwright` keeps."""
    sandbox: SandboxSection = SandboxSection()
    """Containers in which jobs run."""

    def digest(self) -> str:
        """Return the SHA-256 of the canonical JSON. Two files with the same meaning have the same digest."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    def unsafe_settings(self) -> list[str]:
        """Describe each protection that this document weakens, one line each."""
        exempt = [f"open.unsafe_allow_addresses: {entry} is reachable" for entry in self.open.unsafe_allow_addresses]
        redirected = [
            f"open.unsafe_resolve: {host} is dialled at {address} without DNS"
            for host, address in self.open.unsafe_resolve.items()
        ]
        return exempt + redirected


def _canonical_or_as_written(host: str) -> str:
    try:
        return canonical_host(host)
    except ValueError:
        return host
