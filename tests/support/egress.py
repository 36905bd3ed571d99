"""The egress proxy on loopback without a browser: origins that say what a test wants, and a raw client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any

import anyio
import anyio.lowlevel
from anyio.abc import AsyncResource, SocketAttribute, SocketListener, SocketStream

from browser_shell.core.egress import Denial, IpAddress, Requester
from browser_shell.core.ports import AuditLog, Resolver
from browser_shell.egress.dialer import Dialer
from browser_shell.egress.proxy import EgressProxy
from browser_shell.egress.recent_denials import RecentDenials
from browser_shell.policy.loading import policy_from
from browser_shell.policy.rules import UrlPolicy
from browser_shell.policy.urls import parse_target
from support.fakes import FakeClock, RecordingAudit

ALICE = Requester(subject="alice", session_id="s1")
LONGEST_WAIT_SECONDS = 5.0


@dataclass
class ScriptedResolver:
    """Answers each name with the next of its answers; the last one stays."""

    answers: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    async def resolve(self, host: str) -> Sequence[IpAddress]:
        await anyio.lowlevel.checkpoint()
        sequence = self.answers.get(host, [()])
        answer = sequence[min(self.asked.count(host), len(sequence) - 1)]
        self.asked.append(host)
        return [ip_address(text) for text in answer]


@dataclass
class RecordingConnect:
    """Dials nobody. Refuses, as a host that is switched off does, unless told which origin plays the address."""

    plays: Mapping[str, int] = field(default_factory=dict)
    """Loopback ports of the origins that stand for these addresses."""
    dialled: list[tuple[str, int]] = field(default_factory=list)

    async def __call__(self, address: str, port: int) -> SocketStream:
        self.dialled.append((address, port))
        if address not in self.plays:
            raise ConnectionRefusedError("nobody is there")
        return await anyio.connect_tcp("127.0.0.1", self.plays[address])


def a_dialer(
    open_section: Mapping[str, Any] | None = None,
    *,
    resolver: Resolver | None = None,
    audit: AuditLog | None = None,
    on_denial: Callable[[Denial], None] | None = None,
    **fields: Any,
) -> Dialer:
    return Dialer(
        rules=UrlPolicy(policy_from({"open": dict(open_section or {})}, source="the test")),
        parse=parse_target,
        resolver=resolver or ScriptedResolver(),
        audit=audit or RecordingAudit(),
        clock=FakeClock(),
        on_denial=on_denial or RecentDenials().add,
        **fields,
    )


@dataclass
class Origin:
    """A server that a test wrote."""

    port: int
    received: bytearray = field(default_factory=bytearray)
    """Everything that clients sent."""
    connections: int = 0
    left: anyio.Event = field(default_factory=anyio.Event)
    """Set when a client has gone."""

    async def has_received(self, wanted: bytes) -> None:
        await until(lambda: wanted in self.received)


class Talk(AsyncResource):
    """One connection of an origin: reads are remembered."""

    def __init__(self, stream: SocketStream, origin: Origin) -> None:
        self.stream, self._origin = stream, origin

    async def request(self) -> bytes:
        """Up to the end of the next head, and whatever came with it."""
        came = b""
        while b"\r\n\r\n" not in came:
            came += await self.some()
        return came

    async def some(self) -> bytes:
        part = await self.stream.receive()
        self._origin.received += part
        return part

    async def until(self, wanted: bytes) -> None:
        while wanted not in self._origin.received:
            await self.some()

    async def say(self, data: bytes) -> None:
        await self.stream.send(data)

    async def aclose(self) -> None:
        await self.stream.aclose()


@asynccontextmanager
async def an_origin(behave: Callable[[Talk], Awaitable[None]]) -> AsyncIterator[Origin]:
    """Behaves so on each connection, and closes it."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    origin = Origin(port=listener.extra(SocketAttribute.local_port))  # noqa: S610  no Django here

    async def handle(stream: SocketStream) -> None:
        origin.connections += 1
        async with Talk(stream, origin) as talk:
            try:
                await behave(talk)
            except (OSError, anyio.EndOfStream, anyio.BrokenResourceError):
                origin.left.set()

    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, handle)
        yield origin
        tasks.cancel_scope.cancel()


def answering(*answers: bytes) -> Callable[[Talk], Awaitable[None]]:
    """One answer to each request, then silence until the client leaves."""

    async def behave(talk: Talk) -> None:
        for answer in answers:
            await talk.request()
            await talk.say(answer)
        await talk.some()

    return behave


def answering_once(answer: bytes) -> Callable[[Talk], Awaitable[None]]:
    """One answer, then the connection ends."""

    async def behave(talk: Talk) -> None:
        await talk.request()
        await talk.say(answer)

    return behave


@dataclass
class RunningProxy:
    port: int
    audit: RecordingAudit
    denials: RecentDenials

    async def connect(self) -> SocketStream:
        return await anyio.connect_tcp("127.0.0.1", self.port)

    async def ask(self, raw: bytes) -> bytes:
        """Sends bytes and returns everything that comes until the proxy closes."""
        async with await self.connect() as client:
            await client.send(raw)
            return await read_all(client)

    def refused(self, requester: Requester = ALICE) -> list[str]:
        return [denial.rule_id for denial in self.denials.since(requester, 0)]


@asynccontextmanager
async def a_proxy(
    open_section: Mapping[str, Any] | None = None,
    *,
    requester_at: Callable[[str], Requester | None] = lambda _: ALICE,
    audit: RecordingAudit | None = None,
    **fields: Any,
) -> AsyncIterator[RunningProxy]:
    audit, book = audit or RecordingAudit(), RecentDenials()
    dialer = a_dialer(open_section, audit=audit, on_denial=book.add, **fields)
    multi = await anyio.create_tcp_listener(local_host="127.0.0.1")
    (listener,) = multi.listeners
    assert isinstance(listener, SocketListener)
    port = multi.extra(SocketAttribute.local_port)  # noqa: S610  no Django here
    running = RunningProxy(port=port, audit=audit, denials=book)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(EgressProxy(dialer=dialer, requester_at=requester_at).serve, listener)
        yield running
        tasks.cancel_scope.cancel()


async def until(condition: Callable[[], bool]) -> None:
    """For things that have no event to wait on."""
    with anyio.fail_after(LONGEST_WAIT_SECONDS):
        while not condition():  # noqa: ASYNC110  see above
            await anyio.sleep(0.005)


async def read_all(stream: SocketStream) -> bytes:
    """Until the peer ends; what came before a reset counts too."""
    came = b""
    with anyio.fail_after(LONGEST_WAIT_SECONDS):
        try:
            while True:
                came += await stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return came


async def read_until(stream: SocketStream, wanted: bytes) -> bytes:
    came = b""
    with anyio.fail_after(LONGEST_WAIT_SECONDS):
        while wanted not in came:
            came += await stream.receive()
    return came
