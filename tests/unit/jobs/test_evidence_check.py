"""`evidence verify` over a real audit log: what the log knows nothing of, or knows otherwise, is never sound."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from browser_shell.audit.log import JsonLinesAudit
from browser_shell.commands import evidence as evidence_commands
from browser_shell.commands import evidence_log
from browser_shell.commands.evidence_log import LogFacts
from browser_shell.core.ports import ignore_progress
from browser_shell.core.records import AuditRecord, RecordKind
from support.fake_engine import ScriptedEngine
from support.fakes import FakeClock
from support.job_plans import RUN, JobBench, a_job, a_job_call
from support.job_server import verify


@contextmanager
def a_bench(directory: Path) -> Iterator[JobBench]:
    """With a log that is opened as a server opens it, and closed as one that stops closes it."""
    bench = JobBench(directory, ScriptedEngine(files={"a/b.txt": b"b"}))
    path = directory / "audit.jsonl"
    with JsonLinesAudit(path=path, clock=FakeClock(), policy_digest=bench.document.digest()) as audit:
        yield JobBench(directory, bench.engine, audit=audit)  # type: ignore[arg-type]


def a_record(kind: RecordKind, **members: Any) -> AuditRecord:
    return AuditRecord(kind=kind, call_id=RUN, tool="run_pytest", **{"subject": "ann", "run_id": RUN, **members})


async def begin_and_lose(directory: Path, **facts: Any) -> None:
    """A server that is gone before the run's end: it leaves what it had written of the run, and the two records."""
    with a_bench(directory) as bench:
        run = await bench.sandbox()._prepare(a_job_call(), a_job(), RUN)
        image = run.facts.image
        await bench.audit.record(a_record(RecordKind.MCP_CONTAINER_SPAWN, image=image))
        await bench.audit.record(a_record(RecordKind.MCP_CONTAINER_EXEC, image=image))
    written = bench.run_directory / "run.json"
    written.write_text(json.dumps({**json.loads(written.read_bytes()), **facts}))


async def test_a_run_is_sound_while_the_server_lives_and_afterwards(tmp_path: Path) -> None:
    with a_bench(tmp_path) as bench:
        await bench.sandbox().run(a_job_call(), a_job(), ignore_progress)
        assert verify(tmp_path).returncode == 0
    checked = verify(tmp_path)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.promise("evidence:any-change-is-found")
async def test_a_directory_that_the_log_does_not_know_is_not_a_run_that_goes_on(tmp_path: Path) -> None:
    with a_bench(tmp_path):
        made_up = tmp_path / "artifacts" / "deadbeef"
        (made_up / "output").mkdir(parents=True)
        (made_up / "run.json").write_text("{}")
        (made_up / "output" / "fake.png").write_bytes(b"png")
        checked = verify(tmp_path)
    assert checked.returncode == 1
    assert "deadbeef: the audit log knows of no such run that goes on" in checked.stdout


@pytest.mark.parametrize("begun", [RecordKind.MCP_CONTAINER_SPAWN, RecordKind.MCP_CONTAINER_EXEC])
async def test_a_run_goes_on_from_its_first_record_to_its_last(tmp_path: Path, begun: RecordKind) -> None:
    with a_bench(tmp_path) as bench:
        await bench.sandbox()._prepare(a_job_call(), a_job(), RUN)
        await bench.audit.record(a_record(begun))
        await bench.audit.record(a_record(RecordKind.MCP_CONTAINER_CLEANUP))
        going = verify(tmp_path)
        assert (going.returncode, "goes on" in going.stdout) == (0, True), going.stdout
        await bench.audit.record(a_record(RecordKind.TOOL_FINISHED, run_id=""))
        assert verify(tmp_path).returncode == 1


@pytest.mark.parametrize("last", [RecordKind.RUN_REMOVED, RecordKind.MCP_FILE_WRITE])
async def test_a_run_that_ended_does_not_go_on(tmp_path: Path, last: RecordKind) -> None:
    with a_bench(tmp_path) as bench:
        await bench.sandbox()._prepare(a_job_call(), a_job(), RUN)
        await bench.audit.record(a_record(RecordKind.MCP_CONTAINER_EXEC))
        assert verify(tmp_path).returncode == 0
        await bench.audit.record(a_record(last, path="evidence.json"))
        assert verify(tmp_path).returncode == 1


async def test_no_run_goes_on_when_its_server_has_stopped_or_another_one_began(tmp_path: Path) -> None:
    stopped, killed = tmp_path / "stopped", tmp_path / "killed"
    stopped.mkdir()
    with a_bench(stopped) as bench:
        await bench.sandbox()._prepare(a_job_call(), a_job(), RUN)
        await bench.audit.record(a_record(RecordKind.MCP_CONTAINER_EXEC))
        # What is on the disk now is what a server that is killed leaves.
        shutil.copytree(stopped, killed)
    assert verify(stopped).returncode == 1
    assert verify(killed).returncode == 0
    with a_bench(killed):
        assert "knows of no such run that goes on" in verify(killed).stdout


@pytest.mark.promise("evidence:any-change-is-found")
@pytest.mark.parametrize("begun", [RecordKind.MCP_CONTAINER_SPAWN, RecordKind.MCP_CONTAINER_EXEC])
async def test_a_run_that_began_and_is_gone_without_evidence_is_missing(tmp_path: Path, begun: RecordKind) -> None:
    with a_bench(tmp_path) as bench:
        await bench.audit.record(a_record(begun))
        assert verify(tmp_path).returncode == 0, "it goes on, and may have begun after the look at the disk"
    with a_bench(tmp_path) as bench:
        checked = verify(tmp_path)
        assert (checked.returncode, f"run {RUN} is missing" in checked.stdout) == (1, True)
        await bench.audit.record(a_record(RecordKind.RUN_REMOVED))
        assert verify(tmp_path).returncode == 0


def meanwhile(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Between the look at the disk and the reading of the log."""

    def read_log(log: Path, key_file: Path | None) -> LogFacts:
        act()
        return evidence_log.read_log(log, key_file)

    monkeypatch.setattr(evidence_commands, "read_log", read_log)


async def test_a_run_that_ends_while_it_is_looked_at_is_no_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with a_bench(tmp_path) as bench:
        await bench.sandbox().run(a_job_call(), a_job(), ignore_progress)
        ended, begun = bench.run_directory / "evidence.json", bench.run_directory / "run.json"
        ended.rename(begun)
        assert verify(tmp_path).returncode == 1
        meanwhile(monkeypatch, lambda: begun.rename(ended))
        checked = verify(tmp_path)
    assert checked.returncode == 0, checked.stdout


async def test_evidence_that_is_written_and_not_yet_recorded_is_of_a_run_that_goes_on(tmp_path: Path) -> None:
    with a_bench(tmp_path) as bench:
        await bench.sandbox()._prepare(a_job_call(), a_job(), RUN)
        await bench.audit.record(a_record(RecordKind.MCP_CONTAINER_EXEC))
        (bench.run_directory / "evidence.json").write_text("{}")
        assert verify(tmp_path).returncode == 0
        await bench.audit.record(a_record(RecordKind.TOOL_FINISHED))
        assert verify(tmp_path).returncode == 1


async def test_evidence_that_was_recorded_cannot_be_replaced_with_a_later_record(tmp_path: Path) -> None:
    with a_bench(tmp_path) as bench:
        await bench.sandbox().run(a_job_call(), a_job(), ignore_progress)
        place = bench.run_directory / "evidence.json"
        place.write_bytes(place.read_bytes() + b" ")
        forged = hashlib.sha256(place.read_bytes()).hexdigest()
        await bench.audit.record(a_record(RecordKind.MCP_FILE_WRITE, path="evidence.json", sha256=forged))
        assert "not the one that the audit log recorded" in verify(tmp_path).stdout


async def test_a_run_that_is_removed_while_it_is_looked_at_is_no_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with a_bench(tmp_path) as bench:
        await bench.sandbox().run(a_job_call(), a_job(), ignore_progress)
        (bench.run_directory / "output" / "a" / "b.txt").unlink()
        assert verify(tmp_path).returncode == 1
        await bench.audit.record(a_record(RecordKind.RUN_REMOVED))
        meanwhile(monkeypatch, lambda: bench.store.remove(RUN))
        checked = verify(tmp_path)
    assert checked.returncode == 0, checked.stdout


async def test_a_run_that_comes_while_others_are_looked_at_is_not_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with a_bench(tmp_path) as bench:
        await bench.sandbox().run(a_job_call(), a_job(), ignore_progress)
        bench.run_directory.rename(tmp_path / "aside")
        assert verify(tmp_path).returncode == 1
        meanwhile(monkeypatch, lambda: (tmp_path / "aside").rename(bench.run_directory))
        checked = verify(tmp_path)
    assert checked.returncode == 0, checked.stdout


async def test_a_link_in_the_place_of_a_run_does_not_pass_for_it(tmp_path: Path) -> None:
    with a_bench(tmp_path) as bench:
        await bench.sandbox().run(a_job_call(), a_job(), ignore_progress)
        shutil.move(bench.run_directory, tmp_path / "elsewhere")
        bench.run_directory.symlink_to(tmp_path / "elsewhere")
        assert f"run {RUN} is missing" in verify(tmp_path).stdout


async def test_the_end_of_a_lost_run_is_sound(tmp_path: Path) -> None:
    await begin_and_lose(tmp_path)
    with a_bench(tmp_path) as bench:
        await bench.upkeep().begin()
        checked = verify(tmp_path)
    assert checked.returncode == 0, checked.stdout
    assert "incomplete: server_lost" in checked.stdout


@pytest.mark.promise("evidence:any-change-is-found")
@pytest.mark.parametrize(
    ("name", "words"), [("policy_digest", "policy digest"), ("image", "image"), ("subject", "subject")]
)
async def test_what_was_changed_before_a_lost_run_got_its_evidence_is_found(
    tmp_path: Path, name: str, words: str
) -> None:
    await begin_and_lose(tmp_path, **{name: "0" * 64})
    with a_bench(tmp_path) as bench:
        await bench.upkeep().begin()
        checked = verify(tmp_path)
    assert checked.returncode == 1
    assert f"its {words} is not the one in the audit log" in checked.stdout


async def test_a_lost_run_that_only_has_a_container_is_held_against_that_record(tmp_path: Path) -> None:
    with a_bench(tmp_path) as bench:
        run = await bench.sandbox()._prepare(a_job_call(), a_job(), RUN)
        await bench.audit.record(a_record(RecordKind.MCP_CONTAINER_SPAWN, image=run.facts.image, subject="bob"))
    with a_bench(tmp_path) as bench:
        await bench.upkeep().begin()
        assert "its subject is not the one in the audit log" in verify(tmp_path).stdout


async def test_a_subject_that_the_log_does_not_write_out_is_no_difference(tmp_path: Path) -> None:
    subject = "https://ann@example"
    with a_bench(tmp_path) as bench:
        run = await bench.sandbox()._prepare(a_job_call(), a_job(), RUN)
        image = run.facts.image
        await bench.audit.record(a_record(RecordKind.MCP_CONTAINER_EXEC, image=image, subject=subject))
    written = bench.run_directory / "run.json"
    written.write_text(json.dumps({**json.loads(written.read_bytes()), "subject": subject}))
    with a_bench(tmp_path) as bench:
        await bench.upkeep().begin()
        checked = verify(tmp_path)
    assert b"withheld" in (tmp_path / "audit.jsonl").read_bytes()
    assert checked.returncode == 0, checked.stdout
