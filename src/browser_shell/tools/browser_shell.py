"""The tool `browser-shell`: its description for clients, and its arguments as a plan."""

from __future__ import annotations

from collections.abc import Collection

from browser_shell.core.calls import BrowserCommand
from browser_shell.core.json_values import JsonObject, JsonValue
from browser_shell.core.ports import ToolDescription
from browser_shell.policy.arguments import (
    MAX_FURTHER_STEPS,
    TIMEOUT_SECONDS,
    object_schema,
    read_arguments,
    split_steps,
)
from browser_shell.policy.commands import COMMANDS, parse_command
from browser_shell.policy.urls import parse_target

NAME = "browser-shell"

# Every conversation pays for these words: the budget is 350 tokens for the whole answer of tools/list. The refusal of
# a word that is not listed here names those that are possible.
DESCRIPTION = """\
Drive a browser. argv:
open URL; snapshot -i; find TEXT; click/dblclick/hover/focus/check/uncheck SEL; click --at X,Y; drag SEL SEL; \
fill/type/select SEL TEXT; select-text SEL; press KEY; scroll down; wait CSS/--text T; get url/text/value SEL; \
is visible SEL; screenshot; pdf; back; forward; reload; tab list; dialog accept; close
SEL: @e1, CSS, role=link name=X
then: more argvs"""


class BrowserShellTool:
    """The only tool of the browser profile. `allowed` are the subcommands that the policy allows."""

    name = NAME
    uses_protocol_errors = False

    def __init__(self, *, allowed: Collection[str] = COMMANDS) -> None:
        self._allowed = allowed

    def describe(self) -> ToolDescription:
        """Return the entry in `tools/list`."""
        return ToolDescription(
            name=self.name,
            description=DESCRIPTION,
            input_schema=_input_schema(),
            output_schema=_output_schema(),
            annotations={
                "readOnlyHint": False,
                "destructiveHint": True,
                "idempotentHint": False,
                "openWorldHint": True,
            },
        )

    def split(self, arguments: JsonValue) -> tuple[JsonValue, ...]:
        """Return the arguments of each step."""
        return split_steps(arguments)

    def plan(self, arguments: JsonValue) -> BrowserCommand:
        """Check the arguments of one step against the grammar and return its plan.

        Raises: ArgumentsInvalid, PolicyBlocked.
        """
        call = read_arguments(arguments)
        command = parse_command(call.argv, allowed=self._allowed)
        targets = (parse_target(command.operands[0]),) if command.name == "open" else ()
        return BrowserCommand(
            session_id=call.session_id,
            name=command.name,
            # Only the canonical URL is passed on, never the text of the client.
            operands=tuple(target.href for target in targets) or command.operands,
            options=command.options,
            timeout_seconds=call.timeout_seconds,
            targets=targets,
        )


def _input_schema() -> JsonObject:
    argv: JsonObject = {"type": "array", "items": {"type": ["string", "number", "boolean"]}, "minItems": 1}
    # JSON Schema uses ECMA-262, where \w is ASCII only: this is `SESSION_ID_PATTERN` in fewer tokens.
    session_id: JsonObject = {"type": "string", "pattern": r"^\w[\w.-]{0,63}$"}
    properties: JsonObject = {
        "session_id": session_id,
        "argv": argv,
        # Numbers and booleans are accepted here, too; naming them costs 5 tokens.
        "then": {
            "type": "array",
            "items": {"type": "array", "items": {"type": "string"}},
            "maxItems": MAX_FURTHER_STEPS,
        },
        "timeout_sec": TIMEOUT_SECONDS.schema(),
    }
    return object_schema(properties, required=("session_id", "argv"))


def _output_schema() -> JsonObject:
    text: JsonObject = {"type": "string"}
    return object_schema({"session_id": text, "exit_code": {"type": "integer"}, "stdout": text, "stderr": text})
