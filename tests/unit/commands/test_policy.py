"""`policy check`: one answer for each line, valid or not."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from browser_shell.commands.policy import GivenAnswers, check_lines, run_check
from browser_shell.policy.document import PolicyDocument


def answers(*lines: bytes | dict[str, Any], policy_path: Path | None = None) -> list[dict[str, Any]]:
    text = b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines)
    output = io.StringIO()
    assert run_check(io.BytesIO(text), output, policy_path=policy_path, explain=False) == 0
    return [json.loads(line) for line in output.getvalue().splitlines()]


def answer(line: bytes | dict[str, Any]) -> dict[str, Any]:
    (one,) = answers(line)
    return one


def a_call(*argv: Any) -> dict[str, Any]:
    return {"id": "1", "arguments": {"session_id": "s", "argv": list(argv)}, "dns": {}}


def test_a_loopback_url_is_denied() -> None:
    result = answer({"id": "1", "url": "http://0x7f.1/"})
    assert (result["id"], result["verdict"], result["rule"]) == ("1", "deny", "address.loopback")
    assert "href" not in result


def test_an_allowed_url_comes_back_in_canonical_form() -> None:
    result = answer({"id": 7, "url": "HTTPS://Example.com.", "dns": {"EXAMPLE.com.": ["93.184.215.14"]}})
    assert result == {
        "id": 7,
        "verdict": "allow",
        "rule": "address.public",
        "reason": "every address of example.com may be reached",
        "href": "https://example.com./",
    }


def test_calls_are_judged_like_urls() -> None:
    assert answer(a_call("snapshot", "-i"))["rule"] == "command.allowed"
    assert answer(a_call("eval", "1"))["rule"] == "command.denied"
    assert answer(a_call("open", "https://example.com/"))["rule"] == "dns.no_answer"
    assert answer(a_call("open", "https://example.com/") | {"dns": {"example.com": ["93.184.215.14"]}})["href"]


@pytest.mark.parametrize("dns", [{}, {"example.com": []}, {"example.com": {"error": "SERVFAIL"}}])
def test_a_name_without_an_answer_is_denied(dns: dict[str, Any]) -> None:
    assert answer({"id": "1", "url": "https://example.com/", "dns": dns})["rule"] == "dns.no_answer"


@pytest.mark.parametrize(
    ("extra", "rule"),
    [
        ({"dns": None}, "input.shape"),
        ({"dns": {"example.com": "93.184.215.14"}}, "input.shape"),
        ({"dns": {"example.com": ["nonsense"]}}, "dns.bad_answer"),
        ({"policy": {"opne": {}}}, "policy.invalid"),
        ({"policy": None}, "policy.invalid"),
        ({"policy": {"open": {"allow_hosts": ["other.example"]}}}, "host.allowlist"),
        ({"policy": {"commands": {"allow": ["snapshot"]}}}, "command.denied"),
        ({"arguments": {}}, "input.shape"),
        ({"url": 1}, "input.shape"),
        ({"url": "file:///etc/passwd"}, "url.scheme"),
    ],
)
def test_a_case_can_carry_its_own_policy_and_answers(extra: dict[str, Any], rule: str) -> None:
    assert answer({"id": "1", "url": "https://example.com/", "dns": {}, **extra})["rule"] == rule


@pytest.mark.parametrize(
    ("case", "rule"),
    [
        ({"id": "1"}, "input.shape"),
        ({"id": "1", "tool": "bash", "arguments": {}}, "tool.unknown"),
        ({"id": "1", "tool": "browser-shell ", "arguments": {}}, "tool.unknown"),
        ({"id": "1", "tool": 5, "arguments": {}}, "tool.unknown"),
        ({"id": "1", "tool": "run_shell", "arguments": {}}, "tool.reserved"),
        ({"id": "1", "tool": "browser-shell", "arguments": {}}, "arguments.session_id"),
        ({"id": "1", "raw_arguments": "[]"}, "arguments.shape"),
        ({"id": "1", "raw_arguments": 5}, "input.shape"),
        ({"id": "1", "raw_arguments": '{"argv":[1],"argv":[2]}'}, "input.json"),
        ({"id": "1", "raw_arguments": '{"session_id":"s","argv":["wait",Infinity]}'}, "input.json"),
        ({"id": "1", "raw_arguments": '{"session_id":"s","argv":["wait",1e999]}'}, "input.json"),
        ({"id": "1", "raw_arguments": ""}, "input.json"),
    ],
)
def test_an_invalid_call_is_denied(case: dict[str, Any], rule: str) -> None:
    assert answer(case)["rule"] == rule


@pytest.mark.promise("check:one-answer-per-line")
@pytest.mark.parametrize(
    ("line", "case_id"),
    [
        (b"garbage", None),
        (b"[]", None),
        (b'{"id": "a", "url": NaN}', "a"),
        (b'{"id": "a", "url": "x", "url": "y"}', "a"),
        (b'{"id": 12, "url": ', 12),
        (b'{"id": "\\q", "url": ', None),
        (b'{"id": "a", "url": "\xff"}', "a"),
        (b'{"id": "a", "url": ' + b"[" * 100_000, "a"),
        (b'{"id": "a", "number": ' + b"9" * 10_000 + b"}", "a"),
        (b"x" * 1_000_000, None),
        (b'{"id": 1e999, "url": "x"}', None),
        (b'{"id": ' + b"9" * 5000 + b"}", None),
    ],
    ids=range(12),
)
def test_a_line_that_is_not_strict_json_is_denied(line: bytes, case_id: Any) -> None:
    result = answer(line)
    assert (result["id"], result["verdict"], result["rule"]) == (case_id, "deny", "input.json")


def test_blank_lines_are_skipped_and_ids_that_are_not_scalars_are_dropped() -> None:
    results = answers(b"", {"id": ["x"], "url": "http://10.0.0.1/"}, b"  ", {"url": "http://10.0.0.1/"}, b"")
    assert [result["id"] for result in results] == [None, None]


def test_the_policy_file_applies_to_every_case(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text("open: {allow_hosts: [example.com]}\n", encoding="utf-8")
    (result,) = answers({"id": "1", "url": "https://other.example/"}, policy_path=path)
    assert result["rule"] == "host.allowlist"


@pytest.mark.parametrize("content", [None, b"\xff", b"opne: {}\n"])
def test_an_unreadable_policy_is_reported_on_stderr(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None
) -> None:
    path = tmp_path / "policy.yaml"
    if content is not None:
        path.write_bytes(content)
    assert run_check(io.BytesIO(b"{}"), sys.stdout, policy_path=path, explain=False) == 2
    printed = capsys.readouterr()
    assert str(path) in printed.err
    assert printed.out == ""


async def test_input_cannot_break_the_layout_of_explained_answers() -> None:
    lines = [
        json.dumps({"id": "x\x1b[2J\ny", "url": "https://example.com/", "dns": {"example.com": ["10.0.0.1"]}}).encode(),
        json.dumps({"id": 2, "url": "https://example.com/", "dns": {}}).encode(),
        json.dumps({"id": 3, "policy": {"a\nDENY": 1}, "url": "x"}).encode(),
    ]
    resolver = GivenAnswers(answers={})
    blocks = [block async for block in check_lines(lines, policy=PolicyDocument(), resolver=resolver, explain=True)]
    assert blocks[0].splitlines()[1:] == [
        "  rule    address.private",
        "  reason  example.com resolves to 10.0.0.1: 10.0.0.1 is a private address",
        "  url     https://example.com/",
        "  lookup  example.com -> 10.0.0.1",
    ]
    assert "\x1b" not in blocks[0]
    assert "no answer" in blocks[1]
    assert all(line.startswith((" ", "DENY", "ALLOW")) for block in blocks for line in block.splitlines())
    assert len(blocks[2].splitlines()) == 3


async def test_hosts_without_answers_in_the_case_are_resolved() -> None:
    resolver = GivenAnswers(answers={"example.com": [ip_address("93.184.215.14")]})
    line = json.dumps({"id": "1", "url": "https://example.com/"}).encode()
    (text,) = [text async for text in check_lines([line], policy=PolicyDocument(), resolver=resolver)]
    assert json.loads(text)["verdict"] == "allow"


def test_each_answer_is_flushed() -> None:
    output = CountingStream()
    assert run_check(io.BytesIO(b'{"id": 1}\n{"id": 2}\n'), output, policy_path=None, explain=False) == 0
    assert output.lines_at_flush == [1, 2]


@pytest.mark.parametrize(
    ("redirection", "code", "message"),
    [
        ("| head -n 1 >/dev/null; exit ${PIPESTATUS[2]}", 1, ""),
        (">/dev/full", 1, "the answers cannot be written: No space left on device"),
        (">&-", 2, "answers on its standard output"),
        ("<&-", 2, "reads lines from its standard input"),
    ],
)
def test_closed_streams_cause_no_traceback(redirection: str, code: int, message: str) -> None:
    program = Path(sys.executable).with_name("browser-shell")
    lines = 'yes \'{"id":1,"url":"about:blank"}\' | head -n 5000'
    ran = subprocess.run(
        ["/bin/bash", "-c", f"{lines} | '{program}' policy check {redirection}"], capture_output=True, text=True
    )
    assert ran.returncode == code
    assert message in ran.stderr
    assert bool(message) is bool(ran.stderr)
    assert "Traceback" not in ran.stderr


class CountingStream(io.StringIO):
    """Counts the lines that are written at each flush."""

    def __init__(self) -> None:
        super().__init__()
        self.lines_at_flush: list[int] = []

    def flush(self) -> None:
        self.lines_at_flush.append(self.getvalue().count("\n"))
