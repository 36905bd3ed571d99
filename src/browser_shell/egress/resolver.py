"""Host names to addresses, with the system's resolver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from socket import AF_INET, AF_INET6, SOCK_STREAM

import anyio

from browser_shell.core.egress import IpAddress


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemResolver:
    """Asks `getaddrinfo`. Silence, failure and nonsense all mean: no address."""

    deadline_seconds: float = 5.0

    async def resolve(self, host: str) -> Sequence[IpAddress]:
        """Every address of the name, each once; empty when there is none in time."""
        with anyio.move_on_after(self.deadline_seconds):
            try:
                answers = await anyio.getaddrinfo(host, None, type=SOCK_STREAM)
            except (OSError, UnicodeError, ValueError):
                return ()
            return tuple(dict.fromkeys(_address(entry[4][0]) for entry in answers if entry[0] in (AF_INET, AF_INET6)))
        return ()


def _address(text: str) -> IpAddress:
    # Only link-local addresses come with a scope, and the scope is of no use to a judge.
    return ip_address(text.partition("%")[0])
