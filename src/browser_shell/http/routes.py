"""Routes of the public listener, and the hosts and origins that it accepts. All are compared without decoding."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from browser_shell.core.errors import ConfigurationInvalid


class Route(Enum):
    """The endpoints of the public listener."""

    MCP = "mcp"
    TICKETS = "tickets"
    VIEWER = "viewer"
    SOCKET = "socket"


SOCKET_PATHS = frozenset({b"/vnc", b"/websockify", b"/vnc/websockify"})
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
_METHODS = {
    Route.MCP: frozenset({"GET", "POST", "DELETE"}),
    Route.TICKETS: frozenset({"POST"}),
    Route.VIEWER: frozenset({"GET", "HEAD"}),
    Route.SOCKET: frozenset({"GET"}),
}
_ROUTES = {
    b"/mcp": Route.MCP,
    b"/tickets": Route.TICKETS,
    b"/vnc": Route.VIEWER,
    b"/vnc/": Route.VIEWER,
    b"/websockify": Route.SOCKET,
    b"/vnc/websockify": Route.SOCKET,
}
# No segment starts with a dot and there is no percent-encoding, so a path cannot leave its directory.
_VIEWER_FILE = re.compile(rb"/vnc(?:/[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}){1,8}")
_HOST = re.compile(r"([a-z0-9_](?:[a-z0-9._-]{0,251}[a-z0-9_])?|\[[0-9a-f:.]{2,45}\])(?::([1-9][0-9]{0,4}))?")
_ORIGIN = re.compile(r"(https?)://(.+)")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_MAX_PORT = 65535


def match_route(raw_path: bytes) -> Route | None:
    """Return the route of a path; None when there is none."""
    route = _ROUTES.get(raw_path)
    if route is None and _VIEWER_FILE.fullmatch(raw_path):
        return Route.VIEWER
    return route


def allows_method(route: Route, method: str) -> bool:
    return method in _METHODS[route]


@dataclass(frozen=True, slots=True)
class HostName:
    """A host name with a port, or with any port when there is none."""

    name: str
    port: int | None = None


def parse_host(text: str) -> HostName | None:
    """Parse a Host header; None when it is not of the form `name` or `name:port`."""
    matched = _HOST.fullmatch(text.lower())
    if matched is None:
        return None
    port = int(matched[2]) if matched[2] else None
    if port is not None and port > _MAX_PORT:
        return None
    return HostName(matched[1], port)


def _parse_origin(text: str) -> tuple[str, HostName] | None:
    """Parse an Origin header into its scheme and host; None when it is not written as browsers write it."""
    matched = _ORIGIN.fullmatch(text)
    host = parse_host(matched[2]) if matched else None
    if matched is None or host is None or matched[2] != matched[2].lower():
        return None
    return matched[1], host


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustedHosts:
    """The Host names that the server answers to, and the origins whose pages may use it."""

    hosts: frozenset[HostName]
    origins: frozenset[str] = frozenset()

    def allows_host(self, header: str) -> bool:
        host = parse_host(header)
        return host is not None and (host in self.hosts or HostName(host.name) in self.hosts)

    def allows_origin(self, origin: str, *, host: str) -> bool:
        """Whether an origin is listed, or is this server itself as the Host header `host` names it.

        Both schemes are accepted for the server itself: a reverse proxy may have terminated TLS.
        """
        if origin in self.origins:
            return True
        own, page = parse_host(host), _parse_origin(origin)
        if own is None or page is None:
            return False
        scheme, page_host = page
        default_port = _DEFAULT_PORTS[scheme]
        return (page_host.name, page_host.port or default_port) == (own.name, own.port or default_port)


def parse_trusted_hosts(*, listen: str, hosts: Iterable[str] = (), origins: Iterable[str] = ()) -> TrustedHosts:
    """Collect the loopback names, the listening address and the configured names and origins.

    Loopback names are safe because DNS rebinding cannot change them. They are valid on any port, since a container
    may be published on any.

    Raises: ConfigurationInvalid naming PUBLIC_HOSTS or ALLOWED_ORIGINS.
    """
    names = {HostName(name) for name in LOOPBACK_NAMES}
    listening = parse_host(f"[{listen}]" if ":" in listen else listen)
    if listening is not None and listen not in ("0.0.0.0", "::"):  # noqa: S104  # compared, not listened on
        names.add(listening)
    for entry in hosts:
        host = parse_host(entry)
        if host is None:
            raise ConfigurationInvalid(f"PUBLIC_HOSTS: {entry[:80]!r} is not a name, or name:port")
        names.add(host)
    return TrustedHosts(hosts=frozenset(names), origins=frozenset(_check_origin(origin) for origin in origins))


def _check_origin(entry: str) -> str:
    origin = _parse_origin(entry)
    if origin is None or origin[1].port == _DEFAULT_PORTS[origin[0]]:
        raise ConfigurationInvalid(
            f"ALLOWED_ORIGINS: {entry[:80]!r} is not an origin as browsers write it, such as https://console.example.com"
        )
    return entry
