"""Jobs: the grammar of their arguments, and the rules of the policy document.

No value of a caller can become an option of a program: no value may begin with a dash, and a pattern checks every
character.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence

from browser_shell.core.calls import ContainerJob, JobRunner
from browser_shell.core.decisions import Decision, IpAddress, denied
from browser_shell.core.errors import ArgumentsInvalid
from browser_shell.core.json_values import JsonValue
from browser_shell.policy.document import JOB_TOOLS, PolicyDocument

MAX_TESTS = 50
MAX_TEST_CHARACTERS = 400
MAX_PATH_CHARACTERS = 255
MAX_DEPTH = 20
MAX_EXPRESSION_CHARACTERS = 200
MAX_OUTPUT_LINES = 400
DEFAULT_OUTPUT_LINES = 40

# No segment begins with a dash, or is `.` or `..`.
_SEGMENT = r"(?!\.{1,2}(?:/|$))[A-Za-z0-9_.][A-Za-z0-9_.@ +=,-]*"
_PATH_PATTERN = rf"{_SEGMENT}(?:/{_SEGMENT})*"
# Parameters of pytest are free text in brackets. They follow a path, so they never begin an argument.
_NODE = r"(?:::[A-Za-z_][A-Za-z0-9_]*)+(?:\[[^\x00-\x1f\x7f\ud800-\udfff]{0,200}\])?"
_LINE = r"(?::[1-9][0-9]{0,5})?"
_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.]*"
_PATH = re.compile(_PATH_PATTERN)
_PYTHON_TEST = re.compile(rf"({_PATH_PATTERN})(?:{_NODE})?")
_NODE_TEST = re.compile(rf"({_PATH_PATTERN}){_LINE}")
_EXPRESSION = re.compile(rf"\(*{_NAME}\)*(?: (?:\(*{_NAME}\)*))*")
_TEXT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_ .,:@#/()-]*")
_WORDS = frozenset({"and", "or", "not"})
_PATH_RULE = (
    "a relative path of letters, digits and _ . @ + = , - and spaces, no .., no segment that begins with a dash"
)


def read_choice(arguments: Mapping[str, JsonValue], name: str, known: Collection[str]) -> str:
    """Raises: ArgumentsInvalid."""
    value = arguments.get(name)
    if isinstance(value, str) and value in known:
        return value
    raise ArgumentsInvalid(f"{name} must be one of {', '.join(known)}", rule_id=f"arguments.{name}")


def read_project(arguments: Mapping[str, JsonValue]) -> str:
    """Read a directory of the workspace; `.` is the workspace itself. Raises: ArgumentsInvalid."""
    value = arguments.get("project", ".")
    if value == ".":
        return "."
    if isinstance(value, str) and is_plain_path(value):
        return value
    raise ArgumentsInvalid(f"project must be a directory of the workspace: {_PATH_RULE}", rule_id="arguments.project")


def read_tests(arguments: Mapping[str, JsonValue], *, node: bool) -> tuple[str, ...]:
    """Raises: ArgumentsInvalid, naming the item."""
    value = arguments.get("tests", [])
    if not isinstance(value, list) or len(value) > MAX_TESTS:
        raise ArgumentsInvalid(f"tests must be a list of at most {MAX_TESTS} items", rule_id="arguments.tests")
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


def _read_selection(arguments: Mapping[str, JsonValue], name: str, is_valid: Callable[[str], bool], rule: str) -> str:
    value = arguments.get(name, "")
    if value == "" or (isinstance(value, str) and is_valid(value)):
        return str(value)
    raise ArgumentsInvalid(
        f"{name} {rule}, at most {MAX_EXPRESSION_CHARACTERS} characters", rule_id=f"arguments.{name}"
    )


def _test(index: int, value: JsonValue, *, node: bool) -> str:
    if isinstance(value, str) and path_of(value, node=node) is not None:
        return value
    form = "path or path:line" if node else "path or path::test"
    raise ArgumentsInvalid(f"tests[{index}] must be a {form}: {_PATH_RULE}", rule_id="arguments.tests")


class JobPolicy:
    """Judges jobs by one policy document. A hook may have changed the plan, so all of it is checked."""

    def __init__(self, document: PolicyDocument) -> None:
        self.tools = frozenset(JOB_TOOLS if document.tools.allowlist is None else document.tools.allowlist)
        self._playwright = document.playwright
        self._timeout_seconds = document.sandbox.timeout_seconds

    def hosts_to_resolve(self, plan: ContainerJob, /) -> Sequence[str]:
        """Return no hosts: jobs have no network."""
        return ()

    def decide(self, plan: ContainerJob, answers: Mapping[str, Sequence[IpAddress]], /) -> Decision:
        return (
            self._judge_tool(plan)
            or self._judge_artifacts(plan)
            or _judge_selection(plan)
            or self._judge_timeout(plan)
            or Decision(allowed=True, rule_id="job.allowed", reason=f"{plan.name} is allowed")
        )

    def _judge_tool(self, plan: ContainerJob) -> Decision | None:
        if plan.name not in self.tools:
            return denied("tools.allowlist", f"{plan.name} is not in tools.allowlist")
        if plan.name != ("run_pytest" if plan.runner is JobRunner.PYTEST else "run_playwright"):
            return denied("job.mismatch", f"{plan.name} does not run {plan.runner.value}")
        return None

    def _judge_artifacts(self, plan: ContainerJob) -> Decision | None:
        for name in ("screenshots", "videos", "traces"):
            if getattr(plan, name) and not getattr(self._playwright, name):
                return denied(f"playwright.{name}", f"playwright.{name} is off")
        return None

    def _judge_timeout(self, plan: ContainerJob) -> Decision | None:
        if not 1 <= plan.timeout_seconds <= self._timeout_seconds:
            return denied("sandbox.timeout_seconds", f"a job may take at most {self._timeout_seconds} s")
        return None


def _judge_selection(plan: ContainerJob) -> Decision | None:
    """Check the grammar again, so that no value can become an option or lead outside the workspace."""
    node = plan.runner is JobRunner.PLAYWRIGHT_NODE
    is_valid = is_text if node else is_expression
    if plan.project != "." and not is_plain_path(plan.project):
        return denied("job.selection", "the project is not a plain relative path")
    if any(path_of(test, node=node) is None for test in plan.tests):
        return denied("job.selection", "a test is not a plain relative path")
    if any(text and not is_valid(text) for text in (plan.keyword, plan.markers)):
        return denied("job.selection", "a selection is outside the grammar")
    return None
