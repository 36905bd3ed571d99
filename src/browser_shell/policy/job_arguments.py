"""The grammar of a job's arguments: paths inside the workspace, selections and options from a closed list.

No value of a caller can become an option of a program: no value may begin with a dash, and a pattern checks every
character.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from browser_shell.core.errors import ArgumentsInvalid
from browser_shell.core.json_values import JsonObject, JsonValue
from browser_shell.policy.messages import listed, quoted

MAX_TESTS = 50
MAX_TEST_CHARACTERS = 400
MAX_PATH_CHARACTERS = 255
MAX_DEPTH = 20
MAX_EXPRESSION_CHARACTERS = 200
MAX_OUTPUT_LINES = 400
DEFAULT_OUTPUT_LINES = 40

# No segment begins with a dash, or is `.` or `..`.
_SEGMENT = r"(?!\.{1,2}(?:/|$))[A-Za-z0-9_.][A-Za-z0-9_.@ +=,-]*"
PATH_PATTERN = rf"{_SEGMENT}(?:/{_SEGMENT})*"
# Parameters of pytest are free text in brackets. They follow a path, so they never begin an argument.
_NODE = r"(?:::[A-Za-z_][A-Za-z0-9_]*)+(?:\[[^\x00-\x1f\x7f\ud800-\udfff]{0,200}\])?"
_LINE = r"(?::[1-9][0-9]{0,5})?"
_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.]*"
EXPRESSION_PATTERN = rf"\(*{_NAME}\)*(?: (?:\(*{_NAME}\)*))*"
_PATH = re.compile(PATH_PATTERN)
_PYTHON_TEST = re.compile(rf"({PATH_PATTERN})(?:{_NODE})?")
_NODE_TEST = re.compile(rf"({PATH_PATTERN}){_LINE}")
_EXPRESSION = re.compile(EXPRESSION_PATTERN)
_TEXT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_ .,:@#/()-]*")
_WORDS = frozenset({"and", "or", "not"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """The range and the default of an integer argument."""

    least: int
    most: int
    default: int

    def schema(self) -> JsonObject:
        return {"type": "integer", "minimum": self.least, "maximum": self.most, "default": self.default}


def require_fields(arguments: JsonValue, known: Collection[str]) -> Mapping[str, JsonValue]:
    """Return the arguments if they are an object with known fields only. Raises: ArgumentsInvalid."""
    if not isinstance(arguments, dict):
        raise _invalid(f"arguments must be an object; known fields: {listed(known)}", "arguments.shape")
    unknown = sorted(set(arguments) - set(known))
    if unknown:
        raise _invalid(f"{quoted(unknown[0])} is an unknown field; known: {listed(known)}", "arguments.unknown_field")
    return arguments


def read_number(arguments: Mapping[str, JsonValue], name: str, allowed: Range) -> int:
    """Raises: ArgumentsInvalid."""
    value = arguments.get(name, allowed.default)
    if isinstance(value, int) and not isinstance(value, bool) and allowed.least <= value <= allowed.most:
        return value
    raise _invalid(f"{name} must be an integer from {allowed.least} to {allowed.most}", f"arguments.{name}")


def read_choice(arguments: Mapping[str, JsonValue], name: str, known: Collection[str]) -> str:
    """Raises: ArgumentsInvalid."""
    value = arguments.get(name)
    if isinstance(value, str) and value in known:
        return value
    raise _invalid(f"{name} must be one of {listed(known)}", f"arguments.{name}")


def read_project(arguments: Mapping[str, JsonValue]) -> str:
    """Read a directory of the workspace; `.` is the workspace itself. Raises: ArgumentsInvalid."""
    value = arguments.get("project", ".")
    if value == ".":
        return "."
    if isinstance(value, str) and is_plain_path(value):
        return value
    raise _invalid(f"project must be a directory of the workspace: {_PATH_RULE}", "arguments.project")


def read_tests(arguments: Mapping[str, JsonValue], *, node: bool) -> tuple[str, ...]:
    """Raises: ArgumentsInvalid, naming the item."""
    value = arguments.get("tests", [])
    if not isinstance(value, list) or len(value) > MAX_TESTS:
        raise _invalid(f"tests must be a list of at most {MAX_TESTS} items", "arguments.tests")
    return tuple(_test(index, item, node=node) for index, item in enumerate(value))


def read_expression(arguments: Mapping[str, JsonValue], name: str) -> str:
    """Read an expression for pytest's -k or -m: names, and, or, not, brackets. Raises: ArgumentsInvalid."""
    rule = "must be names joined by and, or, not and brackets, such as 'login and not (slow or admin)'"
    return _read_selection(arguments, name, is_expression, rule)


def read_text(arguments: Mapping[str, JsonValue], name: str) -> str:
    """Read a part of a test's title. Raises: ArgumentsInvalid."""
    rule = "must be part of a title: letters, digits, spaces and _ . , : @ # / ( ) -, beginning with a letter or digit"
    return _read_selection(arguments, name, is_text, rule)


def is_plain_path(text: str) -> bool:
    return len(text) <= MAX_PATH_CHARACTERS and text.count("/") < MAX_DEPTH and _PATH.fullmatch(text) is not None


def path_of(test: str, *, node: bool) -> str | None:
    """Return the file or directory of a selected test; None if the text is not a selection."""
    found = (_NODE_TEST if node else _PYTHON_TEST).fullmatch(test)
    return found[1] if found and len(test) <= MAX_TEST_CHARACTERS and is_plain_path(found[1]) else None


def is_expression(text: str) -> bool:
    if len(text) > MAX_EXPRESSION_CHARACTERS or not _EXPRESSION.fullmatch(text) or text.count("(") != text.count(")"):
        return False
    # pytest would fail on an expression of operators alone, so it is refused here.
    return bool(set(re.findall(_NAME, text)) - _WORDS)


def is_text(text: str) -> bool:
    return len(text) <= MAX_EXPRESSION_CHARACTERS and _TEXT.fullmatch(text) is not None


_PATH_RULE = (
    "a relative path of letters, digits and _ . @ + = , - and spaces, no .., no segment that begins with a dash"
)


def _read_selection(arguments: Mapping[str, JsonValue], name: str, is_valid: Callable[[str], bool], rule: str) -> str:
    value = arguments.get(name, "")
    if value == "" or (isinstance(value, str) and is_valid(value)):
        return str(value)
    raise _invalid(f"{name} {rule}, at most {MAX_EXPRESSION_CHARACTERS} characters", f"arguments.{name}")


def _test(index: int, value: JsonValue, *, node: bool) -> str:
    if isinstance(value, str) and path_of(value, node=node) is not None:
        return value
    form = "path or path:line" if node else "path or path::test"
    raise _invalid(f"tests[{index}] must be a {form}: {_PATH_RULE}", "arguments.tests")


def _invalid(message: str, rule_id: str) -> ArgumentsInvalid:
    return ArgumentsInvalid(message, rule_id=rule_id)
