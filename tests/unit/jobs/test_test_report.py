"""Parsers of reports that a hostile job may have written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from browser_shell.jobs import test_report as job_reports
from browser_shell.jobs.test_report import (
    MAX_FAILURES,
    MAX_PARTS,
    MAX_REPORT_BYTES,
    plain_text,
    read_junit,
    read_playwright,
    read_report,
)

JUNIT = b"""<?xml version="1.0"?><testsuites><testsuite name="pytest">
<testcase classname="tests.test_a" name="test_ok"/>
<testcase classname="tests.test_a" name="test_bad"><failure message="assert 1 == 2">details</failure></testcase>
<testcase classname="tests.test_a" name="test_slow"><failure message="Failed: Timeout (&gt;1.0s)">x</failure></testcase>
<testcase classname="tests.test_a" name="test_broken"><error>no fixture \xc3\xa4</error>
<system-out>noise</system-out></testcase>
<testcase classname="tests.test_a" name="test_later"><skipped message="later"/></testcase>
</testsuite></testsuites>"""


def test_a_pytest_report_is_counted() -> None:
    report = read_junit(JUNIT)
    assert report is not None
    assert (report.passed, report.failed, report.timed_out, report.errors, report.skipped) == (1, 1, 1, 1, 1)
    assert [(failure.test, failure.message) for failure in report.failures] == [
        ("tests.test_a::test_bad", "assert 1 == 2"),
        ("tests.test_a::test_slow", "Failed: Timeout (>1.0s)"),
        ("tests.test_a::test_broken", "no fixture ä"),
    ]
    assert not report.has_no_failures


@pytest.mark.promise("jobs:hostile-reports")
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<html/>",
        b"<testsuites>",
        b"\xff\xfe\x00",
        b'<!DOCTYPE a [<!ENTITY x "y">]><testsuites><testcase name="&x;"/></testsuites>',
        b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><testsuites/>',
        b'<!DOCTYPE testsuites><testsuites/>',
        b"<testsuites>" + b"<a>" * 60 + b"</a>" * 60 + b"</testsuites>",
        b"<testsuites>" + b"<testcase/>" * 100_001 + b"</testsuites>",
        b"<testsuites>" + b"<a/>" * MAX_PARTS + b"</testsuites>",
        b'<?xml version="1.0" encoding="rot13"?><testsuites/>',
        b'<?xml version="1.0" encoding="hex"?><testsuites/>',
        b'<?xml version="1.0" encoding="none-such"?><testsuites/>',
    ],
)  # fmt: skip
def test_other_xml_is_no_report(content: bytes) -> None:
    assert read_junit(content) is None


def test_failures_beyond_the_maximum_are_only_counted() -> None:
    one = b'<testcase name="t"><failure message="' + b"x" * 5000 + b'"/></testcase>'
    report = read_junit(b"<testsuite>" + one * (MAX_FAILURES + 7) + b"</testsuite>")
    assert report is not None
    assert (report.failed, len(report.failures), report.failures_left_out) == (MAX_FAILURES + 7, MAX_FAILURES, 7)
    assert len(report.failures[0].message) == 2000


def spec(title: str, status: str, *results: dict[str, Any]) -> dict[str, Any]:
    return {"title": title, "tests": [{"status": status, "results": list(results)}]}


def test_a_playwright_report_is_counted() -> None:
    content = {
        "suites": [
            {
                "title": "a.spec.ts",
                "specs": [
                    spec("ok", "expected"),
                    spec("later", "skipped"),
                    spec("at last", "flaky"),
                    spec("bad", "unexpected", {"status": "failed", "error": {"message": "\x1b[31mno\x1b[39m"}}),
                ],
                "suites": [{"title": "inner", "specs": [spec("slow", "unexpected", {"status": "timedOut"})]}],
            }
        ],
        "errors": [{"message": "no such file"}],
    }
    report = read_playwright(json.dumps(content).encode())
    assert report is not None
    counts = (report.passed, report.skipped, report.flaky, report.failed, report.timed_out, report.errors)
    assert counts == (1, 1, 1, 1, 1, 1)
    assert [(failure.test, failure.message) for failure in report.failures][:2] == [
        ("a.spec.ts > bad", "no"),
        ("a.spec.ts > inner > slow", ""),
    ]


@pytest.mark.promise("jobs:hostile-reports")
@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"suites": 5}', b"[" * 100_000, b"\xff", b'{"suites": [5, null]']
)
def test_other_json_is_no_report(content: bytes) -> None:
    assert read_playwright(content) is None


def test_a_report_that_is_nested_too_deeply_is_no_report() -> None:
    suite: dict[str, Any] = {"specs": []}
    for _ in range(60):
        suite = {"suites": [suite]}
    assert read_playwright(json.dumps({"suites": [suite]}).encode()) is None


def test_a_test_with_an_invalid_status_counts_as_failed() -> None:
    report = read_playwright(b'{"suites": [{"title": 5, "specs": [{"tests": [{"status": ["x"]}, 7]}]}]}')
    assert report is not None
    assert (report.passed, report.failed) == (0, 1)


@pytest.mark.promise("jobs:hostile-reports")
@pytest.mark.parametrize("bomb", [b'{"":0},', b"[],", b"0,", b'{"a":[{"b":['])
def test_a_report_with_too_many_values_is_not_parsed(bomb: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[int] = []
    monkeypatch.setattr(json, "loads", lambda content: parsed.append(len(content)))
    content = b'{"suites": [' + bomb * (MAX_REPORT_BYTES // len(bomb))
    assert read_playwright(content) is None
    assert parsed == []


@pytest.mark.promise("jobs:hostile-reports")
def test_a_report_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    report = b'{"suites": []}'
    (tmp_path / "report.json").write_bytes(report.ljust(MAX_REPORT_BYTES))
    assert read_report(tmp_path, "report.json") is not None
    (tmp_path / "report.json").write_bytes(report.ljust(MAX_REPORT_BYTES + 1))
    assert read_report(tmp_path, "report.json") is None


@pytest.mark.promise("jobs:hostile-reports")
@pytest.mark.parametrize("fault", [MemoryError, LookupError, AttributeError, OSError])
def test_a_parser_error_means_no_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: type[Exception]
) -> None:
    def fail(content: bytes) -> None:
        raise fault

    (tmp_path / "junit.xml").write_bytes(b"<testsuite/>")
    assert read_report(tmp_path, "junit.xml") is not None
    monkeypatch.setitem(job_reports.READERS, ".xml", fail)
    assert read_report(tmp_path, "junit.xml") is None


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("10 %\r100 %\r", "100 %"),
        ("a\x00b\tc", "a\N{REPLACEMENT CHARACTER}b\tc"),
        ("one\n\x1b[2Jtwo", "one\ntwo"),
    ],
)
def test_control_sequences_are_removed(written: str, plain: str) -> None:
    assert plain_text(written) == plain
