"""Which session dials the egress proxy at which address: how a connection is known to be somebody's."""

from __future__ import annotations

import itertools

from browser_shell.core.egress import Requester

_ADDRESSES = 250 * 65536


class ProxyAddresses:
    """Any 127.x.y.z reaches the proxy, so each session gets one that nobody else uses."""

    def __init__(self, *, port: int) -> None:
        self.port = port
        self._numbers = itertools.count(1)
        self._requesters: dict[str, Requester] = {}

    def take(self, requester: Requester) -> str:
        """A fresh address. They come round again after sixteen million sessions."""
        number = next(self._numbers) % _ADDRESSES
        address = f"127.{1 + number // 65536}.{number // 256 % 256}.{number % 256}"
        self._requesters[address] = requester
        return address

    def release(self, address: str) -> None:
        self._requesters.pop(address, None)

    def requester_at(self, address: str) -> Requester | None:
        """None for an address that no open session has: then it is the browser itself that calls."""
        return self._requesters.get(address)
