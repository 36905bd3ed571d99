"""The table of subcommands. Everything outside the table is refused."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from types import MappingProxyType

from browser_shell.core.errors import ArgumentsInvalid, PolicyBlocked
from browser_shell.core.json_values import JsonValue
from browser_shell.policy.grammar import Operand, Option, ParsedCommand, Shape, Words, read_command
from browser_shell.policy.messages import listed, quoted
from browser_shell.policy.values import (
    CHOICE,
    CSS,
    DEPTH,
    KEY,
    PATTERN,
    PICTURE_OF,
    PIXELS,
    SELECTOR,
    TAB,
    TEXT,
    URL,
    WAIT_FOR,
    one_of,
)

MAX_SELECT_VALUES = 127
"""An argv has at most 129 items, and the first two are `select` and the selector."""

_NOTHING = Shape()
_ONE_ELEMENT = Shape(operands=(Operand(SELECTOR),))
_ELEMENT_AND_TEXT = Shape(operands=(Operand(SELECTOR), Operand(TEXT)), by_position=True)


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdigit()


def _single_condition(command: ParsedCommand) -> str:
    conditions = [*command.operands, *(name for name in ("text", "url", "load") if name in command.options)]
    if len(conditions) != 1:
        return "takes exactly one of: milliseconds, a CSS selector, --text, --url, --load"
    if "state" in command.options and (not command.operands or _is_number(command.operands[0])):
        return "takes --state only with a CSS selector"
    return ""


COMMANDS: MappingProxyType[str, Shape | Words] = MappingProxyType(
    {
        # pages
        "open": Shape(operands=(Operand(URL),)),
        "back": _NOTHING,
        "forward": _NOTHING,
        "reload": _NOTHING,
        "close": _NOTHING,
        # reading
        "snapshot": Shape(
            options=(
                Option("interactive", ("-i", "--interactive")),
                Option("compact", ("-c", "--compact")),
                Option("urls", ("-u", "--urls")),
                Option("cursor", ("-C", "--cursor")),
                Option("depth", ("-d", "--depth"), DEPTH),
                Option("selector", ("-s", "--selector"), CSS),
                Option("delta", ("--delta",)),
                Option("full", ("--full",)),
                # Not an option of the driver: keep the map of refs, which has more tokens than the snapshot.
                Option("refs", ("--refs",)),
            )
        ),
        "screenshot": Shape(
            operands=(Operand(PICTURE_OF, at_least=0),),
            options=(Option("full", ("-f", "--full")), Option("annotate", ("--annotate",))),
        ),
        "pdf": _NOTHING,
        "get": {"url": _NOTHING, "title": _NOTHING, "text": _ONE_ELEMENT},
        "is": {"visible": _ONE_ELEMENT, "enabled": _ONE_ELEMENT, "checked": _ONE_ELEMENT},
        # acting
        "click": _ONE_ELEMENT,
        "dblclick": _ONE_ELEMENT,
        "hover": _ONE_ELEMENT,
        "focus": _ONE_ELEMENT,
        "check": _ONE_ELEMENT,
        "uncheck": _ONE_ELEMENT,
        "fill": _ELEMENT_AND_TEXT,
        "type": _ELEMENT_AND_TEXT,
        "select": Shape(operands=(Operand(SELECTOR), Operand(CHOICE, at_most=MAX_SELECT_VALUES)), by_position=True),
        "press": Shape(operands=(Operand(KEY),), by_position=True),
        "scroll": Shape(
            operands=(Operand(one_of("up", "down", "left", "right"), at_least=0), Operand(PIXELS, at_least=0)),
            options=(Option("selector", ("-s", "--selector"), SELECTOR),),
        ),
        # The driver has more options. timeout_sec replaces `--timeout`; `--fn` runs script; `--download` writes files.
        "wait": Shape(
            operands=(Operand(WAIT_FOR, at_least=0),),
            options=(
                Option("state", ("--state",), one_of("visible", "hidden")),
                Option("text", ("--text",), PATTERN),
                Option("url", ("--url",), PATTERN),
                Option("load", ("--load",), one_of("load", "domcontentloaded", "networkidle")),
            ),
            rule=_single_condition,
        ),
        # tabs and dialogs
        "tab": {
            "list": _NOTHING,
            "switch": Shape(operands=(Operand(TAB),)),
            "close": Shape(operands=(Operand(TAB, at_least=0),)),
        },
        "dialog": {
            "accept": Shape(operands=(Operand(TEXT, at_least=0),), by_position=True),
            "dismiss": _NOTHING,
            "status": _NOTHING,
        },
    }
)

FORBIDDEN = frozenset(
    # script in the page, and files
    {"addinitscript", "download", "eval", "evaluate", "pushstate", "react", "read", "removeinitscript", "upload"}
    # the network, and the state of the browser
    | {"auth", "clipboard", "cookies", "network", "route", "set", "state", "storage", "unroute", "webmcp"}
    # the driver itself
    | {"batch", "chat", "confirm", "connect", "dashboard", "deny", "device", "doctor", "install", "mcp", "plugin"}
    | {"plugins", "profiles", "session", "skills", "stream", "upgrade"}
    # reading the page in ways that write files or open ports
    | {"a11y", "console", "diff", "errors", "highlight", "inspect", "profiler", "record", "trace"}
    | {"vitals", "web-vitals"}
    # other ways to act, and other tabs
    | {"bringtofront", "drag", "find", "frame", "keyboard", "keydown", "keyup", "mouse", "scrollinto"}
    | {"scrollintoview", "swipe", "tap", "title", "url", "window"}
)
"""Subcommands of agent-browser 0.41.0 and earlier that no policy can allow."""

ALIASES = MappingProxyType({"goto": "open", "navigate": "open", "key": "press", "quit": "close", "exit": "close"})
"""Aliases of the driver. They are refused, so that each command has one name in rules and records."""


def parse_command(argv: Sequence[str], *, allowed: Collection[str] = COMMANDS) -> ParsedCommand:
    """Parse an argv. `allowed` are the subcommands that the policy allows.

    Raises: ArgumentsInvalid naming the item and the rule; PolicyBlocked for a forbidden subcommand.
    """
    name = argv[0] if argv else ""
    if name in FORBIDDEN or (name in COMMANDS and name not in allowed):
        raise PolicyBlocked(
            f"{name} is not available here; available: {listed(_in_order(allowed))}", rule_id="command.denied"
        )
    if name not in COMMANDS:
        hint = f"write {ALIASES[name]}; " if name in ALIASES else ""
        raise ArgumentsInvalid(
            f"argv[0]: {quoted(name)} is not a subcommand; {hint}known: {listed(_in_order(allowed))}",
            rule_id="command.unknown",
        )
    return read_command(argv, COMMANDS[name])


def named_subcommand(arguments: JsonValue) -> str:
    """Return the subcommand of unchecked arguments, for records; '' for an unknown word, which could be a secret."""
    argv = arguments.get("argv") if isinstance(arguments, dict) else None
    name = argv[0] if isinstance(argv, list) and argv else None
    return name if isinstance(name, str) and (name in COMMANDS or name in FORBIDDEN or name in ALIASES) else ""


def _in_order(allowed: Collection[str]) -> list[str]:
    return [name for name in COMMANDS if name in allowed]
