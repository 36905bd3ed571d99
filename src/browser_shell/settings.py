"""The only reader of the environment, and of the policy file that it points to."""

from __future__ import annotations

import base64
import os
import platform
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.policy.document import PolicyDocument
from browser_shell.policy.loading import load_policy

DRIVER_VERSION = "0.41.0"
NOVNC_VERSION = "1.7.0"
# Of the binaries inside the npm package at that version.
DRIVER_SHA256 = {
    "x86_64": "399c7e9f06bd29aa933fdf25c0bd958eea06927fc0ce6f536ba6347aabd64628",
    "aarch64": "e196e9cabe6cb1b01bd5912973628361b9f40a332683a12426abad007f0d3589",
}
DEFAULT_POLICY = Path("/etc/agent-browser/browser-shell.policy.json")
JOBS_DIRECTORY = "jobs"
"""Of the state directory: log and runs of the write profile."""
DEFAULT_PUBLIC_KEY = Path("/etc/agent-browser/public.pem")
_LARGEST_POLICY_BYTES = 1024 * 1024

# What users of AIO Sandbox may still set. Each belongs to a part that is not here, or would weaken one that is.
IGNORED_NAMES = (
    *("WAIT_PORTS", "WAIT_TIMEOUT", "WAIT_INTERVAL", "MCP_HUB_WAIT_PORTS", "MCP_HUB_PORT", "MCP_SERVER_BROWSER_PORT"),
    *("DISABLE_JUPYTER", "DISABLE_CODE_SERVER", "DISABLE_MCP_BROWSER", "JUPYTER_LAB_PORT", "CODE_SERVER_PORT"),
    *("HOMEPAGE", "BROWSER_EXTRA_ARGS", "BROWSER_COMMANDLINE_ARGS", "BROWSER_NO_SANDBOX", "BROWSER_USER_AGENT"),
    *("PROXY_SERVER", "TINYPROXY_PORT", "DNS_OVER_HTTPS_TEMPLATES", "SANDBOX_API_KEY"),
)
CONTAINER_LOCKS = ("user", "capabilities", "privileges", "seccomp", "root", "tmp", "memory", "pids", "mounts")
IMAGE_MARKER = Path("/opt/browser-shell/shipped-image")
"""Of root, and beside the programs, so that nothing can be mounted over the folder without hiding these too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessSettings:
    """Who may call the public port, and how often."""

    public_hosts: tuple[str, ...]
    """Names that the server answers to, besides loopback ones and the address that it listens on."""
    allowed_origins: tuple[str, ...]
    """Origins of pages elsewhere that may call this server."""
    jwt_public_key: str
    """Base64 of a PEM; '' for a throw-away key."""
    jwt_algorithm: str
    jwt_audience: str | None
    jwt_issuer: str | None
    ticket_seconds: int
    requests_per_second: int
    """Of one subject."""
    metrics_address: str
    """'' for no metrics."""
    unsafe_no_auth: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSettings:
    """What the write profile needs."""

    workspace: Path | None
    """The directory whose tests are run; jobs see it read-only."""
    artifacts: Path
    """Where runs and their evidence are kept."""
    engine_address: str
    """`unix:///…`; '' for the usual socket of the engine that the policy names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What an operator can set. Every field is checked: a wrong value stops the start and names its variable."""

    host: str
    """Address of the public port."""
    port: int
    access: AccessSettings
    devtools_port: int
    """0 picks a free one."""
    display_width: int
    display_height: int
    timezone: str
    account: str
    """Whom Chromium, the display and the driver run as when the server is started as root."""
    chromium: Path
    driver: Path
    novnc: Path
    """The viewer's library, as npm has it."""
    policy: PolicyDocument
    policy_source: str
    state_directory: Path
    runtime_directory: Path
    jobs: JobSettings
    limits_redis: str = field(default="", repr=False)
    """Where several servers count together; '' for this process alone. It may hold a password, so nothing shows it."""
    ignored: tuple[str, ...] = ()
    """Names of AIO Sandbox that are set and mean nothing here."""
    in_container: bool = False
    """Whether this is the shipped image, which starts behind all its locks only."""
    unsafe_missing_locks: tuple[str, ...] = ()
    unsafe_attach_port: int | None = None
    unsafe_no_jail: bool = False

    def needs_lock(self, name: str) -> bool:
        """Whether this server may not run without that lock of CONTAINER_LOCKS."""
        return self.in_container and name not in self.unsafe_missing_locks


def read_settings(
    environ: Mapping[str, str] | None = None, *, policy_path: Path | None = None, port: int | None = None
) -> Settings:
    """Raises: ConfigurationInvalid."""
    env = os.environ if environ is None else environ
    policy, source = _read_policy(policy_path or _path(env, "BROWSER_SHELL_POLICY"))
    return Settings(
        host=env.get("PUBLIC_HOST", "").strip() or "127.0.0.1",
        port=port if port is not None else _number(env, "PUBLIC_PORT", 8080, 0, 65535),
        access=_read_access(env),
        devtools_port=_number(env, "BROWSER_REMOTE_DEBUGGING_PORT", 9222, 0, 65535),
        display_width=_number(env, "DISPLAY_WIDTH", 1280, 320, 7680),
        display_height=_number(env, "DISPLAY_HEIGHT", 1024, 240, 4320),
        timezone=env.get("TZ", ""),
        account=env.get("BROWSER_SHELL_USER") or "browser-shell",
        chromium=_path(env, "BROWSER_SHELL_CHROMIUM") or Path("/usr/lib/chromium/chromium"),
        driver=_path(env, "BROWSER_SHELL_DRIVER") or _installed(env) / f"agent-browser-{DRIVER_VERSION}",
        novnc=_path(env, "BROWSER_SHELL_NOVNC") or _installed(env) / f"novnc-{NOVNC_VERSION}",
        policy=policy,
        policy_source=source,
        state_directory=_state(env),
        runtime_directory=_path(env, "BROWSER_SHELL_RUNTIME_DIR") or _default_runtime(),
        jobs=_read_jobs(env),
        limits_redis=_redis_address(env, "BROWSER_SHELL_LIMITS_REDIS"),
        ignored=tuple(name for name in IGNORED_NAMES if env.get(name)),
        # The variable can add the locks elsewhere; it cannot take them from the image.
        in_container=bool(env.get("BROWSER_SHELL_CONTAINER")) or os.path.lexists(IMAGE_MARKER),
        unsafe_missing_locks=_locks(env, "BROWSER_SHELL_UNSAFE_MISSING_LOCKS"),
    )


def _read_jobs(env: Mapping[str, str]) -> JobSettings:
    return JobSettings(
        workspace=_path(env, "BROWSER_SHELL_WORKSPACE"),
        artifacts=_path(env, "BROWSER_SHELL_ARTIFACTS_DIR") or _state(env) / JOBS_DIRECTORY / "artifacts",
        engine_address=_engine_address(env),
    )


def _engine_address(env: Mapping[str, str]) -> str:
    """Only sockets of this machine: an engine on a network would be asked without anybody proving who it is."""
    for name in ("BROWSER_SHELL_ENGINE", "DOCKER_HOST"):
        text = env.get(name, "").strip()
        if text and not (text.startswith("unix:///") and "\0" not in text):
            raise ConfigurationInvalid(f"{name}: must be a socket of this machine, unix:///path, not {text[:80]!r}")
        if text:
            return text
    return ""


def _read_access(env: Mapping[str, str]) -> AccessSettings:
    return AccessSettings(
        public_hosts=_words(env, "PUBLIC_HOSTS"),
        allowed_origins=_words(env, "ALLOWED_ORIGINS"),
        jwt_public_key=_public_key(env),
        jwt_algorithm=_choice(env, "JWT_ALGORITHM", ("RS256", "ES256", "EdDSA")),
        jwt_audience=env.get("JWT_AUDIENCE", "").strip() or None,
        jwt_issuer=env.get("JWT_ISSUER", "").strip() or None,
        ticket_seconds=_number(env, "TICKET_TTL_SECONDS", 30, 1, 300),
        requests_per_second=_number(env, "BROWSER_SHELL_REQUESTS_PER_SECOND", 60, 1, 100_000),
        metrics_address=env.get("METRICS_ADDRESS", "").strip(),
    )


def read_key_file(path: Path) -> bytes:
    """Raises: ConfigurationInvalid."""
    try:
        with path.open("rb") as file:
            return file.read(_LARGEST_POLICY_BYTES)
    except OSError as cause:
        raise ConfigurationInvalid(f"key file {path}: {cause.strerror}") from cause


def read_policy_file(path: Path) -> PolicyDocument:
    """Raises: ConfigurationInvalid."""
    return _read_policy(path)[0]


def driver_digest() -> str:
    """The digest that the driver's binary must have on this machine. Raises: ConfigurationInvalid."""
    machine = platform.machine()
    if machine not in DRIVER_SHA256:
        raise ConfigurationInvalid(f"this machine is a {machine}; browser-shell runs on {' and '.join(DRIVER_SHA256)}")
    return DRIVER_SHA256[machine]


def _read_policy(path: Path | None) -> tuple[PolicyDocument, str]:
    if path is None:
        if not DEFAULT_POLICY.exists():
            return PolicyDocument(), "safe defaults (no policy file)"
        path = DEFAULT_POLICY
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_POLICY_BYTES + 1)
        text = content.decode("utf-8")
    except (OSError, UnicodeDecodeError) as cause:
        raise ConfigurationInvalid(f"policy file {path}: cannot be read: {cause}") from cause
    if len(content) > _LARGEST_POLICY_BYTES:
        raise ConfigurationInvalid(f"policy file {path}: larger than {_LARGEST_POLICY_BYTES} bytes")
    return load_policy(text, source=str(path)), str(path)


def _number(env: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    text = env.get(name, "").strip()
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
        raise ConfigurationInvalid(f"{name}: must be a whole number from {least} to {most}, not {text[:40]!r}")
    return int(text)


def _choice(env: Mapping[str, str], name: str, known: tuple[str, ...]) -> str:
    """The first one is the default."""
    text = env.get(name, "").strip() or known[0]
    if text not in known:
        raise ConfigurationInvalid(f"{name}: must be one of {', '.join(known)}, not {text[:40]!r}")
    return text


def _public_key(env: Mapping[str, str]) -> str:
    """Base64 of a PEM, from the variable or from a file; '' when there is neither."""
    text, path = env.get("JWT_PUBLIC_KEY", "").strip(), _path(env, "JWT_PUBLIC_KEY_FILE")
    if text and path:
        raise ConfigurationInvalid("JWT_PUBLIC_KEY_FILE: JWT_PUBLIC_KEY is set too; say only one of them")
    if text or (path is None and not DEFAULT_PUBLIC_KEY.exists()):
        return text
    return base64.b64encode(read_key_file(path or DEFAULT_PUBLIC_KEY)).decode("ascii")


def _locks(env: Mapping[str, str], name: str) -> tuple[str, ...]:
    words = _words(env, name)
    for word in words:
        if word not in CONTAINER_LOCKS:
            raise ConfigurationInvalid(f"{name}: must be some of {', '.join(CONTAINER_LOCKS)}, not {word[:40]!r}")
    return words


def _words(env: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in env.get(name, "").split(",") if word.strip())


def _redis_address(env: Mapping[str, str], name: str) -> str:
    text = env.get(name, "").strip()
    if text and not text.startswith(("redis://", "rediss://", "unix://")):
        # Its value is not shown: it may hold a password.
        raise ConfigurationInvalid(f"{name}: must begin with redis://, rediss:// or unix://")
    return text


def _path(env: Mapping[str, str], name: str) -> Path | None:
    text = env.get(name, "")
    if not text:
        return None
    if not Path(text).is_absolute():
        raise ConfigurationInvalid(f"{name}: must be an absolute path, not {text[:80]!r}")
    return Path(text)


def _home(env: Mapping[str, str]) -> Path:
    return Path(env.get("HOME") or "/nonexistent")


def _installed(env: Mapping[str, str]) -> Path:
    """Where scripts/install puts programs: readable for the account that Chromium runs as."""
    return Path("/usr/local/lib/browser-shell") if os.geteuid() == 0 else _home(env) / ".local/lib/browser-shell"


def _state(env: Mapping[str, str]) -> Path:
    return _path(env, "BROWSER_SHELL_STATE_DIR") or _default_state(env)


def _default_state(env: Mapping[str, str]) -> Path:
    return Path("/var/lib/browser-shell") if os.geteuid() == 0 else _home(env) / ".local/state/browser-shell"


def _default_runtime() -> Path:
    """Short: socket paths lie below it."""
    return (
        Path("/run/browser-shell")
        if os.geteuid() == 0
        else Path(tempfile.gettempdir()) / f"browser-shell-{os.geteuid()}"
    )
