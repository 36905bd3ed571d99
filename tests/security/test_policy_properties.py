"""Properties of the policy that hold for every input."""

from __future__ import annotations

import json

import pytest
from ada_url import URL
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from browser_shell.commands.policy import GivenAnswers, as_block, as_json, check_line
from browser_shell.core.errors import CallRefused
from browser_shell.core.json_values import JsonValue
from browser_shell.policy.addresses import classify
from browser_shell.policy.commands import COMMANDS, FORBIDDEN, Shape, parse_command
from browser_shell.policy.document import PolicyDocument
from browser_shell.policy.rules import UrlPolicy
from browser_shell.policy.urls import judge_local_name, judge_machine_name, parse_target
from browser_shell.policy.values import CHOICE, PASSAGE, TEXT
from browser_shell.tools.browser_shell import BrowserShellTool

BOUNDED = settings(max_examples=400, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])

FLAGS = [
    *("--action-policy", "--allowed-domains", "--args", "--ca-cert", "--cdp", "--config", "--headers", "--init-script"),
    *("--namespace", "--profile", "-p", "--proxy", "--session", "--state", "--user-agent", "--allow-file-access"),
    *("--annotate", "--json", "--restore", "--restore=x", "-q", "-v", "--help", "-h", "-V", "--all", "--fn", "-f"),
    *("--download", "-d", "--timeout", "--clear", "--delay", "--new-tab", "-i", "-c", "-ic", "-s", "--selector"),
    *("--depth", "--full", "--text", "--url", "--load", "--cdp=1", "--", "-", "-1", "--at", "--from", "--to", "--role"),
]
"""Options of agent-browser, and text that looks like an option."""
WORDS = ["@e1", "#a", "text=b", "//x", "500", "down", "hidden", "load", "url", "title", "text", "visible", "list", "t1"]
WORDS += ["switch", "close", "accept", "x.png", "../x", "https://example.com/", "Enter", "Control+a", "", " "]
WORDS += ["1,2", "9999,9999", "role=button", "role=button name=x", "button", "value", "count", "attr", "href"]
COMMAND_NAMES = st.sampled_from([*COMMANDS, *sorted(FORBIDDEN), "goto", "OPEN", *FLAGS])
ITEMS = st.one_of(st.sampled_from(FLAGS), st.sampled_from(WORDS), st.text(max_size=12))
ARGVS = st.tuples(COMMAND_NAMES, st.lists(ITEMS, max_size=5)).map(lambda parts: (parts[0], *parts[1]))


@pytest.mark.promise("argv:closed-grammar")
@BOUNDED
@given(ARGVS)
def test_an_accepted_argv_is_inside_the_grammar(argv: tuple[str, ...]) -> None:
    try:
        command = parse_command(argv)
    except CallRefused:
        return
    entry = COMMANDS[command.name]
    words = 0 if isinstance(entry, Shape) else 1
    shape = entry if isinstance(entry, Shape) else entry[command.operands[0]]
    assert set(command.options) <= {option.name for option in shape.options}
    kinds = [operand.kind for operand in shape.operands for _ in range(operand.at_most)]
    for kind, operand in zip(kinds, command.operands[words:], strict=False):
        assert (
            kind in (TEXT, CHOICE, PASSAGE)
            or not operand.startswith("-")
            or (command.name == "press" and operand == "-")
        )
    # Every item of the argv is in the plan: as a word, an operand, an option or its value.
    values = [value for value in command.options.values() if value]
    assert len(argv) == 1 + len(command.operands) + len(command.options) + len(values)


STEPS = st.one_of(
    st.lists(st.one_of(ARGVS.map(list), ITEMS, st.none(), st.lists(ITEMS, max_size=3)), max_size=14),
    st.one_of(st.none(), st.booleans(), st.text(max_size=8), st.dictionaries(st.text(max_size=4), ITEMS, max_size=2)),
)


@pytest.mark.promise("steps:closed-grammar")
@BOUNDED
@given(ARGVS.map(list), STEPS)
def test_accepted_steps_are_each_inside_the_grammar(argv: list[JsonValue], then: JsonValue) -> None:
    tool = BrowserShellTool()
    steps = tool.split({"session_id": "s", "argv": argv, "then": then})
    try:
        plans = [tool.plan(step) for step in steps]
    except CallRefused:
        return
    assert isinstance(then, list)
    assert len(plans) == 1 + len(then) <= 13
    assert [plan.name for plan in plans] == [argv[0], *(step[0] for step in then if isinstance(step, list))]
    assert all(plan.name in COMMANDS and plan.session_id == "s" for plan in plans)
    assert "close" not in [plan.name for plan in plans[:-1]]


HOSTS = st.one_of(
    st.sampled_from(
        ["localhost", "LOCALHOST.", "127.1", "0x7f.1", "[::1]", "[::ffff:10.0.0.1]", "example.com", "ex%61mple.com"]
    ),
    st.ip_addresses().map(lambda address: f"[{address}]" if address.version == 6 else str(address)),
    st.integers(0, 2**32 - 1).map(str),
    st.text(max_size=10),
)
URLISH = st.one_of(
    st.text(max_size=40),
    st.builds(
        lambda scheme, host, rest: f"{scheme}{host}{rest}",
        st.sampled_from(
            ["", "http://", "https://", "HTTP:", "https:\\\\", "http:/", "file://", "ftp://", "javascript:", "about:"]
        ),
        HOSTS,
        st.one_of(
            st.just(""),
            st.sampled_from(["/", ":80/", ":8443", "/a b", "?q", "#f", "@x/", "\\x", "blank"]),
            st.text(max_size=8),
        ),
    ),
)


@pytest.mark.promise("url:accepted-is-public")
@BOUNDED
@given(URLISH)
def test_an_accepted_url_is_canonical_and_public(text: str) -> None:
    policy = UrlPolicy(PolicyDocument())
    try:
        target = parse_target(text)
    except CallRefused:
        return
    decision = policy.judge_name(target)
    if decision is not None and not decision.allowed:
        return
    assert URL(target.href).href == target.href
    assert target.scheme in ("http", "https") or target.href == "about:blank"
    assert judge_machine_name(target.host) is None
    assert judge_local_name(target.host) is None
    assert target.address is None or classify(target.address).allowed
    assert not URL(target.href).username
    assert not URL(target.href).password


JSON = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=8)
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)),
    max_leaves=8,
)
CASES = st.fixed_dictionaries(
    {"id": JSON},
    optional=dict.fromkeys(("arguments", "dns", "policy", "raw_arguments", "tool", "url"), JSON),
).map(lambda case: json.dumps(case).encode())


@pytest.mark.promise("check:never-crashes")
@pytest.mark.anyio
@BOUNDED
@given(st.one_of(st.binary(max_size=80), CASES))
async def test_no_line_makes_policy_check_raise(line: bytes) -> None:
    verdict = await check_line(line, policy=PolicyDocument(), resolver=GivenAnswers(answers={}))
    assert json.loads(as_json(verdict))["verdict"] in ("allow", "deny")
    assert as_block(verdict)
