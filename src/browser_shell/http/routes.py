"""What the public port offers: paths, methods, hosts and origins, judged on the bytes as they came."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from browser_shell.core.errors import ConfigurationInvalid


class Area(Enum):
    """The parts of the surface."""

    MCP = "mcp"
    TICKETS = "tickets"
    VIEWER = "viewer"
    SOCKET = "socket"


SOCKET_PATHS = frozenset({b"/vnc", b"/websockify", b"/vnc/websockify"})
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
_METHODS = {
    Area.MCP: frozenset({"GET", "POST", "DELETE"}),
    Area.TICKETS: frozenset({"POST"}),
    Area.VIEWER: frozenset({"GET", "HEAD"}),
    Area.SOCKET: frozenset({"GET"}),
}
_EXACT = {
    b"/mcp": Area.MCP,
    b"/tickets": Area.TICKETS,
    b"/vnc": Area.VIEWER,
    b"/vnc/": Area.VIEWER,
    b"/websockify": Area.SOCKET,
    b"/vnc/websockify": Area.SOCKET,
}
# No segment begins with a dot and nothing is encoded, so there is nothing to decode, normalise or walk out of.
_ASSET = re.compile(rb"/vnc(?:/[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}){1,8}")
_HOST = re.compile(r"([a-z0-9_](?:[a-z0-9._-]{0,251}[a-z0-9_])?|\[[0-9a-f:.]{2,45}\])(?::([1-9][0-9]{0,4}))?")
_ORIGIN = re.compile(r"(https?)://(.+)")
_DEFAULT_PORT = {"http": 80, "https": 443}
_LARGEST_PORT = 65535


def match_route(raw_path: bytes) -> Area | None:
    """Where a path leads; None for every path that does not exist, however it is written."""
    area = _EXACT.get(raw_path)
    if area is None and _ASSET.fullmatch(raw_path):
        return Area.VIEWER
    return area


def offers(area: Area, method: str) -> bool:
    return method in _METHODS[area]


@dataclass(frozen=True, slots=True)
class HostName:
    """One name that this server answers to; without a port, on every port."""

    name: str
    port: int | None = None


def parse_host(text: str) -> HostName | None:
    """What a Host header says; None when it is not plainly `name` or `name:port`."""
    found = _HOST.fullmatch(text.lower())
    if found is None:
        return None
    port = int(found[2]) if found[2] else None
    if port is not None and port > _LARGEST_PORT:
        return None
    return HostName(found[1], port)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustedHosts:
    """Whom the server answers: under which names, and to pages of which origins."""

    hosts: frozenset[HostName]
    origins: frozenset[str] = frozenset()

    def knows_host(self, header: str) -> bool:
        host = parse_host(header)
        return host is not None and (host in self.hosts or HostName(host.name) in self.hosts)

    def trusts_origin(self, origin: str, *, host: str) -> bool:
        """Listed exactly, or a page of this server itself. `host` is a Host header that `knows_host`.

        A page of this server may have come over TLS that somebody ended before us, so both schemes are its own.
        """
        if origin in self.origins:
            return True
        found = _ORIGIN.fullmatch(origin)
        own, page = parse_host(host), parse_host(found[2]) if found else None
        if found is None or own is None or page is None or found[2] != found[2].lower():
            return False
        standard = _DEFAULT_PORT[found[1]]
        return (page.name, page.port or standard) == (own.name, own.port or standard)


def neighbours(*, listen: str, hosts: Iterable[str] = (), origins: Iterable[str] = ()) -> TrustedHosts:
    """Loopback names are always answered; they cannot be rebound. Any port: a container publishes where it likes.

    Raises: ConfigurationInvalid naming PUBLIC_HOSTS or ALLOWED_ORIGINS.
    """
    known = {HostName(name) for name in LOOPBACK_NAMES}
    bound = parse_host(f"[{listen}]" if ":" in listen else listen)
    if bound is not None and listen not in ("0.0.0.0", "::"):  # noqa: S104  # compared, not listened on
        known.add(bound)
    for entry in hosts:
        host = parse_host(entry)
        if host is None:
            raise ConfigurationInvalid(f"PUBLIC_HOSTS: {entry[:80]!r} is not a name, or name:port")
        known.add(host)
    return TrustedHosts(hosts=frozenset(known), origins=frozenset(_checked_origin(origin) for origin in origins))


def _checked_origin(entry: str) -> str:
    found = _ORIGIN.fullmatch(entry)
    host = parse_host(found[2]) if found else None
    if found is None or host is None or found[2] != found[2].lower() or host.port == _DEFAULT_PORT[found[1]]:
        raise ConfigurationInvalid(
            f"ALLOWED_ORIGINS: {entry[:80]!r} is not an origin as browsers write it, such as https://console.example.com"
        )
    return entry
