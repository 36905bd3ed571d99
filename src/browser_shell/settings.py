"""Reads the environment and the policy file. No other module does."""

from __future__ import annotations

import base64
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.policy.document import PolicyDocument
from browser_shell.policy.loading import load_policy

DRIVER_VERSION = "0.41.0"
NOVNC_VERSION = "1.7.0"
DRIVER_SHA256 = {
    "x86_64": "399c7e9f06bd29aa933fdf25c0bd958eea06927fc0ce6f536ba6347aabd64628",
    "aarch64": "e196e9cabe6cb1b01bd5912973628361b9f40a332683a12426abad007f0d3589",
}
"""Digests of the binaries inside the npm package of agent-browser at that version."""
DEFAULT_CHROMIUM = Path("/usr/lib/chromium/chromium")
DEFAULT_POLICY = Path("/etc/agent-browser/browser-shell.policy.json")
DEFAULT_PUBLIC_KEY = Path("/etc/agent-browser/public.pem")
JOBS_DIRECTORY = "jobs"
"""Below the state and the runtime directory: files of the write profile."""
CONTAINER_LOCKS = ("user", "capabilities", "privileges", "seccomp", "root", "tmp", "memory", "pids", "mounts")
IMAGE_MARKER = Path("/opt/browser-shell/shipped-image")
"""Marks the shipped image. A mount that hides this file also hides the programs, so it cannot switch the locks off."""
IGNORED_NAMES = (
    *("WAIT_PORTS", "WAIT_TIMEOUT", "WAIT_INTERVAL", "MCP_HUB_WAIT_PORTS", "MCP_HUB_PORT", "MCP_SERVER_BROWSER_PORT"),
    *("DISABLE_JUPYTER", "DISABLE_CODE_SERVER", "DISABLE_MCP_BROWSER", "JUPYTER_LAB_PORT", "CODE_SERVER_PORT"),
    *("HOMEPAGE", "BROWSER_EXTRA_ARGS", "BROWSER_COMMANDLINE_ARGS", "BROWSER_NO_SANDBOX", "BROWSER_USER_AGENT"),
    *("PROXY_SERVER", "TINYPROXY_PORT", "DNS_OVER_HTTPS_TEMPLATES", "SANDBOX_API_KEY"),
)
"""Variables of AIO Sandbox that configure absent parts, or would weaken present ones. Set ones are logged."""
_MAX_FILE_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Variable:
    """An environment variable. `read_settings` and docs/reference/settings.md are both made from these."""

    name: str
    meaning: str
    default: str = ""
    """Used when the variable is unset or empty."""
    computed_default: str = ""
    """Describes, for the documentation, a default that depends on the machine."""
    bounds: tuple[int, int] | None = None
    choices: tuple[str, ...] = ()
    in_aio: bool = False
    """Whether AIO Sandbox has a variable of this name."""


VARIABLES: Mapping[str, tuple[Variable, ...]] = {
    "Network and access": (
        Variable("PUBLIC_PORT", "Public port. 0 picks a free one.", default="8080", in_aio=True, bounds=(0, 65535)),
        Variable("PUBLIC_HOST", "Address to listen on. The image sets 0.0.0.0.", default="127.0.0.1"),
        Variable(
            "PUBLIC_HOSTS",
            "Host names under which clients reach the server, separated by commas: "
            "`box.example.com, box.lan:8443`. Loopback names and `PUBLIC_HOST` are always accepted. "
            "The greeting shows the first.",
        ),
        Variable("ALLOWED_ORIGINS", "Origins of other web pages that may call the server, separated by commas."),
        Variable(
            "JWT_PUBLIC_KEY",
            "Base64 of a PEM public key that tokens are verified with.",
            computed_default="a new key at each start, whose token the greeting shows",
            in_aio=True,
        ),
        Variable(
            "JWT_PUBLIC_KEY_FILE",
            "PEM file with that key. Excludes `JWT_PUBLIC_KEY`.",
            computed_default=f"`{DEFAULT_PUBLIC_KEY}` if it exists",
        ),
        Variable(
            "JWT_ALGORITHM",
            "The only signature algorithm that is accepted.",
            default="RS256",
            choices=("RS256", "ES256", "EdDSA"),
        ),
        Variable("JWT_AUDIENCE", "When set, the claim `aud` of a token must contain it."),
        Variable("JWT_ISSUER", "When set, the claim `iss` of a token must equal it."),
        Variable(
            "TICKET_TTL_SECONDS",
            "Seconds in which a ticket for the live view must be used.",
            default="30",
            in_aio=True,
            bounds=(1, 300),
        ),
        Variable(
            "BROWSER_SHELL_REQUESTS_PER_SECOND",
            "HTTP requests per second of one subject.",
            default="60",
            bounds=(1, 100_000),
        ),
        Variable(
            "BROWSER_SHELL_LIMITS_REDIS",
            "`redis://`, `rediss://` or `unix://` address of a Redis on which several servers share limits. "
            "It may contain a password and is never logged.",
            computed_default="limits count in this process only",
        ),
        Variable(
            "METRICS_ADDRESS",
            "`address:port` of the Prometheus metrics. Loopback or private addresses only.",
            computed_default="no metrics",
        ),
    ),
    "Browser and files": (
        Variable(
            "BROWSER_SHELL_POLICY",
            "Absolute path of the policy file (JSON or YAML).",
            computed_default=f"`{DEFAULT_POLICY}` if it exists, else safe defaults",
        ),
        Variable(
            "BROWSER_REMOTE_DEBUGGING_PORT",
            "DevTools port on loopback. 0 picks a free one. Each server on a machine needs its own.",
            default="9222",
            in_aio=True,
            bounds=(0, 65535),
        ),
        Variable("DISPLAY_WIDTH", "Width of the display in pixels.", default="1280", in_aio=True, bounds=(320, 7680)),
        Variable("DISPLAY_HEIGHT", "Height of the display in pixels.", default="1024", in_aio=True, bounds=(240, 4320)),
        Variable("TZ", "Time zone of web pages, such as `Asia/Singapore`.", computed_default="UTC", in_aio=True),
        Variable(
            "BROWSER_SHELL_STATE_DIR",
            "Directory of the audit log and its key.",
            computed_default="`/var/lib/browser-shell` as root, else `~/.local/state/browser-shell`",
        ),
        Variable(
            "BROWSER_SHELL_RUNTIME_DIR",
            "Directory of sockets and of the browser profile. The path must be short. "
            "The image sets `/tmp/browser-shell`.",
            computed_default="`/run/browser-shell` as root, else `/tmp/browser-shell-UID`",
        ),
        Variable(
            "BROWSER_SHELL_USER",
            "Account that a server started as root changes to. Unused in the image.",
            default="browser-shell",
        ),
        Variable("BROWSER_SHELL_CHROMIUM", "Chromium's own binary.", computed_default=f"`{DEFAULT_CHROMIUM}`"),
        Variable(
            "BROWSER_SHELL_DRIVER",
            "Binary of agent-browser. Its digest is checked.",
            computed_default="installed by `make install`",
        ),
        Variable(
            "BROWSER_SHELL_NOVNC",
            "Directory of noVNC, the library of the live view.",
            computed_default="installed by `make install`",
        ),
    ),
    "Container image": (
        Variable(
            "BROWSER_SHELL_CONTAINER",
            "Any value requires the container locks outside the shipped image too. The image always requires them.",
        ),
        Variable(
            "BROWSER_SHELL_UNSAFE_MISSING_LOCKS",
            "Container locks that may be missing, separated by commas.",
            choices=CONTAINER_LOCKS,
        ),
    ),
    "Write profile": (
        Variable(
            "BROWSER_SHELL_WORKSPACE",
            "Directory whose tests are run, read-only for jobs. Required; `--workspace` overrides it.",
        ),
        Variable(
            "BROWSER_SHELL_ARTIFACTS_DIR",
            "Directory of runs and their evidence.",
            computed_default="`jobs/artifacts` in the state directory",
        ),
        Variable(
            "BROWSER_SHELL_ENGINE",
            "Socket of the container engine, `unix:///…`. Engines on a network are refused.",
            computed_default="`DOCKER_HOST`, else the standard socket of the policy's `sandbox.engine`",
        ),
        Variable("DOCKER_HOST", "Used when `BROWSER_SHELL_ENGINE` is not set."),
    ),
}
"""All variables that the server reads, by section of the documentation."""
_BY_NAME = {variable.name: variable for section in VARIABLES.values() for variable in section}


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessSettings:
    """Settings of the public port."""

    public_hosts: tuple[str, ...]
    allowed_origins: tuple[str, ...]
    jwt_public_key: str
    """Base64 of a PEM; '' for a throw-away key."""
    jwt_algorithm: str
    jwt_audience: str | None
    jwt_issuer: str | None
    ticket_seconds: int
    requests_per_second: int
    metrics_address: str
    unsafe_no_auth: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSettings:
    """Settings of the write profile."""

    workspace: Path | None
    artifacts: Path
    engine_address: str
    """`unix:///…`; '' for the standard socket of the engine that the policy names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings, validated. `VARIABLES` explains each."""

    host: str
    port: int
    access: AccessSettings
    devtools_port: int
    display_width: int
    display_height: int
    timezone: str
    account: str
    chromium: Path
    driver: Path
    novnc: Path
    policy: PolicyDocument
    policy_source: str
    state_directory: Path
    runtime_directory: Path
    jobs: JobSettings
    limits_redis: str = field(default="", repr=False)
    """Hidden from repr because it may contain a password."""
    ignored: tuple[str, ...] = ()
    """Members of IGNORED_NAMES that are set."""
    in_container: bool = False
    unsafe_missing_locks: tuple[str, ...] = ()
    unsafe_attach_port: int | None = None
    unsafe_no_jail: bool = False

    def needs_lock(self, name: str) -> bool:
        """Whether this server must not run without that one of CONTAINER_LOCKS."""
        return self.in_container and name not in self.unsafe_missing_locks


def read_settings(
    environ: Mapping[str, str] | None = None, *, policy_path: Path | None = None, port: int | None = None
) -> Settings:
    """Read all settings. Raises: ConfigurationInvalid, naming the variable."""
    values = os.environ if environ is None else environ
    env, is_root, home = _Environment(values), os.geteuid() == 0, Path(values.get("HOME") or "/nonexistent")
    policy_path = (
        policy_path or env.path("BROWSER_SHELL_POLICY") or (DEFAULT_POLICY if DEFAULT_POLICY.exists() else None)
    )
    # scripts/install puts programs here. The account that Chromium runs as can read it.
    programs = Path("/usr/local/lib/browser-shell") if is_root else home / ".local/lib/browser-shell"
    state = env.path("BROWSER_SHELL_STATE_DIR") or (
        Path("/var/lib/browser-shell") if is_root else home / ".local/state/browser-shell"
    )
    runtime = env.path("BROWSER_SHELL_RUNTIME_DIR") or (
        Path("/run/browser-shell") if is_root else Path(tempfile.gettempdir()) / f"browser-shell-{os.geteuid()}"
    )
    return Settings(
        host=env.text("PUBLIC_HOST"),
        port=port if port is not None else env.number("PUBLIC_PORT"),
        access=AccessSettings(
            public_hosts=env.words("PUBLIC_HOSTS"),
            allowed_origins=env.words("ALLOWED_ORIGINS"),
            jwt_public_key=_public_key(env),
            jwt_algorithm=env.choice("JWT_ALGORITHM"),
            jwt_audience=env.text("JWT_AUDIENCE") or None,
            jwt_issuer=env.text("JWT_ISSUER") or None,
            ticket_seconds=env.number("TICKET_TTL_SECONDS"),
            requests_per_second=env.number("BROWSER_SHELL_REQUESTS_PER_SECOND"),
            metrics_address=env.text("METRICS_ADDRESS"),
        ),
        devtools_port=env.number("BROWSER_REMOTE_DEBUGGING_PORT"),
        display_width=env.number("DISPLAY_WIDTH"),
        display_height=env.number("DISPLAY_HEIGHT"),
        timezone=env.raw("TZ"),
        account=env.raw("BROWSER_SHELL_USER"),
        chromium=env.path("BROWSER_SHELL_CHROMIUM") or DEFAULT_CHROMIUM,
        driver=env.path("BROWSER_SHELL_DRIVER") or programs / f"agent-browser-{DRIVER_VERSION}",
        novnc=env.path("BROWSER_SHELL_NOVNC") or programs / f"novnc-{NOVNC_VERSION}",
        policy=read_policy_file(policy_path) if policy_path else PolicyDocument(),
        policy_source=str(policy_path) if policy_path else "safe defaults (no policy file)",
        state_directory=state,
        runtime_directory=runtime,
        jobs=JobSettings(
            workspace=env.path("BROWSER_SHELL_WORKSPACE"),
            artifacts=env.path("BROWSER_SHELL_ARTIFACTS_DIR") or state / JOBS_DIRECTORY / "artifacts",
            engine_address=env.engine_socket("BROWSER_SHELL_ENGINE") or env.engine_socket("DOCKER_HOST"),
        ),
        limits_redis=env.redis_address("BROWSER_SHELL_LIMITS_REDIS"),
        ignored=tuple(name for name in IGNORED_NAMES if values.get(name)),
        # The variable adds the locks elsewhere. It cannot remove them from the image.
        in_container=bool(env.raw("BROWSER_SHELL_CONTAINER")) or os.path.lexists(IMAGE_MARKER),
        unsafe_missing_locks=env.choices("BROWSER_SHELL_UNSAFE_MISSING_LOCKS"),
    )


class _Environment:
    """Typed access to the variables of the table. Each method raises ConfigurationInvalid for a wrong value."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values

    def raw(self, name: str) -> str:
        return self._values.get(name, "") or _BY_NAME[name].default

    def text(self, name: str) -> str:
        return self.raw(name).strip() or _BY_NAME[name].default

    def number(self, name: str) -> int:
        text, (least, most) = self.text(name), _BY_NAME[name].bounds or (0, 0)
        if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
            raise ConfigurationInvalid(f"{name}: must be a whole number from {least} to {most}, not {text[:40]!r}")
        return int(text)

    def path(self, name: str) -> Path | None:
        text = self.raw(name)
        if text and not Path(text).is_absolute():
            raise ConfigurationInvalid(f"{name}: must be an absolute path, not {text[:80]!r}")
        return Path(text) if text else None

    def words(self, name: str) -> tuple[str, ...]:
        return tuple(word.strip() for word in self.raw(name).split(",") if word.strip())

    def choices(self, name: str) -> tuple[str, ...]:
        words, allowed = self.words(name), _BY_NAME[name].choices
        for word in words:
            if word not in allowed:
                raise ConfigurationInvalid(f"{name}: must be some of {', '.join(allowed)}, not {word[:40]!r}")
        return words

    def choice(self, name: str) -> str:
        text, allowed = self.text(name), _BY_NAME[name].choices
        if text not in allowed:
            raise ConfigurationInvalid(f"{name}: must be one of {', '.join(allowed)}, not {text[:40]!r}")
        return text

    def engine_socket(self, name: str) -> str:
        """Accept sockets of this machine only: an engine on a network would not be authenticated."""
        text = self.text(name)
        if text and not (text.startswith("unix:///") and "\0" not in text):
            raise ConfigurationInvalid(f"{name}: must be a socket of this machine, unix:///path, not {text[:80]!r}")
        return text

    def redis_address(self, name: str) -> str:
        text = self.text(name)
        if text and not text.startswith(("redis://", "rediss://", "unix://")):
            # The message does not quote the value, which may contain a password.
            raise ConfigurationInvalid(f"{name}: must begin with redis://, rediss:// or unix://")
        return text


def _public_key(env: _Environment) -> str:
    """Base64 of a PEM, from the variable or from a file; '' when neither is set."""
    text, path = env.text("JWT_PUBLIC_KEY"), env.path("JWT_PUBLIC_KEY_FILE")
    if text and path:
        raise ConfigurationInvalid("JWT_PUBLIC_KEY_FILE: JWT_PUBLIC_KEY is set too; set only one of them")
    if text or (path is None and not DEFAULT_PUBLIC_KEY.exists()):
        return text
    return base64.b64encode(read_key_file(path or DEFAULT_PUBLIC_KEY)).decode("ascii")


def read_key_file(path: Path) -> bytes:
    """Raises: ConfigurationInvalid."""
    try:
        with path.open("rb") as file:
            return file.read(_MAX_FILE_BYTES)
    except OSError as cause:
        raise ConfigurationInvalid(f"key file {path}: {cause.strerror}") from cause


def read_policy_file(path: Path) -> PolicyDocument:
    """Raises: ConfigurationInvalid."""
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_FILE_BYTES + 1)
        text = content.decode("utf-8")
    except (OSError, UnicodeDecodeError) as cause:
        raise ConfigurationInvalid(f"policy file {path}: cannot be read: {cause}") from cause
    if len(content) > _MAX_FILE_BYTES:
        raise ConfigurationInvalid(f"policy file {path}: larger than {_MAX_FILE_BYTES} bytes")
    return load_policy(text, source=str(path))
