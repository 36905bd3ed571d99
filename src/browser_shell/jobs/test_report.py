"""Parses the report that a job wrote about itself. The bytes are untrusted, and so are the counts in them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from xml.etree import ElementTree

import structlog

from browser_shell.core.json_values import JsonObject, JsonValue
from browser_shell.process.files import read_plain_file

MAX_REPORT_BYTES = 2 * 1024 * 1024
MAX_PARTS = 200_000
"""Delimiters of values or elements. They are counted before a parser creates an object for each."""
MAX_TESTS = 100_000
MAX_FAILURES = 50
MAX_NAME_CHARACTERS = 300
MAX_MESSAGE_CHARACTERS = 2_000
MAX_DEPTH = 40
# CSI and OSC sequences of ECMA-48: colours, titles, links.
_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]{0,500}(?:\x07|\x1b\\))")

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedTest:
    test: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReport:
    """Counts by outcome, and the first failures."""

    passed: int = 0
    failed: int = 0
    errors: int = 0
    skipped: int = 0
    timed_out: int = 0
    flaky: int = 0
    failures: tuple[FailedTest, ...] = ()
    failures_left_out: int = 0

    @property
    def has_no_failures(self) -> bool:
        return not (self.failed or self.errors or self.timed_out)


def read_report(output: Path, name: str) -> JobReport | None:
    """Read the report under `output`; None when there is no valid one. Never raises.

    The job wrote the report: a parser error must not prevent the run's evidence.
    """
    try:
        content = read_plain_file(output / name, max_bytes=MAX_REPORT_BYTES)
        return READERS[PurePosixPath(name).suffix](content) if content is not None else None
    except Exception:
        log.warning("report_not_read", exc_info=True)
        return None


def read_junit(content: bytes) -> JobReport | None:
    """Parse pytest's XML; None when it is not valid."""
    if _has_too_many(b"<", content):
        return None
    tally = _Tally()
    parser = ElementTree.XMLParser(target=_BoundedTree())  # noqa: S314  the target refuses document types
    try:
        parser.feed(content)
        root = parser.close()
        if root.tag not in ("testsuites", "testsuite"):
            return None
        for case in root.iter("testcase"):
            _count_junit(tally, case)
    except (ElementTree.ParseError, ValueError, LookupError):
        # LookupError: an encoding that Python does not have, or that is not a text encoding.
        return None
    return tally.report()


def read_playwright(content: bytes) -> JobReport | None:
    """Parse Playwright's JSON; None when it is not valid."""
    if _has_too_many(b"{[,", content):
        return None
    try:
        report = json.loads(content)
    except (ValueError, RecursionError):
        return None
    suites = report.get("suites") if isinstance(report, dict) else None
    if not isinstance(suites, list):
        return None
    tally = _Tally()
    try:
        for title, test in _tests_in(suites):
            _count_playwright(tally, title, test)
        for error in _objects(report.get("errors")):
            tally.fail("errors", "(outside a test)", _text(error.get("message")))
    except ValueError:
        return None
    return tally.report()


class _Tally:
    """Counts outcomes and keeps the first `MAX_FAILURES` failures."""

    def __init__(self) -> None:
        self._counts = dict.fromkeys(("passed", "failed", "errors", "skipped", "timed_out", "flaky"), 0)
        self._failures: list[FailedTest] = []
        self._left_out = 0

    def count(self, outcome: str) -> None:
        """Raises: ValueError when there are more than `MAX_TESTS`."""
        if sum(self._counts.values()) == MAX_TESTS:
            raise ValueError("too many tests")
        self._counts[outcome] += 1

    def fail(self, outcome: str, test: str, message: str) -> None:
        self.count(outcome)
        if len(self._failures) == MAX_FAILURES:
            self._left_out += 1
            return
        self._failures.append(
            FailedTest(
                test=plain_text(test[:MAX_NAME_CHARACTERS]),
                message=plain_text(message.strip()[:MAX_MESSAGE_CHARACTERS]),
            )
        )

    def report(self) -> JobReport:
        return JobReport(**self._counts, failures=tuple(self._failures), failures_left_out=self._left_out)


class _BoundedTree(ElementTree.TreeBuilder):
    """Refuses document types, and with them all declarations of entities, and elements that are nested too deeply."""

    def __init__(self) -> None:
        super().__init__()
        self._depth = 0

    def doctype(self, *_: object) -> None:
        raise ValueError("a report has no document type")

    def start(self, tag: str, attributes: dict[str, str], /) -> ElementTree.Element:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ValueError("nested too deeply")
        return super().start(tag, attributes)

    def end(self, tag: str, /) -> ElementTree.Element:
        self._depth -= 1
        return super().end(tag)


_JUNIT_FAILURES = {"failure": "failed", "error": "errors"}
_PLAYWRIGHT_OUTCOMES = {"expected": "passed", "skipped": "skipped", "flaky": "flaky"}


def _count_junit(tally: _Tally, case: ElementTree.Element) -> None:
    failure = next((child for child in case if child.tag in _JUNIT_FAILURES), None)
    if failure is None:
        tally.count("passed" if case.find("skipped") is None else "skipped")
        return
    name = "::".join(filter(None, (case.get("classname"), case.get("name"))))
    summary = failure.get("message", "")
    outcome = "timed_out" if summary.startswith("Failed: Timeout") else _JUNIT_FAILURES[failure.tag]
    tally.fail(outcome, name, summary or failure.text or "")


def _has_too_many(delimiters: bytes, content: bytes) -> bool:
    return sum(content.count(delimiter) for delimiter in delimiters) > MAX_PARTS


def _tests_in(suites: list[JsonValue]) -> Iterator[tuple[str, JsonObject]]:
    """Yield title and test, depth first. Raises: ValueError when suites are nested too deeply."""
    stack = [("", suite, 0) for suite in reversed(_objects(suites))]
    while stack:
        above, suite, depth = stack.pop()
        if depth > MAX_DEPTH:
            raise ValueError("nested too deeply")
        title = _joined(above, suite)
        for spec in _objects(suite.get("specs")):
            for test in _objects(spec.get("tests")):
                yield _joined(title, spec), test
        stack += [(title, inner, depth + 1) for inner in reversed(_objects(suite.get("suites")))]


def _count_playwright(tally: _Tally, title: str, test: JsonObject) -> None:
    status = test.get("status")
    outcome = _PLAYWRIGHT_OUTCOMES.get(status) if isinstance(status, str) else None
    if outcome is not None:
        tally.count(outcome)
        return
    results = _objects(test.get("results"))
    last = results[-1] if results else {}
    error = last.get("error")
    message = _text(error.get("message")) if isinstance(error, dict) else ""
    tally.fail("timed_out" if last.get("status") == "timedOut" else "failed", title, message)


def _objects(value: JsonValue) -> list[JsonObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _joined(above: str, part: JsonObject) -> str:
    title = _text(part.get("title"))[:MAX_NAME_CHARACTERS]
    return f"{above} > {title}"[: 2 * MAX_NAME_CHARACTERS] if above else title


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""


def plain_text(text: str) -> str:
    """Remove escape sequences and replace control characters, so that no terminal interprets the text."""
    return "\n".join(plain_line(line) for line in text.split("\n"))


def plain_line(line: str) -> str:
    """Clean one line. Text before a carriage return is dropped, as a terminal would overwrite it."""
    last = _ESCAPES.sub("", line).rstrip("\r").rsplit("\r", 1)[-1]
    return "".join(letter if letter.isprintable() or letter == "\t" else "�" for letter in last)


READERS: dict[str, Callable[[bytes], JobReport | None]] = {".xml": read_junit, ".json": read_playwright}
