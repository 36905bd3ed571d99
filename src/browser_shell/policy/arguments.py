"""The shape of arguments: known fields only, integers in a range, and the fields and steps of `browser-shell`."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from browser_shell.core.calls import SESSION_ID_PATTERN
from browser_shell.core.errors import ArgumentsInvalid
from browser_shell.core.json_values import JsonObject, JsonValue
from browser_shell.policy.messages import quoted

MAX_ITEMS = 129
MAX_ITEM_CHARACTERS = 8192
MAX_FURTHER_STEPS = 12
MAX_PICTURES = 3
FIELDS = ("session_id", "argv", "then", "timeout_sec")
_PICTURES = ("screenshot", "pdf")

_SESSION_ID = re.compile(SESSION_ID_PATTERN)
_SURROGATE = re.compile("[\ud800-\udfff]")
_EXACT_UP_TO = 1e21
"""ECMAScript writes whole numbers below this limit without an exponent (ECMA-262, Number::toString)."""
_MAX_INTEGER_BITS = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """The range and the default of an integer argument."""

    least: int
    most: int
    default: int

    def schema(self) -> JsonObject:
        return {"type": "integer", "minimum": self.least, "maximum": self.most, "default": self.default}


def object_schema(properties: JsonObject, *, required: Iterable[str] | None = None) -> JsonObject:
    """Return an object schema without further properties. By default all properties are required."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties if required is None else required),
        "additionalProperties": False,
    }


TIMEOUT_SECONDS = Range(least=1, most=120, default=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallArguments:
    """Arguments of the right shape. The contents of argv are not judged yet."""

    session_id: str
    argv: tuple[str, ...]
    timeout_seconds: int


def split_steps(arguments: JsonValue) -> tuple[JsonValue, ...]:
    """Return the arguments of each step of a call, without `then`.

    Arguments with a malformed `then` are returned unchanged, as one step that `read_arguments` refuses.
    """
    if not isinstance(arguments, dict) or "then" not in arguments or _problem_with_steps(arguments):
        return (arguments,)
    common = {name: value for name, value in arguments.items() if name not in ("argv", "then")}
    return tuple({**common, "argv": argv} for argv in _argvs(arguments))


def read_arguments(arguments: JsonValue) -> CallArguments:
    """Check the shape of one step. No value is clamped, guessed or dropped.

    Raises: ArgumentsInvalid naming the field and the rule.
    """
    fields = require_fields(arguments, FIELDS)
    if "then" in fields:
        raise _invalid(_problem_with_steps(fields) or "then belongs to the whole call", "arguments.then")
    return CallArguments(
        session_id=_session_id(fields.get("session_id")),
        argv=_argv(fields.get("argv")),
        timeout_seconds=read_number(fields, "timeout_sec", TIMEOUT_SECONDS),
    )


def _problem_with_steps(fields: Mapping[str, JsonValue]) -> str:
    """Return what is wrong with `then`, or with the order of the steps; '' if nothing is."""
    then = fields.get("then")
    if not isinstance(then, list) or len(then) > MAX_FURTHER_STEPS:
        return f'then must be a list of at most {MAX_FURTHER_STEPS} steps, each a list such as ["click", "@e1"]'
    for index, step in enumerate(then):
        if not isinstance(step, list) or not step:
            return f'then[{index}] must be a list such as ["click", "@e1"]'
    names = [argv[0] if isinstance(argv, list) and argv else None for argv in _argvs(fields)]
    if "close" in names[:-1]:
        return "close must be the last step"
    if sum(name in _PICTURES for name in names) > MAX_PICTURES:
        return f"a call takes at most {MAX_PICTURES} pictures ({', '.join(_PICTURES)})"
    return ""


def _argvs(fields: Mapping[str, JsonValue]) -> list[JsonValue]:
    then = fields.get("then")
    return [fields.get("argv"), *(then if isinstance(then, list) else ())]


def require_fields(arguments: JsonValue, known: Collection[str]) -> Mapping[str, JsonValue]:
    """Return the arguments if they are an object with known fields only. Raises: ArgumentsInvalid."""
    if not isinstance(arguments, dict):
        raise _invalid(f"arguments must be an object; known fields: {', '.join(known)}", "arguments.shape")
    unknown = sorted(set(arguments) - set(known))
    if unknown:
        raise _invalid(
            f"{quoted(unknown[0])} is an unknown field; known: {', '.join(known)}", "arguments.unknown_field"
        )
    return arguments


def read_number(arguments: Mapping[str, JsonValue], name: str, allowed: Range) -> int:
    """Raises: ArgumentsInvalid."""
    value = arguments.get(name, allowed.default)
    if isinstance(value, int) and not isinstance(value, bool) and allowed.least <= value <= allowed.most:
        return value
    raise _invalid(f"{name} must be an integer from {allowed.least} to {allowed.most}", f"arguments.{name}")


def _session_id(value: JsonValue) -> str:
    # fullmatch, because `$` would accept a trailing newline.
    if not isinstance(value, str) or not _SESSION_ID.fullmatch(value):
        raise _invalid(
            "session_id must be 1 to 64 of a-z A-Z 0-9 . _ - and begin with a letter, digit or _",
            "arguments.session_id",
        )
    return value


def _argv(value: JsonValue) -> tuple[str, ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_ITEMS:
        raise _invalid(f"argv must be a list of 1 to {MAX_ITEMS} items", "arguments.argv")
    return tuple(_item(index, item) for index, item in enumerate(value))


def _item(index: int, value: JsonValue) -> str:
    text = _as_text(index, value)
    if len(text) > MAX_ITEM_CHARACTERS:
        raise _invalid(f"argv[{index}] has more than {MAX_ITEM_CHARACTERS} characters", "arguments.argv_item")
    if "\0" in text or _SURROGATE.search(text):
        raise _invalid(f"argv[{index}] holds NUL or half a surrogate pair", "arguments.argv_item")
    return text


def _as_text(index: int, value: JsonValue) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and value.bit_length() <= _MAX_INTEGER_BITS:
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return str(int(value)) if value.is_integer() and abs(value) < _EXACT_UP_TO else repr(value)
    raise _invalid(f"argv[{index}] must be a string, a number or a boolean", "arguments.argv_item")


def _invalid(message: str, rule_id: str) -> ArgumentsInvalid:
    return ArgumentsInvalid(message, rule_id=rule_id)
