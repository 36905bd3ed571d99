"""Decides about one connection and opens it: one lookup, a decision on every address, a dial to one of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from socket import AF_INET, AF_INET6, SOCK_STREAM
from typing import NoReturn

import anyio
from anyio.abc import SocketStream

from browser_shell.core.calls import UrlTarget
from browser_shell.core.decisions import UNREACHABLE_RULE, Decision, Denial, IpAddress, Requester
from browser_shell.core.errors import AuditUnavailable, CallRefused
from browser_shell.core.ports import AuditLog, Clock, Resolver
from browser_shell.core.records import AuditRecord, RecordKind
from browser_shell.policy.rules import UrlPolicy
from browser_shell.policy.urls import parse_target

_CONNECT_SECONDS = 10.0
_LOOKUP_SECONDS = 10.0
_MAX_ADDRESSES_TRIED = 4


class EgressDenied(Exception):
    """The policy denies the connection."""

    def __init__(self, decision: Decision) -> None:
        super().__init__(decision.reason)
        self.decision = decision


class EgressFailed(Exception):
    """The policy allows the connection, but the host does not accept it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialled:
    """A connection to a host that the policy allows."""

    target: UrlTarget
    stream: SocketStream


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialer:
    """The only code that connects the browser to the network."""

    rules: UrlPolicy
    resolver: Resolver
    audit: AuditLog
    clock: Clock
    on_denial: Callable[[Denial], None]
    """Called for every denied connection, and for one that the host does not accept (UNREACHABLE_RULE)."""
    connect: Callable[[str, int], Awaitable[SocketStream]] = anyio.connect_tcp
    """Connects to an address, never to a name: a second lookup could return an address that was not checked."""

    async def dial(self, requester: Requester, url: str) -> Dialled:
        """Connect to the host of `url`. Only its scheme, host and port matter.

        Raises: EgressDenied, EgressFailed.
        """
        target, addresses = await self._resolve_allowed(requester, url)
        port = target.port
        override = self.rules.resolved_by_policy(target.host)
        if override is not None:
            addresses, port = [override.address], override.port
        await self._record(requester, _authority(target), RecordKind.EGRESS_CONNECT, rule_id="")
        problem = "cannot be reached"
        for address in addresses[:_MAX_ADDRESSES_TRIED]:
            try:
                with anyio.fail_after(_CONNECT_SECONDS):
                    return Dialled(target=target, stream=await self.connect(str(address), port))
            except OSError as error:  # TimeoutError is an OSError.
                problem = _connect_problem(error)
        reason = f"{target.host} port {target.port} {problem}"
        self._report(requester, target, rule_id=UNREACHABLE_RULE, reason=reason)
        raise EgressFailed(reason)

    async def check_plaintext_tunnel(self, requester: Requester, url: str) -> None:
        """Check whether an open tunnel may carry something other than TLS. Raises: EgressDenied.

        Only the scheme differs from the URL that was allowed, so there is no second lookup.
        """
        target = await self._parse(requester, url)
        decision = self.rules.judge_name(target)
        if decision is not None and not decision.allowed:
            await self._deny(requester, target, decision)

    async def _resolve_allowed(self, requester: Requester, url: str) -> tuple[UrlTarget, list[IpAddress]]:
        target = await self._parse(requester, url)
        decision = self.rules.judge_name(target)
        addresses: list[IpAddress] = [target.address] if target.address is not None else []
        if decision is None:
            with anyio.move_on_after(_LOOKUP_SECONDS):
                addresses = list(await self.resolver.resolve(target.host))
            decision = self.rules.judge(target, addresses)
        if not decision.allowed:
            await self._deny(requester, target, decision)
        return target, addresses

    async def _parse(self, requester: Requester, url: str) -> UrlTarget:
        try:
            return parse_target(url)
        except CallRefused as refusal:
            decision = Decision(allowed=False, rule_id=refusal.rule_id or "url.syntax", reason=refusal.public_message)
            await self._record(requester, "", RecordKind.MCP_NETWORK_BLOCKED, rule_id=decision.rule_id)
            raise EgressDenied(decision) from refusal

    async def _deny(self, requester: Requester, target: UrlTarget, decision: Decision) -> NoReturn:
        """Report and record a denial. Raises: EgressDenied."""
        self._report(requester, target, rule_id=decision.rule_id, reason=decision.reason)
        await self._record(requester, _authority(target), RecordKind.MCP_NETWORK_BLOCKED, rule_id=decision.rule_id)
        raise EgressDenied(decision)

    def _report(self, requester: Requester, target: UrlTarget, *, rule_id: str, reason: str) -> None:
        self.on_denial(
            Denial(
                requester=requester,
                at=self.clock.monotonic(),
                host=target.host,
                port=target.port,
                rule_id=rule_id,
                reason=reason,
            )
        )

    async def _record(self, requester: Requester, host: str, kind: RecordKind, *, rule_id: str) -> None:
        """Raises: EgressDenied when the record cannot be written. An unrecorded connection is not opened."""
        try:
            await self.audit.record(
                AuditRecord(
                    kind=kind,
                    call_id="",
                    subject=requester.subject,
                    session_id=requester.session_id,
                    tool="egress",
                    host=host,
                    rule_id=rule_id,
                )
            )
        except AuditUnavailable as error:
            raise EgressDenied(
                Decision(allowed=False, rule_id="audit.unavailable", reason="the audit log cannot be written")
            ) from error


def _connect_problem(error: OSError) -> str:
    """Describe why a connection failed. `anyio.connect_tcp` raises an OSError from the original one."""
    cause = error.__cause__ or error
    if isinstance(cause, ConnectionRefusedError):
        return "refused the connection"
    return f"did not answer within {_CONNECT_SECONDS:g} s" if isinstance(error, TimeoutError) else "cannot be reached"


def _authority(target: UrlTarget) -> str:
    return f"[{target.host}]:{target.port}" if ":" in target.host else f"{target.host}:{target.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemResolver:
    """Looks up names with `getaddrinfo`. A failed lookup, an invalid name and a timeout all return no address."""

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
