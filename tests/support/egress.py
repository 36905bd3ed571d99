"""The egress proxy on loopback without a browser, with scripted origins and a raw client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any

import anyio
import anyio.lowlevel
from anyio.abc import AsyncResource, SocketAttribute, SocketListener, SocketStream

from browser_shell.core.decisions import Denial, IpAddress, Requester
from browser_shell.core.ports import AuditLog, Resolver
from browser_shell.egress.denials import RecentDenials
from browser_shell.egress.dialer import Dialer
from browser_shell.egress.proxy import EgressProxy
from browser_shell.policy.loading import policy_from
from browser_shell.policy.rules import UrlPolicy
from support.fakes import FakeClock, RecordingAudit

ALICE = Requester(subject="alice", session_id="s1")
WAIT_SECONDS = 5.0


@dataclass
class ScriptedResolver:
    """Returns the next of the answers for a name; the last one is repeated."""

    answers: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    lookups: list[str] = field(default_factory=list)

    async def resolve(self, host: str) -> Sequence[IpAddress]:
        await anyio.lowlevel.checkpoint()
        sequence = self.answers.get(host, [()])
        answer = sequence[min(self.lookups.count(host), len(sequence) - 1)]
        self.lookups.append(host)
        return [ip_address(text) for text in answer]


@dataclass
class RecordingConnect:
    """Records the dialled addresses. Refuses the connection unless an origin stands for the address."""

    origins: Mapping[str, int] = field(default_factory=dict)
    """Loopback port of the origin that stands for an address."""
    dialled: list[tuple[str, int]] = field(default_factory=list)

    async def __call__(self, address: str, port: int) -> SocketStream:
        self.dialled.append((address, port))
        if address not in self.origins:
            raise ConnectionRefusedError("no origin stands for this address")
        return await anyio.connect_tcp("127.0.0.1", self.origins[address])


def make_dialer(
    open_section: Mapping[str, Any] | None = None,
    *,
    resolver: Resolver | None = None,
    audit: AuditLog | None = None,
    on_denial: Callable[[Denial], None] | None = None,
    **fields: Any,
) -> Dialer:
    return Dialer(
        rules=UrlPolicy(policy_from({"open": dict(open_section or {})}, source="the test")),
        resolver=resolver or ScriptedResolver(),
        audit=audit or RecordingAudit(),
        clock=FakeClock(),
        on_denial=on_denial or RecentDenials().add,
        **fields,
    )


@dataclass
class Origin:
    """A server with a scripted behaviour."""

    port: int
    received: bytearray = field(default_factory=bytearray)
    """All bytes of all clients."""
    connections: int = 0
    disconnected: anyio.Event = field(default_factory=anyio.Event)
    """Set when a client has disconnected."""

    async def has_received(self, expected: bytes) -> None:
        await until(lambda: expected in self.received)


class OriginConnection(AsyncResource):
    """One connection of an origin. Received bytes are recorded."""

    def __init__(self, stream: SocketStream, origin: Origin) -> None:
        self.stream, self._origin = stream, origin

    async def receive_head(self) -> bytes:
        """Receive the next head, and the bytes that arrive with it."""
        received = b""
        while b"\r\n\r\n" not in received:
            received += await self.receive()
        return received

    async def receive(self) -> bytes:
        part = await self.stream.receive()
        self._origin.received += part
        return part

    async def until(self, expected: bytes) -> None:
        while expected not in self._origin.received:
            await self.receive()

    async def send(self, data: bytes) -> None:
        await self.stream.send(data)

    async def aclose(self) -> None:
        await self.stream.aclose()


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def get(path: str = "/", *headers: str, host: str = "page.example", end: bool = True) -> bytes:
    lines = [f"GET http://{host}{path} HTTP/1.1", f"Host: {host}", *headers, *(["Connection: close"] if end else [])]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def body_of(message: bytes) -> bytes:
    return message.partition(b"\r\n\r\n")[2]


@asynccontextmanager
async def running_origin(behave: Callable[[OriginConnection], Awaitable[None]]) -> AsyncIterator[Origin]:
    """Run an origin that calls `behave` on each connection, then closes it."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    origin = Origin(port=listener.extra(SocketAttribute.local_port))  # noqa: S610  no Django here

    async def handle(stream: SocketStream) -> None:
        origin.connections += 1
        async with OriginConnection(stream, origin) as connection:
            try:
                await behave(connection)
            except (OSError, anyio.EndOfStream, anyio.BrokenResourceError):
                origin.disconnected.set()

    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, handle)
        yield origin
        tasks.cancel_scope.cancel()


def responding(*answers: bytes) -> Callable[[OriginConnection], Awaitable[None]]:
    """Send one response to each request, then wait until the client disconnects."""

    async def behave(connection: OriginConnection) -> None:
        for answer in answers:
            await connection.receive_head()
            await connection.send(answer)
        await connection.receive()

    return behave


def responding_once(answer: bytes) -> Callable[[OriginConnection], Awaitable[None]]:
    """Send one response and close."""

    async def behave(connection: OriginConnection) -> None:
        await connection.receive_head()
        await connection.send(answer)

    return behave


@dataclass
class RunningProxy:
    port: int
    audit: RecordingAudit
    denials: RecentDenials

    async def connect(self) -> SocketStream:
        return await anyio.connect_tcp("127.0.0.1", self.port)

    async def exchange(self, raw: bytes) -> bytes:
        """Send bytes and return all bytes received until the proxy closes."""
        async with await self.connect() as client:
            await client.send(raw)
            return await read_all(client)

    def denied_rules(self, requester: Requester = ALICE) -> list[str]:
        return [denial.rule_id for denial in self.denials.since(requester, 0)]


@asynccontextmanager
async def running_proxy(
    open_section: Mapping[str, Any] | None = None,
    *,
    requester_at: Callable[[str], Requester | None] = lambda _: ALICE,
    audit: RecordingAudit | None = None,
    **fields: Any,
) -> AsyncIterator[RunningProxy]:
    audit, denials = audit or RecordingAudit(), RecentDenials()
    dialer = make_dialer(open_section, audit=audit, on_denial=denials.add, **fields)
    multi = await anyio.create_tcp_listener(local_host="127.0.0.1")
    (listener,) = multi.listeners
    assert isinstance(listener, SocketListener)
    port = multi.extra(SocketAttribute.local_port)  # noqa: S610  no Django here
    running = RunningProxy(port=port, audit=audit, denials=denials)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(EgressProxy(dialer=dialer, requester_at=requester_at).serve, listener)
        yield running
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def proxied(
    behave: Callable[[OriginConnection], Awaitable[None]], policy: Mapping[str, Any] | None = None, **fields: Any
) -> AsyncIterator[tuple[Origin, RunningProxy]]:
    """Run an origin, and a proxy that finds it under both example hosts."""
    async with running_origin(behave) as origin:
        hosts = {f"{name}.example": f"127.0.0.1:{origin.port}" for name in ("page", "other")}
        async with running_proxy({"unsafe_resolve": hosts, **(policy or {})}, **fields) as proxy:
            yield origin, proxy


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition that has no event."""
    with anyio.fail_after(WAIT_SECONDS):
        while not condition():  # noqa: ASYNC110  see above
            await anyio.sleep(0.005)


async def read_all(stream: SocketStream) -> bytes:
    """Return all bytes until the peer closes or resets the connection."""
    received = b""
    with anyio.fail_after(WAIT_SECONDS):
        try:
            while True:
                received += await stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return received


async def read_until(stream: SocketStream, expected: bytes) -> bytes:
    received = b""
    with anyio.fail_after(WAIT_SECONDS):
        while expected not in received:
            received += await stream.receive()
    return received
