"""The grammar of subcommands: a table, and the parser that checks an argv against it. Everything else is refused."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from browser_shell.core.errors import ArgumentsInvalid, PolicyBlocked
from browser_shell.core.json_values import JsonValue
from browser_shell.policy.messages import quoted
from browser_shell.policy.values import (
    ATTRIBUTE,
    CHOICE,
    DEPTH,
    KEY,
    MATCHES,
    OFFSET,
    PASSAGE,
    PATTERN,
    PICTURE_OF,
    PIXELS,
    POINT,
    ROLE,
    SELECTOR,
    TAB,
    TEXT,
    URL,
    WAIT_FOR,
    Kind,
    one_of,
)

MAX_SELECT_VALUES = 127
"""An argv has at most 129 items, and the first two are `select` and the selector."""


@dataclass(frozen=True, slots=True)
class Operand:
    """One or more positional values of one kind."""

    kind: Kind
    at_least: int = 1
    at_most: int = 1


@dataclass(frozen=True, slots=True)
class Option:
    """An option: its canonical name and its spellings. An option without a kind is a switch."""

    name: str
    spellings: tuple[str, ...]
    kind: Kind | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedCommand:
    """A subcommand inside the grammar."""

    name: str
    operands: tuple[str, ...]
    options: Mapping[str, str]
    """Canonical option name to value; '' for a switch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Operands and options of a subcommand. Everything else is refused."""

    operands: tuple[Operand, ...] = ()
    options: tuple[Option, ...] = ()
    by_position: bool = False
    """Whether every item is an operand, so that text may look like an option."""
    rule: Callable[[ParsedCommand], str] | None = None
    """Check of the whole command; returns the problem, or ''."""

    @property
    def spellings(self) -> dict[str, Option]:
        return {spelling: option for option in self.options for spelling in option.spellings}


Words = Mapping[str, Shape]
"""A subcommand whose next item is one of these words."""

_NOTHING = Shape()
_ONE_ELEMENT = Shape(operands=(Operand(SELECTOR),))
_FROM = Option("from", ("--from",), OFFSET)
"""The position at which a cut output goes on."""
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


def _element_or_point(command: ParsedCommand) -> str:
    return "" if command.operands or "at" in command.options else "takes SEL, or --at X,Y with or without SEL"


def _two_elements_or_points(command: ParsedCommand) -> str:
    if (len(command.operands), len(command.options)) in ((2, 0), (0, 2)):
        return ""
    return "takes two SEL, or --from X,Y --to X,Y"


_ELEMENT_OR_POINT = Shape(
    operands=(Operand(SELECTOR, at_least=0),), options=(Option("at", ("--at",), POINT),), rule=_element_or_point
)

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
                Option("selector", ("-s", "--selector"), SELECTOR),
                Option("delta", ("--delta",)),
                Option("full", ("--full",)),
                # Not an option of the driver: keep the map of refs, which has more tokens than the snapshot.
                Option("refs", ("--refs",)),
                _FROM,
            )
        ),
        "screenshot": Shape(
            operands=(Operand(PICTURE_OF, at_least=0),),
            options=(Option("full", ("-f", "--full")), Option("annotate", ("--annotate",))),
        ),
        "pdf": _NOTHING,
        "find": Shape(
            operands=(Operand(PATTERN),),
            options=(Option("role", ("--role",), ROLE), Option("limit", ("--limit",), MATCHES)),
        ),
        "get": {
            "url": _NOTHING,
            "title": _NOTHING,
            "text": Shape(operands=(Operand(SELECTOR),), options=(_FROM,)),
            "value": _ONE_ELEMENT,
            "count": _ONE_ELEMENT,
            "attr": Shape(operands=(Operand(ATTRIBUTE), Operand(SELECTOR))),
        },
        "is": {"visible": _ONE_ELEMENT, "enabled": _ONE_ELEMENT, "checked": _ONE_ELEMENT},
        # acting
        "click": _ELEMENT_OR_POINT,
        "dblclick": _ELEMENT_OR_POINT,
        "hover": _ELEMENT_OR_POINT,
        "drag": Shape(
            operands=(Operand(SELECTOR, at_least=0, at_most=2),),
            options=(Option("from", ("--from",), POINT), Option("to", ("--to",), POINT)),
            rule=_two_elements_or_points,
        ),
        "focus": _ONE_ELEMENT,
        "check": _ONE_ELEMENT,
        "uncheck": _ONE_ELEMENT,
        "fill": _ELEMENT_AND_TEXT,
        "type": _ELEMENT_AND_TEXT,
        "select": Shape(operands=(Operand(SELECTOR), Operand(CHOICE, at_most=MAX_SELECT_VALUES)), by_position=True),
        "press": Shape(operands=(Operand(KEY),), by_position=True),
        "select-text": Shape(operands=(Operand(SELECTOR), Operand(PASSAGE, at_least=0)), by_position=True),
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
    | {"bringtofront", "frame", "keyboard", "keydown", "keyup", "mouse", "scrollinto"}
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
    available = ", ".join(command for command in COMMANDS if command in allowed)
    if name in FORBIDDEN or (name in COMMANDS and name not in allowed):
        raise PolicyBlocked(f"{name} is not available here; available: {available}", rule_id="command.denied")
    if name not in COMMANDS:
        hint = f"write {ALIASES[name]}; " if name in ALIASES else ""
        message = f"argv[0]: {quoted(name)} is not a subcommand; {hint}known: {available}"
        raise ArgumentsInvalid(message, rule_id="command.unknown")
    return _read_command(argv, COMMANDS[name])


def named_subcommand(arguments: JsonValue) -> str:
    """Return the subcommand of unchecked arguments, for records; '' for an unknown word, which could be a secret."""
    argv = arguments.get("argv") if isinstance(arguments, dict) else None
    name = argv[0] if isinstance(argv, list) and argv else None
    return name if isinstance(name, str) and (name in COMMANDS or name in FORBIDDEN or name in ALIASES) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Item:
    index: int
    text: str


def _read_command(argv: Sequence[str], entry: Shape | Words) -> ParsedCommand:
    """Check the argv of a known subcommand against its entry in the table.

    Raises: ArgumentsInvalid naming the item and the rule.
    """
    items = [_Item(index=index, text=text) for index, text in enumerate(argv)]
    shape, word_count = (entry, 0) if isinstance(entry, Shape) else (_shape_of_word(items, entry), 1)
    words, rest = items[1 : 1 + word_count], items[1 + word_count :]
    positionals, options = (rest, {}) if shape.by_position else _split(argv[0], rest, shape)
    operands = tuple(_read_operands(argv[0], positionals, shape.operands))
    command = ParsedCommand(
        name=argv[0], operands=(*(word.text for word in words), *operands), options=MappingProxyType(options)
    )
    problem = shape.rule(command) if shape.rule else ""
    if problem:
        raise ArgumentsInvalid(f"{argv[0]} {problem}", rule_id="command.operand")
    return command


def _shape_of_word(items: Sequence[_Item], words: Words) -> Shape:
    if len(items) > 1 and items[1].text in words:
        return words[items[1].text]
    found = f"argv[1] is {quoted(items[1].text)}" if len(items) > 1 else "argv[1] is missing"
    raise ArgumentsInvalid(f"{found}; {items[0].text} takes one of {', '.join(words)}", rule_id="command.operand")


def _split(name: str, items: Sequence[_Item], shape: Shape) -> tuple[list[_Item], dict[str, str]]:
    positionals: list[_Item] = []
    options: dict[str, str] = {}
    remaining = iter(items)
    for item in remaining:
        if not item.text.startswith("-"):
            positionals.append(item)
            continue
        option = _declared(name, item, shape)
        if option.name in options:
            raise ArgumentsInvalid(f"argv[{item.index}]: {item.text} is given twice", rule_id="command.option")
        options[option.name] = _option_value(item, option, remaining)
    return positionals, options


def _declared(name: str, item: _Item, shape: Shape) -> Option:
    option = shape.spellings.get(item.text)
    if option is None:
        known = ", ".join(shape.spellings) or "none"
        message = f"argv[{item.index}]: {quoted(item.text)} is not an option of {name}; its options: {known}"
        raise ArgumentsInvalid(message, rule_id="command.option")
    return option


def _option_value(item: _Item, option: Option, remaining: Iterator[_Item]) -> str:
    if option.kind is None:
        return ""
    value = next(remaining, None)
    if value is None:
        raise ArgumentsInvalid(f"argv[{item.index}]: {item.text} needs {option.kind.label}", rule_id="command.option")
    return _read(value, option.kind, "command.option")


def _read_operands(name: str, items: Sequence[_Item], operands: Sequence[Operand]) -> Iterator[str]:
    remaining = list(items)
    for operand in operands:
        taken, remaining = remaining[: operand.at_most], remaining[operand.at_most :]
        if len(taken) < operand.at_least:
            raise ArgumentsInvalid(f"{name} lacks {operand.kind.label}", rule_id="command.operand")
        for item in taken:
            yield _read(item, operand.kind, "command.operand")
    if remaining:
        surplus = remaining[0]
        message = f"argv[{surplus.index}]: {quoted(surplus.text)} is one item too many for {name}"
        raise ArgumentsInvalid(message, rule_id="command.operand")


def _read(item: _Item, kind: Kind, rule_id: str) -> str:
    try:
        return kind.read(item.text)
    except ValueError as error:
        raise ArgumentsInvalid(f"argv[{item.index}]: {quoted(item.text)} {error}", rule_id=rule_id) from error
