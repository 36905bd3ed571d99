"""Rules for URLs: the policy document applied to a plan. The caller does the DNS lookups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from browser_shell.core.calls import BrowserCommand, UrlTarget
from browser_shell.core.decisions import NO_ANSWER_RULE, Decision, IpAddress, denied
from browser_shell.policy.addresses import Endpoint, classify, parse_endpoint, parse_exemption
from browser_shell.policy.commands import COMMANDS
from browser_shell.policy.document import PolicyDocument
from browser_shell.policy.urls import ABOUT_BLANK, BAD_PORTS, is_canonical, judge_local_name, judge_machine_name


class UrlPolicy:
    """Judges commands and URLs by one policy document. `open` and the egress proxy use the same object."""

    def __init__(self, document: PolicyDocument) -> None:
        self._open = document.open
        self.commands = frozenset(COMMANDS if document.commands.allow is None else document.commands.allow)
        self._hosts = frozenset(document.open.allow_hosts)
        self._exemptions = tuple(parse_exemption(entry) for entry in document.open.unsafe_allow_addresses)
        self._resolved = {host: parse_endpoint(entry) for host, entry in document.open.unsafe_resolve.items()}

    def hosts_to_resolve(self, command: BrowserCommand) -> Sequence[str]:
        """Return the hosts whose addresses `decide` needs; none if the command is refused in any case."""
        if self._judge_command(command) is not None:
            return ()
        return tuple(target.host for target in command.targets if self.judge_name(target) is None)

    def decide(self, command: BrowserCommand, answers: Mapping[str, Sequence[IpAddress]]) -> Decision:
        """Judge a plan. Every target must be allowed."""
        refusal = self._judge_command(command)
        if refusal is not None:
            return refusal
        decision = Decision(allowed=True, rule_id="command.allowed", reason=f"{command.name} is allowed")
        for target in command.targets:
            decision = self.judge(target, answers.get(target.host, ()))
            if not decision.allowed:
                return decision
        return decision

    def judge(self, target: UrlTarget, addresses: Sequence[IpAddress]) -> Decision:
        """Judge one target by all addresses of its host."""
        return self.judge_name(target) or self._judge_answers(target, addresses)

    def judge_name(self, target: UrlTarget) -> Decision | None:
        """Judge one target without its addresses; None if the decision depends on them."""
        if target.href == ABOUT_BLANK:
            return self._judge_about_blank()
        return (
            self._judge_scheme(target)
            or self._judge_port(target)
            or self._judge_literal(target)
            or self._judge_host(target.host)
            or self._judge_resolved(target.host)
        )

    def resolved_by_policy(self, host: str) -> Endpoint | None:
        """Return the endpoint that `open.unsafe_resolve` sets for the host."""
        return self._resolved.get(host)

    def _judge_command(self, command: BrowserCommand) -> Decision | None:
        if command.name not in self.commands:
            return denied("command.denied", f"{command.name} is not available here")
        if command.name == "open" and command.operands != tuple(target.href for target in command.targets):
            return denied("url.mismatch", "the URL to open is not the URL that was judged")
        # A hook may have changed the plan, so its parts are compared with the URL that will be opened.
        if not all(is_canonical(target) for target in command.targets):
            return denied("url.mismatch", "the parts of the URL differ from its text")
        return None

    def _judge_about_blank(self) -> Decision:
        allowed = self._open.allow_about_blank
        return Decision(
            allowed=allowed,
            rule_id="url.about_blank",
            reason=f"about:blank is {'allowed' if allowed else 'not allowed by open.allow_about_blank'}",
        )

    def _judge_scheme(self, target: UrlTarget) -> Decision | None:
        if target.scheme in self._open.allow_schemes:
            return None
        return denied("url.scheme", f"{target.scheme} is not in open.allow_schemes")

    def _judge_port(self, target: UrlTarget) -> Decision | None:
        if target.port in BAD_PORTS:
            return denied("url.port", f"port {target.port} is on the list that every browser refuses")
        if self._open.allow_ports is not None and target.port not in self._open.allow_ports:
            return denied("url.port", f"port {target.port} is not in open.allow_ports")
        return None

    def _judge_literal(self, target: UrlTarget) -> Decision | None:
        if target.address is None:
            return None
        if self._exempt(target.address, target.port):
            reason = f"open.unsafe_allow_addresses covers {target.host}"
            return Decision(allowed=True, rule_id="address.unsafe_allowed", reason=reason)
        decision = classify(target.address)
        if decision.allowed and self._has_allowlist:
            return denied("host.allowlist", f"{target.host} is an address, and only listed names may be opened")
        return decision

    def _judge_host(self, host: str) -> Decision | None:
        refusal = judge_machine_name(host)
        if refusal is None and host not in self._resolved:
            refusal = judge_local_name(host)
        if refusal is None and self._has_allowlist and not self._is_listed(host):
            refusal = denied("host.allowlist", f"{host} is not in open.allow_hosts or open.allow_host_suffixes")
        return refusal

    def _judge_resolved(self, host: str) -> Decision | None:
        endpoint = self._resolved.get(host)
        if endpoint is None:
            return None
        reason = f"open.unsafe_resolve sends {host} to {endpoint}"
        return Decision(allowed=True, rule_id="host.unsafe_resolve", reason=reason)

    def _judge_answers(self, target: UrlTarget, addresses: Sequence[IpAddress]) -> Decision:
        if not addresses:
            return denied(NO_ANSWER_RULE, f"{target.host} does not resolve")
        for address in addresses:
            decision = classify(address)
            if not decision.allowed and not self._exempt(address, target.port):
                return denied(decision.rule_id, f"{target.host} resolves to {address}: {decision.reason}")
        return Decision(allowed=True, rule_id="address.public", reason=f"every address of {target.host} may be reached")

    @property
    def _has_allowlist(self) -> bool:
        return bool(self._hosts or self._open.allow_host_suffixes)

    def _is_listed(self, host: str) -> bool:
        # Suffixes begin with a dot, so `.example.net` matches neither evil-example.net nor example.net.
        return host in self._hosts or host.endswith(self._open.allow_host_suffixes)

    def _exempt(self, address: IpAddress, port: int) -> bool:
        return any(exemption.covers(address, port) for exemption in self._exemptions)
