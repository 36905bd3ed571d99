"""Name lookups with the system's resolver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from socket import AF_INET, AF_INET6, SOCK_STREAM

import anyio

from browser_shell.core.decisions import IpAddress


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemResolver:
    """Calls `getaddrinfo`. A failed lookup, an invalid name and a timeout all return no address."""

    deadline_seconds: float = 5.0

    async def resolve(self, host: str) -> Sequence[IpAddress]:
        """Return the distinct addresses of a name."""
        with anyio.move_on_after(self.deadline_seconds):
            try:
                answers = await anyio.getaddrinfo(host, None, type=SOCK_STREAM)
            except (OSError, UnicodeError, ValueError):
                return ()
            return tuple(dict.fromkeys(_address(entry[4][0]) for entry in answers if entry[0] in (AF_INET, AF_INET6)))
        return ()


def _address(text: str) -> IpAddress:
    # Link-local addresses carry a scope such as %eth0, which policy rules do not use.
    return ip_address(text.partition("%")[0])
