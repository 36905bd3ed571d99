"""`browser-shell audit` on the command line."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from browser_shell.commands.cli import run
from support.audit_logs import a_busy_log, a_log, raw_lines

Output = pytest.CaptureFixture[str]


async def test_verify_of_a_sound_log_exits_with_0(tmp_path: Path, capsys: Output) -> None:
    path = await a_log(tmp_path)
    assert run(["audit", "verify", "--log", str(path)]) == 0
    assert capsys.readouterr().out.startswith("ok")


async def test_verify_of_a_changed_log_prints_the_place_and_exits_with_1(tmp_path: Path, capsys: Output) -> None:
    path = await a_log(tmp_path)
    path.write_bytes(path.read_bytes().replace(b'"call_id":"c3"', b'"call_id":"c4"', 1))
    assert run(["audit", "verify", "--log", str(path)]) == 1
    assert re.search(r"WRONG  audit.jsonl:\d+: record \d+: ", capsys.readouterr().out)


async def test_a_printed_checkpoint_detects_a_log_that_was_replaced(tmp_path: Path, capsys: Output) -> None:
    path = await a_log(tmp_path)
    assert run(["audit", "checkpoint", "--log", str(path)]) == 0
    kept = tmp_path / "kept.json"
    kept.write_text(capsys.readouterr().out, encoding="ascii")
    assert run(["audit", "verify", "--log", str(path), "--checkpoint", str(kept)]) == 0
    path.unlink()
    path.with_suffix(".head").unlink()
    await a_log(tmp_path)
    assert run(["audit", "verify", "--log", str(path), "--checkpoint", str(kept)]) == 1


async def test_a_forged_checkpoint_is_not_printed(tmp_path: Path, capsys: Output) -> None:
    path = await a_log(tmp_path)
    head = path.with_suffix(".head")
    head.write_bytes(head.read_bytes().replace(b'"seq":', b'"seq":1', 1))
    assert run(["audit", "checkpoint", "--log", str(path)]) == 1
    assert capsys.readouterr().out == ""


async def test_the_printed_public_key_verifies_the_log(tmp_path: Path, capsys: Output) -> None:
    path = await a_log(tmp_path)
    assert run(["audit", "key", "--log", str(path)]) == 0
    key = tmp_path / "pinned.pem"
    key.write_text(capsys.readouterr().out, encoding="ascii")
    assert run(["audit", "verify", "--log", str(path), "--key", str(key)]) == 0


@pytest.mark.parametrize("action", ["verify", "tail", "export", "report", "checkpoint", "key"])
def test_a_missing_log_is_reported(tmp_path: Path, action: str, capsys: Output) -> None:
    assert run(["audit", action, "--log", str(tmp_path / "audit.jsonl")]) == 2
    assert "browser-shell: " in capsys.readouterr().err


async def test_tail_prints_the_latest_records_without_escape_sequences(tmp_path: Path, capsys: Output) -> None:
    path = await a_busy_log(tmp_path)
    assert run(["audit", "tail", "-n", "7", "--log", str(path)]) == 0
    out = capsys.readouterr().out
    assert len(out.splitlines()) == 7
    assert "TOOL_FINISHED" in out
    assert "\x1b" not in out


@pytest.mark.parametrize(
    ("options", "call_ids"),
    [
        (["--subject", "bob"], {f"c{number}" for number in range(1, 20, 4)}),
        (["--session", "ann-1", "--until", "2027-01-15T08:00:21Z"], {"c0", "c2"}),
        (["--since", "2027-01-15T08:02:06", "--subject", "ann"], {"c18"}),
        (["--since", "2027-01-15T09:02:06+01:00", "--subject", "ann"], {"c18"}),
        (["--subject", "nobody"], set()),
    ],
)
async def test_an_export_contains_the_selected_records(
    tmp_path: Path, options: list[str], call_ids: set[str], capsys: Output
) -> None:
    path = await a_busy_log(tmp_path)
    assert run(["audit", "export", "--log", str(path), *options]) == 0
    items = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {json.loads(item["record"])["call_id"] for item in items if "record" in item} == call_ids


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}


@pytest.mark.promise("audit:report-is-inert")
async def test_the_report_loads_and_runs_nothing(tmp_path: Path) -> None:
    path, page = await a_busy_log(tmp_path), tmp_path / "page.html"
    assert run(["audit", "report", "--log", str(path), "-o", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    tags = _Tags()
    tags.feed(text)
    assert not tags.names & {"script", "link", "img", "iframe", "object", "base", "form", "a", "image", "use"}
    assert not tags.attributes & {"src", "href", "xlink:href", "onload", "srcset", "action"}
    assert "url(" not in text
    assert "@import" not in text
    assert "default-src 'none'" in text
    assert "&lt;script" in text


async def test_the_report_shows_sessions_refusals_latency_and_the_verification(tmp_path: Path) -> None:
    path, page = await a_busy_log(tmp_path), tmp_path / "page.html"
    assert run(["audit", "report", "--log", str(path), "-o", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert "The log is intact." in text
    assert "address.private</text>" in text
    assert "<b>20</b>calls" in text
    assert "<td>bob-1</td>" in text
    assert text.count("<svg") == 3
    path.write_bytes(b"".join(raw_lines(path)[:-1]))
    assert run(["audit", "report", "--log", str(path), "-o", str(page)]) == 1
    assert "The log was changed or cut." in page.read_text(encoding="utf-8")


async def test_a_report_without_calls_is_a_valid_page(tmp_path: Path) -> None:
    path, page = await a_log(tmp_path), tmp_path / "page.html"
    assert run(["audit", "report", "--log", str(path), "-o", str(page), "--since", "2030-01-01"]) == 0
    assert "no finished calls" in page.read_text(encoding="utf-8")


async def test_an_invalid_time_is_reported(tmp_path: Path, capsys: Output) -> None:
    path = await a_log(tmp_path)
    assert run(["audit", "export", "--log", str(path), "--since", "yesterday"]) == 2
    assert "yesterday" in capsys.readouterr().err


async def test_verify_of_an_export_exits_with_1_unless_the_given_key_proves_it(tmp_path: Path, capsys: Output) -> None:
    path, export = await a_busy_log(tmp_path), tmp_path / "bob.jsonl"
    assert run(["audit", "export", "--log", str(path), "--subject", "bob"]) == 0
    text = capsys.readouterr().out
    check = ["audit", "verify", "--export", str(export), "--key", str(path.with_suffix(".pub"))]
    export.write_text(text, encoding="utf-8")
    assert run(check) == 0
    assert "15 records are proven" in capsys.readouterr().out
    export.write_text(text.replace("POLICY_BLOCKED", "POLICY_ALLOWED", 1), encoding="utf-8")
    assert run(check) == 1
