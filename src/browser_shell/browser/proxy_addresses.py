"""Give each session a proxy address of its own, so that the egress proxy can attribute its connections."""

from __future__ import annotations

import itertools

from browser_shell.core.decisions import Requester

_ADDRESSES = 250 * 65536


class ProxyAddresses:
    """Loopback addresses by session. Every 127.x.y.z reaches the proxy."""

    def __init__(self, *, port: int) -> None:
        self.port = port
        self._numbers = itertools.count(1)
        self._requesters: dict[str, Requester] = {}

    def take(self, requester: Requester) -> str:
        """Return an unused address. Addresses repeat after sixteen million sessions."""
        number = next(self._numbers) % _ADDRESSES
        address = f"127.{1 + number // 65536}.{number // 256 % 256}.{number % 256}"
        self._requesters[address] = requester
        return address

    def release(self, address: str) -> None:
        self._requesters.pop(address, None)

    def requester_at(self, address: str) -> Requester | None:
        """None for an address of no open session: the connection is then the browser's own."""
        return self._requesters.get(address)
