"""The grammar of a subcommand as data, and the parser that checks an argv against it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from browser_shell.core.errors import ArgumentsInvalid
from browser_shell.policy.messages import listed, quoted
from browser_shell.policy.values import Kind


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
    operands: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Item:
    index: int
    text: str


def read_command(argv: Sequence[str], entry: Shape | Words) -> ParsedCommand:
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
    raise ArgumentsInvalid(f"{found}; {items[0].text} takes one of {listed(words)}", rule_id="command.operand")


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
        known = listed(shape.spellings) or "none"
        raise ArgumentsInvalid(
            f"argv[{item.index}]: {quoted(item.text)} is not an option of {name}; its options: {known}",
            rule_id="command.option",
        )
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
        raise ArgumentsInvalid(
            f"argv[{surplus.index}]: {quoted(surplus.text)} is one item too many for {name}", rule_id="command.operand"
        )


def _read(item: _Item, kind: Kind, rule_id: str) -> str:
    try:
        return kind.read(item.text)
    except ValueError as error:
        raise ArgumentsInvalid(f"argv[{item.index}]: {quoted(item.text)} {error}", rule_id=rule_id) from error
