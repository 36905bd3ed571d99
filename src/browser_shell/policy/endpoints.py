"""Addresses as people write them into the `unsafe_` settings of a policy."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address, ip_network

from browser_shell.policy.addresses import IpAddress, IpNetwork, covers_metadata, is_metadata

_ADDRESS_AND_PORT = re.compile(r"(?:\[(?P<six>[0-9a-fA-F:.]+)\]|(?P<four>[0-9.]+)):(?P<port>[0-9]{1,5})")
_MAX_PORT = 65535


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One address and port to dial."""

    address: IpAddress
    port: int

    def __str__(self) -> str:
        return f"[{self.address}]:{self.port}" if self.address.version == 6 else f"{self.address}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exemption:
    """Addresses that a policy takes out of the deny table, at one port or at all."""

    network: IpNetwork
    port: int | None = None

    def covers(self, address: IpAddress, port: int) -> bool:
        """Never a metadata address: deny beats allow."""
        right_port = self.port is None or self.port == port
        return right_port and address.version == self.network.version and self._holds(address)

    def _holds(self, address: IpAddress) -> bool:
        return address in self.network and not is_metadata(address)


def parse_endpoint(text: str) -> Endpoint:
    """Read `address:port` or `[v6]:port`.

    Raises: ValueError saying what is wrong.
    """
    match = _ADDRESS_AND_PORT.fullmatch(text)
    if match is None:
        raise ValueError("must be address:port, for example 127.0.0.1:8080 or [::1]:8080")
    port = int(match["port"])
    if not 1 <= port <= _MAX_PORT:
        raise ValueError(f"must have a port from 1 to {_MAX_PORT}")
    address = _address(match["six"] or match["four"])
    if is_metadata(address):
        raise ValueError("is a cloud metadata address; nothing can allow it")
    return Endpoint(address=address, port=port)


def parse_exemption(text: str) -> Exemption:
    """Read an address, a network, `address:port` or `[v6]:port`.

    Raises: ValueError saying what is wrong.
    """
    if _ADDRESS_AND_PORT.fullmatch(text):
        endpoint = parse_endpoint(text)
        return Exemption(network=ip_network(endpoint.address), port=endpoint.port)
    if "%" in text:
        raise ValueError("must not name a network interface")
    network = _network(text)
    if covers_metadata(network):
        raise ValueError("covers a cloud metadata address; nothing can allow it, so name smaller networks")
    return Exemption(network=network)


def checked_endpoint(text: str) -> str:
    return str(parse_endpoint(text))


def checked_exemption(text: str) -> str:
    parse_exemption(text)
    return text


def _address(text: str) -> IpAddress:
    try:
        return ip_address(text)
    except ValueError as cause:
        raise ValueError("is not an IP address") from cause


def _network(text: str) -> IpNetwork:
    try:
        return ip_network(text)
    except ValueError as cause:
        raise ValueError("must be an address, a network such as 10.1.0.0/16, or address:port") from cause
