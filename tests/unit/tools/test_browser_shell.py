"""The tool `browser-shell`: its description and its plans."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from browser_shell.core.calls import SESSION_ID_PATTERN
from browser_shell.core.errors import ArgumentsInvalid, CallRefused, PolicyBlocked
from browser_shell.policy.commands import COMMANDS
from browser_shell.tools.browser_shell import BrowserShellTool


def a_call(*argv: Any, **more: Any) -> dict[str, Any]:
    return {"session_id": "s1", "argv": list(argv), **more}


def test_the_annotations_describe_a_tool_with_side_effects() -> None:
    description = BrowserShellTool().describe()
    assert description.name == "browser-shell"
    assert description.annotations == {
        "readOnlyHint": False,
        "destructiveHint": True,
        "idempotentHint": False,
        "openWorldHint": True,
    }


def test_the_schemas_are_closed_and_valid() -> None:
    description = BrowserShellTool().describe()
    for schema in (description.input_schema, description.output_schema):
        Draft202012Validator.check_schema(schema)
        assert schema["additionalProperties"] is False
    assert description.output_schema["required"] == ["session_id", "exit_code", "stdout", "stderr"]
    validator = Draft202012Validator(description.input_schema)
    validator.validate(a_call("wait", 500, True, 1.5, timeout_sec=120))
    validator.validate(a_call("back", then=[["click", "@e1"]] * 12))


@pytest.mark.parametrize(
    "arguments",
    [
        {"session_id": "s", "argv": []},
        {"session_id": "../x", "argv": ["snapshot"]},
        {"session_id": "s", "argv": [None]},
        {"session_id": "s", "argv": ["x"], "timeout_sec": 121},
        {"session_id": "s", "argv": ["x"], "more": 1},
        {"argv": ["x"]},
        {"session_id": "s", "argv": ["back"], "then": [["back"]] * 13},
        {"session_id": "s", "argv": ["back"], "then": ["back"]},
        {"session_id": "s", "argv": ["back"], "then": None},
    ],
)
def test_the_schema_and_the_plan_refuse_the_same_arguments(arguments: Any) -> None:
    tool = BrowserShellTool()
    assert not Draft202012Validator(tool.describe().input_schema).is_valid(arguments)
    with pytest.raises(ArgumentsInvalid):
        tool.plan(arguments)


def test_the_short_pattern_of_the_schema_equals_the_session_id_pattern() -> None:
    # Python's \w matches more than that of JSON Schema, so the patterns are compared as text.
    properties: Any = BrowserShellTool().describe().input_schema["properties"]
    long_form = properties["session_id"]["pattern"].replace("[\\w", "[a-zA-Z0-9_").replace("\\w", "[a-zA-Z0-9_]")
    assert long_form == "^[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,63}$"
    assert sorted(long_form.strip("^$")) == sorted(SESSION_ID_PATTERN)


def test_the_description_names_every_subcommand_and_is_short() -> None:
    description = BrowserShellTool().describe()
    words = description.description.replace("/", " ").replace(";", " ").split()
    assert set(COMMANDS) <= set(words)
    entry = {
        "name": description.name,
        "description": description.description,
        "inputSchema": description.input_schema,
        "outputSchema": description.output_schema,
        "annotations": description.annotations,
    }
    # 1,192 characters were 349 cl100k tokens with the rest of the answer of tools/list; the limit is 350.
    assert len(json.dumps(entry, separators=(",", ":"))) <= 1210


def test_arguments_become_a_plan() -> None:
    plan = BrowserShellTool().plan(a_call("snapshot", "-i", "-d", 3, timeout_sec=60))
    assert (plan.session_id, plan.name, plan.operands, plan.timeout_seconds) == ("s1", "snapshot", (), 60)
    assert dict(plan.options) == {"interactive": "", "depth": "3"}
    assert plan.targets == ()


@pytest.mark.promise("url:canonical")
def test_open_passes_on_only_the_canonical_url() -> None:
    plan = BrowserShellTool().plan(a_call("open", "HTTPS://EXAMPLE.com:443/a b"))
    assert plan.operands == ("https://example.com/a%20b",)
    assert [target.host for target in plan.targets] == ["example.com"]


def test_free_text_keeps_every_character() -> None:
    text = "--cdp 9222; rm -rf /\n\t\u200d🙂"
    assert BrowserShellTool().plan(a_call("fill", "#q", text)).operands == ("#q", text)


@pytest.mark.parametrize("argv", [("open", "file:///etc/passwd"), ("eval", "1"), ("pdf",)])
def test_forbidden_schemes_and_subcommands_are_blocked(argv: tuple[str, ...]) -> None:
    with pytest.raises(PolicyBlocked):
        BrowserShellTool(allowed={"open"}).plan(a_call(*argv))


@pytest.mark.parametrize("arguments", [None, "snapshot", a_call("snapshot", "--json"), a_call("open", "//x")])
def test_arguments_outside_the_grammar_are_refused(arguments: Any) -> None:
    with pytest.raises(CallRefused):
        BrowserShellTool().plan(arguments)
