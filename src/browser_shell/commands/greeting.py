"""The text that `browser-shell serve` prints when it is ready: address, token, client configuration."""

from __future__ import annotations

import json

from browser_shell import __version__
from browser_shell.http.routes import HostName, parse_host
from browser_shell.http.tokens import THROWAWAY_SECONDS
from browser_shell.settings import Settings

_LOOPBACK_OF = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104  # compared, not listened on
_SECONDS_PER_DAY = 86_400


def greeting(settings: Settings, *, token: str | None, port: int, job_image: str = "") -> str:
    """Compose the greeting for a terminal. It contains the throw-away token, so it must not reach a log."""
    address = f"http://{_authority(settings, port)}"
    rows = [
        ("MCP (Streamable HTTP)", f"{address}/mcp"),
        ("policy", f"{settings.policy_source}, digest {settings.policy.digest()[:12]}"),
    ]
    if token is not None:
        days = THROWAWAY_SECONDS // _SECONDS_PER_DAY
        rows.append(("token", token))
        rows.append(("", f"of a throw-away key: valid until this server stops, at most {days} days;"))
        rows.append(("", "for a key of your own: browser-shell token keygen, and JWT_PUBLIC_KEY"))
    if job_image:
        rows.append(("workspace", f"{settings.jobs.workspace}, read-only for jobs"))
        rows.append(("runs and evidence", str(settings.jobs.artifacts)))
        rows.append(("job image", f"{settings.policy.sandbox.image} is {job_image}"))
    elif settings.unsafe_attach_port is None:
        # Browsers do not send the fragment, so the token is in no request line and in no log.
        rows.append(("live view", f"{address}/vnc/" + (f"#token={token}" if token is not None else "")))
    rows.append(("client configuration", _client_configuration(f"{address}/mcp", settings, token)))
    rows.append(("stop", "Ctrl-C"))
    return "\n".join(
        ["", f"browser-shell {__version__} is ready.", *(f"  {name:<23}{text}" for name, text in rows), ""]
    )


def _authority(settings: Settings, port: int) -> str:
    """Host and port for clients. PUBLIC_HOSTS comes first: a container cannot see the port it is published on."""
    if settings.access.public_hosts:
        host = settings.access.public_hosts[0]
        return host if parse_host(host) != HostName(host.lower()) else f"{host}:{port}"
    host = _LOOPBACK_OF.get(settings.host, f"[{settings.host}]" if ":" in settings.host else settings.host)
    return f"{host}:{port}"


def _client_configuration(url: str, settings: Settings, token: str | None) -> str:
    entry: dict[str, object] = {"type": "http", "url": url}
    if not settings.access.unsafe_no_auth:
        entry["headers"] = {"Authorization": f"Bearer {token or '<token>'}"}
    return json.dumps({"mcpServers": {"browser-shell": entry}})
