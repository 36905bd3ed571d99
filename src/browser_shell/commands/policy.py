"""`browser-shell policy check`: judge URLs and calls offline, one JSON line in, one out."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import BinaryIO, TextIO

import anyio

from browser_shell.core.calls import BrowserCommand
from browser_shell.core.decisions import Decision, IpAddress, denied
from browser_shell.core.errors import ArgumentsInvalid, BrowserShellError, ConfigurationInvalid
from browser_shell.core.json_values import JsonObject, JsonValue, parse_json
from browser_shell.core.ports import Resolver
from browser_shell.egress.dialer import SystemResolver
from browser_shell.policy.document import PolicyDocument
from browser_shell.policy.loading import policy_from
from browser_shell.policy.messages import printable
from browser_shell.policy.rules import UrlPolicy
from browser_shell.policy.urls import parse_target
from browser_shell.settings import read_policy_file
from browser_shell.tools.browser_shell import NAME, BrowserShellTool
from browser_shell.tools.registry import ToolRegistry

_ID = re.compile(r'"id"\s*:\s*("(?:[^"\\]|\\.){0,200}"|-?[0-9]{1,18}(?![0-9.eE]))')
_ID_WITHIN = 4096
_EXIT_NOT_WRITTEN = 1


def add_policy_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    policy = commands.add_parser("policy", help="work with policy files").add_subparsers(
        required=True, metavar="action"
    )
    check = policy.add_parser("check", help="judge URLs and calls offline: JSON lines in, JSON lines out")
    check.add_argument("--policy", type=Path, metavar="FILE", help="policy file (JSON or YAML; default: safe defaults)")
    check.add_argument("--explain", action="store_true", help="write for people instead of programs")
    check.set_defaults(command=_run_on_standard_streams)


def _run_on_standard_streams(arguments: argparse.Namespace) -> int:
    # Python sets a stream to None if it was closed before the start.
    stdin, stdout = sys.stdin, sys.stdout
    if stdin is None or stdout is None:
        raise ConfigurationInvalid(
            "policy check reads lines from its standard input and answers on its standard output"
        )
    try:
        return run_check(stdin.buffer, stdout, policy_path=arguments.policy, explain=arguments.explain)
    except OSError as fault:
        # The interpreter flushes stdout at its exit, which would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stdout.fileno())
        if not isinstance(fault, BrokenPipeError):  # A broken pipe means that the reader closed it, as `head` does.
            sys.stderr.write(f"browser-shell: the answers cannot be written: {fault.strerror}\n")
        return _EXIT_NOT_WRITTEN


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The answer to one case."""

    case_id: JsonValue
    decision: Decision
    href: str = ""
    lookups: Mapping[str, Sequence[IpAddress]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenAnswers:
    """A resolver with the DNS answers of one case."""

    answers: Mapping[str, Sequence[IpAddress]]

    async def resolve(self, host: str) -> Sequence[IpAddress]:
        return self.answers.get(host, ())


async def check_lines(
    lines: Iterable[bytes], *, policy: PolicyDocument, resolver: Resolver, explain: bool = False
) -> AsyncIterator[str]:
    """Yield one answer for each line that is not blank. Never raises because of the content of a line."""
    write = as_block if explain else as_json
    for line in lines:
        if line.strip():
            yield write(await check_line(line, policy=policy, resolver=resolver))


async def check_line(line: bytes, *, policy: PolicyDocument, resolver: Resolver) -> Verdict:
    """Judge one case. A case that cannot be judged is denied."""
    try:
        case = _read_case(line)
    except ArgumentsInvalid as error:
        return Verdict(case_id=_guess_id(line), decision=denied(error.rule_id, error.public_message))
    case_id = case.get("id")
    case_id = None if isinstance(case_id, dict | list) else case_id
    try:
        return await _judge(case, case_id, policy, resolver)
    except BrowserShellError as error:
        return Verdict(case_id=case_id, decision=denied(error.rule_id, error.public_message))


def run_check(stdin: BinaryIO, stdout: TextIO, *, policy_path: Path | None, explain: bool) -> int:
    """Judge every line of stdin. Return 0, or 2 if the policy file cannot be read."""
    try:
        policy = PolicyDocument() if policy_path is None else read_policy_file(policy_path)
    except ConfigurationInvalid as error:
        sys.stderr.write(f"{printable(error.public_message)}\n")
        return 2
    anyio.run(_print_all, stdin, stdout, policy, explain)
    return 0


def as_json(verdict: Verdict) -> str:
    """Return a verdict as JSON for programs, in ASCII for any terminal or pipe."""
    decision = verdict.decision
    answer: JsonObject = {
        "id": verdict.case_id,
        "verdict": "allow" if decision.allowed else "deny",
        "rule": decision.rule_id,
        "reason": decision.reason,
    }
    if decision.allowed and verdict.href:
        answer["href"] = verdict.href
    return json.dumps(answer)


def as_block(verdict: Verdict) -> str:
    """Return a verdict as text for people."""
    word = "ALLOW" if verdict.decision.allowed else "DENY"
    rows = [f"{word:6} {json.dumps(verdict.case_id)}"]
    rows += [f"  rule    {verdict.decision.rule_id}", f"  reason  {verdict.decision.reason}"]
    rows += [f"  url     {verdict.href}"] if verdict.href else []
    for host, addresses in verdict.lookups.items():
        rows.append(f"  lookup  {host} -> {', '.join(map(str, addresses)) or 'no answer'}")
    return "\n".join(printable(row) for row in rows) + "\n"


async def _print_all(stdin: BinaryIO, stdout: TextIO, policy: PolicyDocument, explain: bool) -> None:
    encoding = stdout.encoding or "utf-8"
    async for answer in check_lines(stdin, policy=policy, resolver=SystemResolver(), explain=explain):
        stdout.write(f"{answer}\n".encode(encoding, "backslashreplace").decode(encoding))
        stdout.flush()


async def _judge(case: JsonObject, case_id: JsonValue, policy: PolicyDocument, resolver: Resolver) -> Verdict:
    rules = UrlPolicy(policy_from(case["policy"], source="policy of the case") if "policy" in case else policy)
    case_resolver = GivenAnswers(answers=_given_answers(case["dns"])) if "dns" in case else resolver
    commands = _plans(case, rules)
    hosts = dict.fromkeys(host for command in commands for host in rules.hosts_to_resolve(command))
    lookups = {host: await case_resolver.resolve(host) for host in hosts}
    decisions = [rules.decide(command, lookups) for command in commands]
    href = next((command.targets[0].href for command in commands if command.targets), "")
    # The first refused step decides. If there is none, the last step stands for the call.
    decision = next((decision for decision in decisions if not decision.allowed), decisions[-1])
    return Verdict(case_id=case_id, decision=decision, href=href, lookups=lookups)


def _plans(case: JsonObject, rules: UrlPolicy) -> list[BrowserCommand]:
    """Return the plan of each step."""
    if sum(key in case for key in ("url", "arguments", "raw_arguments")) != 1:
        raise ArgumentsInvalid("a case has exactly one of url, arguments, raw_arguments", rule_id="input.shape")
    if "url" in case:
        return [_open_command(case["url"])]
    tool = ToolRegistry([BrowserShellTool(allowed=rules.commands)]).get(_tool_name(case))
    return [tool.plan(arguments) for arguments in tool.split(_arguments(case))]


def _open_command(url: JsonValue) -> BrowserCommand:
    if not isinstance(url, str):
        raise ArgumentsInvalid("url must be a string", rule_id="input.shape")
    target = parse_target(url)
    return BrowserCommand(
        session_id="check", name="open", operands=(target.href,), timeout_seconds=1, targets=(target,)
    )


def _tool_name(case: JsonObject) -> str:
    name = case.get("tool", NAME)
    if not isinstance(name, str):
        raise ArgumentsInvalid("the name of a tool must be a string", rule_id="tool.unknown")
    return name


def _arguments(case: JsonObject) -> JsonValue:
    if "arguments" in case:
        return case["arguments"]
    text = case["raw_arguments"]
    if not isinstance(text, str):
        raise ArgumentsInvalid("raw_arguments must be JSON text", rule_id="input.shape")
    return _parse_strict_json(text)


def _read_case(line: bytes) -> JsonObject:
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ArgumentsInvalid("the line is not UTF-8", rule_id="input.json") from error
    case = _parse_strict_json(text)
    if not isinstance(case, dict):
        raise ArgumentsInvalid("the line is not a JSON object", rule_id="input.json")
    return case


def _parse_strict_json(text: str) -> JsonValue:
    try:
        return parse_json(text)
    except ValueError as error:
        raise ArgumentsInvalid(f"not strict JSON: {error}", rule_id="input.json") from error


def _given_answers(dns: JsonValue) -> dict[str, Sequence[IpAddress]]:
    if not isinstance(dns, dict):
        raise ArgumentsInvalid("dns must map host names to lists of addresses", rule_id="input.shape")
    return {host.lower().removesuffix("."): _addresses(answers) for host, answers in dns.items()}


def _addresses(answers: JsonValue) -> Sequence[IpAddress]:
    if isinstance(answers, dict):
        return ()
    if not isinstance(answers, list):
        raise ArgumentsInvalid("dns must map host names to lists of addresses", rule_id="input.shape")
    try:
        return tuple(ip_address(str(answer)) for answer in answers)
    except ValueError as error:
        raise ArgumentsInvalid("an answer in dns is not an IP address", rule_id="dns.bad_answer") from error


def _guess_id(line: bytes) -> JsonValue:
    match = _ID.search(line[:_ID_WITHIN].decode("utf-8", "replace"))
    if match is None:
        return None
    try:
        return parse_json(match[1])
    except ValueError:
        return None
