"""Decides one connection and makes it: resolve once, judge every answer, dial an address that was judged."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import anyio
from anyio.abc import SocketStream

from browser_shell.core.decisions import Decision
from browser_shell.core.egress import Denial, IpAddress, Requester
from browser_shell.core.errors import AuditUnavailable, CallRefused
from browser_shell.core.plans import UrlTarget
from browser_shell.core.ports import AuditLog, Clock, Resolver
from browser_shell.core.records import AuditRecord, RecordKind
from browser_shell.policy.rules import UrlPolicy

_CONNECT_SECONDS = 10.0
_LOOKUP_SECONDS = 10.0
_ADDRESSES_TRIED = 4


class EgressDenied(Exception):
    """The policy says no."""

    def __init__(self, decision: Decision) -> None:
        super().__init__(decision.reason)
        self.decision = decision


class EgressFailed(Exception):
    """The policy says yes, and the other side does not answer."""


async def _connect(address: str, port: int) -> SocketStream:
    return await anyio.connect_tcp(address, port)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialled:
    """A connection to the host that was judged."""

    target: UrlTarget
    stream: SocketStream


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialer:
    """The only code that connects the browser to anything."""

    rules: UrlPolicy
    parse: Callable[[str], UrlTarget]
    resolver: Resolver
    audit: AuditLog
    clock: Clock
    on_denial: Callable[[Denial], None]
    connect: Callable[[str, int], Awaitable[SocketStream]] = _connect
    """To an address, never to a name: a second lookup could give another answer than the one that was judged."""

    async def dial(self, requester: Requester, url: str) -> Dialled:
        """Connects to the host of `url`, of which only scheme, host and port count.

        Raises: EgressDenied, EgressFailed.
        """
        target, addresses = await self._judged(requester, url)
        port = target.port
        fixed = self.rules.resolved_by_policy(target.host)
        if fixed is not None:
            addresses, port = [fixed.address], fixed.port
        await self._record(requester, _name(target), RecordKind.EGRESS_CONNECT, rule_id="")
        for address in addresses[:_ADDRESSES_TRIED]:
            try:
                with anyio.fail_after(_CONNECT_SECONDS):
                    return Dialled(target=target, stream=await self.connect(str(address), port))
            except (OSError, TimeoutError):
                continue
        raise EgressFailed(f"{target.host} port {port} does not answer")

    async def check_plain(self, requester: Requester, url: str) -> None:
        """Whether a tunnel to a host that was judged may carry something other than TLS. Raises: EgressDenied.

        Only the scheme is new here, and the tunnel leads where it leads: there is nothing to look up.
        """
        target = await self._parsed(requester, url)
        decision = self.rules.judge_name(target)
        if decision is not None and not decision.allowed:
            await self.refuse(requester, target, decision)

    async def _judged(self, requester: Requester, url: str) -> tuple[UrlTarget, list[IpAddress]]:
        target = await self._parsed(requester, url)
        decision = self.rules.judge_name(target)
        addresses: list[IpAddress] = [target.address] if target.address is not None else []
        if decision is None:
            with anyio.move_on_after(_LOOKUP_SECONDS):
                addresses = list(await self.resolver.resolve(target.host))
            decision = self.rules.judge(target, addresses)
        if not decision.allowed:
            await self.refuse(requester, target, decision)
        return target, addresses

    async def _parsed(self, requester: Requester, url: str) -> UrlTarget:
        try:
            return self.parse(url)
        except CallRefused as refusal:
            decision = Decision(allowed=False, rule_id=refusal.rule_id or "url.syntax", reason=refusal.public_message)
            await self._record(requester, "", RecordKind.MCP_NETWORK_BLOCKED, rule_id=decision.rule_id)
            raise EgressDenied(decision) from refusal

    async def refuse(self, requester: Requester, target: UrlTarget, decision: Decision) -> None:
        """Remembers and records a refusal. Raises: EgressDenied, always."""
        self.on_denial(
            Denial(
                requester=requester,
                at=self.clock.monotonic(),
                host=target.host,
                port=target.port,
                rule_id=decision.rule_id,
                reason=decision.reason,
            )
        )
        await self._record(requester, _name(target), RecordKind.MCP_NETWORK_BLOCKED, rule_id=decision.rule_id)
        raise EgressDenied(decision)

    async def _record(self, requester: Requester, host: str, kind: RecordKind, *, rule_id: str) -> None:
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
        except AuditUnavailable as cause:
            # What cannot be recorded does not happen.
            raise EgressDenied(
                Decision(allowed=False, rule_id="audit.unavailable", reason="the audit log cannot be written")
            ) from cause


def _name(target: UrlTarget) -> str:
    return f"[{target.host}]:{target.port}" if ":" in target.host else f"{target.host}:{target.port}"
