"""The policy file: its sections, their defaults, and how it is read. Only what is enforced has a key."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator

from browser_shell.core.access import ViewMode
from browser_shell.core.decisions import Decision
from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.policy.bad_ports import BAD_PORTS
from browser_shell.policy.commands import COMMANDS
from browser_shell.policy.document_errors import explain
from browser_shell.policy.document_text import read_document
from browser_shell.policy.endpoints import checked_endpoint, checked_exemption
from browser_shell.policy.hosts import canonical_host, canonical_suffix
from browser_shell.policy.job_sections import PlaywrightSection, SandboxSection, ToolsSection
from browser_shell.policy.limits import LimitsSection
from browser_shell.policy.messages import listed

MIB = 1024 * 1024


def _subcommand(name: str) -> str:
    if name not in COMMANDS:
        raise ValueError(f"is not a subcommand that can be allowed; known are {listed(COMMANDS)}")
    return name


def _usable_port(port: int) -> int:
    if port in BAD_PORTS:
        raise ValueError("is on the list of ports that every browser refuses")
    return port


Host: TypeAlias = Annotated[str, AfterValidator(canonical_host)]
HostSuffix: TypeAlias = Annotated[str, AfterValidator(canonical_suffix)]
ExemptAddress: TypeAlias = Annotated[str, AfterValidator(checked_exemption)]
DialAddress: TypeAlias = Annotated[str, AfterValidator(checked_endpoint)]
Subcommand: TypeAlias = Annotated[str, AfterValidator(_subcommand)]
Subject: TypeAlias = Annotated[str, Field(min_length=1, max_length=255)]
Port: TypeAlias = Annotated[int, Field(ge=1, le=65535), AfterValidator(_usable_port)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class OpenSection(_Section):
    """Where the browser may go."""

    allow_schemes: tuple[Literal["http", "https"], ...] = ("http", "https")
    """Schemes that may be opened. No other scheme can be allowed."""
    allow_about_blank: bool = True
    """Whether `about:blank` may be opened."""
    allow_hosts: tuple[Host, ...] = ()
    """Hosts that may be opened, exactly. With `allow_host_suffixes` empty too, every public host may."""
    allow_host_suffixes: tuple[HostSuffix, ...] = ()
    """`.example.com` allows every subdomain of example.com, and not example.com itself."""
    allow_ports: Annotated[tuple[Port, ...], Field(min_length=1)] | None = None
    """Ports that may be opened; null means every port that browsers do not refuse."""
    unsafe_allow_addresses: tuple[ExemptAddress, ...] = ()
    """For local development: addresses, networks, or address:port that are reachable although not public."""
    unsafe_resolve: dict[Host, DialAddress] = Field(default_factory=dict)
    """For staging and tests: host names with the address:port to dial instead of asking DNS."""

    @field_validator("unsafe_resolve", mode="before")
    @classmethod
    def _each_host_once(cls, value: object) -> object:
        # Two spellings of one host would leave it to chance which address is dialled.
        if isinstance(value, dict):
            seen = [_spelling(str(key)) for key in value]
            twins = sorted({host for host in seen if seen.count(host) > 1})
            if twins:
                raise ValueError(f"names the same host twice: {listed(twins)}")
        return value


class CommandsSection(_Section):
    """Which subcommands clients may use."""

    allow: Annotated[tuple[Subcommand, ...], Field(min_length=1)] | None = None
    """Narrows the set of subcommands; null means all that this server knows."""


class OutputSection(_Section):
    """What results look like."""

    max_characters: Annotated[int, Field(ge=1000, le=200_000)] = 30_000
    """Longest `stdout`, with its line end. It stays valid JSON when it is cut."""
    screenshot_format: Literal["jpeg", "png"] = "jpeg"
    """Image format of `screenshot`."""
    screenshot_quality: Annotated[int, Field(ge=1, le=100)] = 80
    """JPEG quality."""
    max_image_bytes: Annotated[int, Field(ge=1024, le=32 * MIB)] = 4 * MIB
    """Largest image that is handed out."""
    max_pdf_bytes: Annotated[int, Field(ge=1024, le=64 * MIB)] = 8 * MIB
    """Largest document that is handed out."""
    redact: bool = True
    """Whether token-like values are taken out of results."""


class SessionsSection(_Section):
    """How many browsers there are, and how long."""

    max: Annotated[int, Field(ge=1, le=64)] = 8
    """Open sessions at one time, over all callers."""
    idle_seconds: Annotated[int, Field(ge=10, le=86_400)] = 900
    """A session that nobody used for this long is closed."""


class ViewingSection(_Section):
    """Who may watch the display. It is one: whoever watches sees every session of the box."""

    allow_subjects: tuple[Subject, ...] | None = None
    """Subjects of tokens that may get tickets; null means all."""
    control_subjects: tuple[Subject, ...] | None = None
    """Of those, the ones that may also get tickets for mouse and keyboard; null means all of them."""
    control_idle_seconds: Annotated[int, Field(ge=1, le=600)] = 10
    """Agents wait until a person with mouse and keyboard has not used them for this long, or has handed back."""

    def decide(self, subject: str, mode: ViewMode) -> Decision:
        """Whether a subject may have a ticket of this mode."""
        if self.allow_subjects is not None and subject not in self.allow_subjects:
            return Decision(allowed=False, rule_id="viewing.subject", reason="this subject may not watch")
        limited = mode is ViewMode.CONTROL and self.control_subjects is not None
        if limited and subject not in (self.control_subjects or ()):
            return Decision(
                allowed=False, rule_id="viewing.control", reason="this subject may watch, but not take over"
            )
        return Decision(allowed=True, rule_id="viewing.subject", reason="this subject may watch")


class AuditSection(_Section):
    """How the audit log is kept. It cannot be turned off."""

    rotate_bytes: Annotated[int, Field(ge=64 * 1024, le=1024 * MIB)] = 32 * MIB
    """A file of the log that is larger is followed by a new one. None is ever removed."""
    checkpoint_records: Annotated[int, Field(ge=1, le=10_000)] = 500
    """After this many records the log signs what it holds."""
    checkpoint_seconds: Annotated[int, Field(ge=1, le=3600)] = 30
    """After this long it does, however few they are."""


class PolicyDocument(_Section):
    """The whole file. An empty document is the safe default."""

    version: Literal[1] = 1
    """Version of this format."""
    open: OpenSection = OpenSection()
    """Where the browser may go."""
    commands: CommandsSection = CommandsSection()
    """Which subcommands clients may use."""
    output: OutputSection = OutputSection()
    """What results look like."""
    sessions: SessionsSection = SessionsSection()
    """How many browsers there are, and how long."""
    viewing: ViewingSection = ViewingSection()
    """Who may watch the display."""
    limits: LimitsSection = LimitsSection()
    """How much each subject may use each tool."""
    audit: AuditSection = AuditSection()
    """How the audit log is kept."""
    tools: ToolsSection = ToolsSection()
    """Which tools the write profile offers."""
    playwright: PlaywrightSection = PlaywrightSection()
    """What Playwright keeps of a run."""
    sandbox: SandboxSection = SandboxSection()
    """The containers in which jobs run."""

    def digest(self) -> str:
        """SHA-256 of the canonical JSON: two files with one meaning have one digest."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    def unsafe_settings(self) -> list[str]:
        """One line for people about each protection that this document weakens."""
        exempt = [f"open.unsafe_allow_addresses: {entry} is reachable" for entry in self.open.unsafe_allow_addresses]
        redirected = [
            f"open.unsafe_resolve: {host} is dialled at {address} without DNS"
            for host, address in self.open.unsafe_resolve.items()
        ]
        return exempt + redirected


def load_policy(text: str, *, source: str) -> PolicyDocument:
    """Read a policy from JSON or YAML text.

    Raises: ConfigurationInvalid naming the source, the field and the rule.
    """
    return policy_from(read_document(text, source=source), source=source)


def policy_from(data: object, *, source: str) -> PolicyDocument:
    """Read a policy from parsed data.

    Raises: ConfigurationInvalid naming the source, the field and the rule.
    """
    try:
        # Through JSON, so that one strict reading serves both formats: arrays are lists, and "yes" is no boolean.
        return PolicyDocument.model_validate_json(json.dumps(data, allow_nan=False))
    except ValidationError as wrong:
        raise ConfigurationInvalid(f"{source}: {explain(wrong, PolicyDocument)}", rule_id="policy.invalid") from wrong
    except (TypeError, ValueError, RecursionError) as wrong:
        raise ConfigurationInvalid(f"{source}: holds a value that JSON cannot", rule_id="policy.invalid") from wrong


def _spelling(host: str) -> str:
    try:
        return canonical_host(host)
    except ValueError:
        return host
