from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from browser_shell.audit.query import Selection, check_export, export_records, follow_entries, to_json_line
from browser_shell.audit.signing import PublicKey
from support.audit_logs import a_busy_log, a_record, a_writer


async def test_follow_continues_in_the_next_file(path: Path) -> None:
    with a_writer(path, rotate_bytes=1500) as audit:
        pauses = iter(range(1000))

        def pause() -> None:
            number = next(pauses)
            if number % 2 == 0:
                portal.call(audit.record, a_record(call_id=f"c{number // 2}"))

        def follow() -> list[str]:
            call_ids: list[str] = []
            following = follow_entries(path, pause=pause)
            while len(call_ids) < 12:
                entry = next(following)
                if entry.text("call_id"):
                    call_ids.append(entry.text("call_id"))
            return call_ids

        async with anyio.from_thread.BlockingPortal() as portal:
            with anyio.fail_after(5):
                call_ids = await anyio.to_thread.run_sync(follow)
    assert call_ids == [f"c{number}" for number in range(12)]
    assert (path.parent / "audit-000001.jsonl").exists()


def key_of(path: Path) -> PublicKey:
    return PublicKey.read(path.with_suffix(".pub"))


def exported(path: Path, selection: Selection) -> list[str]:
    return [to_json_line(item) for item in export_records(path, selection, key=key_of(path))]


def problems(lines: list[str], key: PublicKey) -> list[str]:
    return [problem.description for problem in check_export([line.encode() for line in lines], key=key)[1]]


@pytest.mark.promise("audit:exports-are-provable")
async def test_an_export_proves_its_records_without_the_others(tmp_path: Path) -> None:
    path = await a_busy_log(tmp_path)
    lines = exported(path, Selection(subject="bob"))
    assert '"ann' not in "".join(lines).replace("\\", "")
    assert check_export([line.encode() for line in lines], key=key_of(path)) == (15, [])


@pytest.mark.promise("audit:exports-are-provable")
@pytest.mark.parametrize(
    ("old", "new"),
    [("bob", "ann"), ("POLICY_BLOCKED", "POLICY_ALLOWED"), ('proof":["', 'proof":["L'), ("first", "fist")],
)
async def test_a_changed_export_is_detected(tmp_path: Path, old: str, new: str) -> None:
    path = await a_busy_log(tmp_path)
    header, *lines = exported(path, Selection(subject="bob"))
    changed = "".join(lines).replace(old, new, 1)
    assert changed != "".join(lines)
    assert problems([header, *changed.splitlines(keepends=True)], key_of(path))


@pytest.mark.promise("audit:exports-are-provable")
async def test_an_export_is_not_verified_with_its_own_key(tmp_path: Path) -> None:
    (tmp_path / "ours").mkdir()
    (tmp_path / "theirs").mkdir()
    ours, theirs = await a_busy_log(tmp_path / "ours"), await a_busy_log(tmp_path / "theirs")
    lines = exported(theirs, Selection())
    assert not problems(lines, key_of(theirs))
    assert problems(lines, key_of(ours))


async def test_records_without_a_checkpoint_are_reported_as_not_proven(path: Path) -> None:
    with a_writer(path) as audit:
        await audit.record(a_record())
        lines = exported(path, Selection(subject="local"))
    assert problems(lines, key_of(path)) == ["no checkpoint covers it yet: export again later"]
