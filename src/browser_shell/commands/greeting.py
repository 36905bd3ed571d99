"""What `browser-shell serve` says when it is ready: how to reach it, and with what."""

from __future__ import annotations

import json

from browser_shell import __version__
from browser_shell.http.routes import HostName, parse_host
from browser_shell.http.tokens import THROWAWAY_SECONDS
from browser_shell.settings import Settings

_ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104  # named, not listened on


def greeting(settings: Settings, *, token: str | None, port: int, job_image: str = "") -> str:
    """For people, who read it in a terminal. It holds the throw-away token, so it goes nowhere else."""
    address = f"http://{_authority(settings, port)}"
    lines = [
        "",
        f"browser-shell {__version__} is ready.",
        f"  MCP (Streamable HTTP)  {address}/mcp",
        f"  policy                 {settings.policy_source}, digest {settings.policy.digest()[:12]}",
    ]
    if token is not None:
        days = THROWAWAY_SECONDS // 86_400
        lines.append(f"  token                  {token}")
        lines.append(
            f"                         of a throw-away key: good until this server stops, at most {days} days;"
        )
        lines.append("                         for one of your own: browser-shell token keygen, and JWT_PUBLIC_KEY")
    if job_image:
        lines.append(f"  workspace              {settings.jobs.workspace}, read-only for jobs")
        lines.append(f"  runs and evidence      {settings.jobs.artifacts}")
        lines.append(f"  job image              {settings.policy.sandbox.image} is {job_image}")
    elif settings.unsafe_attach_port is None:
        # In the fragment, which browsers keep to themselves: the token is in no request line and in no log.
        credential = f"#token={token}" if token is not None else ""
        lines.append(f"  live view              {address}/vnc/{credential}")
    lines.append(f"  client configuration   {_client_configuration(f'{address}/mcp', settings, token)}")
    lines.append("  stop                   Ctrl-C")
    return "\n".join(lines) + "\n"


def _authority(settings: Settings, port: int) -> str:
    """Where people reach the server: what the operator says, since a container cannot see where it is published."""
    if settings.access.public_hosts:
        named = settings.access.public_hosts[0]
        return named if parse_host(named) != HostName(named.lower()) else f"{named}:{port}"
    host = _ANYWHERE.get(settings.host, f"[{settings.host}]" if ":" in settings.host else settings.host)
    return f"{host}:{port}"


def _client_configuration(url: str, settings: Settings, token: str | None) -> str:
    entry: dict[str, object] = {"type": "http", "url": url}
    if not settings.access.unsafe_no_auth:
        entry["headers"] = {"Authorization": f"Bearer {token or '<token>'}"}
    return json.dumps({"mcpServers": {"browser-shell": entry}})
