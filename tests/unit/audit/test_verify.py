"""Attacks on a log, each detected by `verify` at its place."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from browser_shell.audit.chain import add_signature, compose, digest_of, merkle_root, signed_part
from browser_shell.audit.signing import PublicKey, SigningKey
from browser_shell.audit.verify import verify_log
from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.core.records import RecordKind
from support.audit_logs import a_log, a_record, a_writer, checked, raw_lines

Lines = list[bytes]
TARGET = 7
"""Index of the attacked line: record 8, which is not a checkpoint."""


def rechained(lines: Lines, start: int) -> Lines:
    """Repair links, numbers and roots from `start` on, as an attacker without the key can."""
    fixed = lines[:start]
    for line in lines[start:]:
        entry = json.loads(line)
        facts = {name: value for name, value in entry.items() if name not in {"prev", "seq", "kind", "time"}}
        if entry["kind"] == "CHECKPOINT":
            first = max(at for at, before in enumerate(fixed) if at == 0 or b'"kind":"CHECKPOINT"' in before)
            leaves = [bytes.fromhex(digest_of(before)) for before in fixed[first:]]
            facts |= {"first": first + 1, "root": merkle_root(leaves)}
        prev = digest_of(fixed[-1]) if fixed else "0" * 64
        fixed.append(compose(prev=prev, seq=len(fixed) + 1, kind=entry["kind"], time=entry["time"], members=facts))
    return fixed


def flipped(lines: Lines) -> Lines:
    line = lines[TARGET]
    return [*lines[:TARGET], line.replace(b'"local"', b'"lacol"'), *lines[TARGET + 1 :]]


def deleted(lines: Lines) -> Lines:
    return lines[:TARGET] + lines[TARGET + 1 :]


def inserted(lines: Lines) -> Lines:
    before = json.loads(lines[TARGET - 1])
    forged = compose(
        prev=digest_of(lines[TARGET - 1]),
        seq=before["seq"] + 1,
        kind="TOOL_FINISHED",
        time=before["time"],
        members={"subject": "ann"},
    )
    return [*lines[:TARGET], forged, *lines[TARGET:]]


def swapped(lines: Lines) -> Lines:
    return [*lines[: TARGET - 1], lines[TARGET], lines[TARGET - 1], *lines[TARGET + 1 :]]


def duplicated(lines: Lines) -> Lines:
    return [*lines[: TARGET + 1], lines[TARGET], *lines[TARGET + 1 :]]


def foreign_line(lines: Lines) -> Lines:
    return [*lines[:TARGET], b"not json\n", *lines[TARGET:]]


def cut_tail(lines: Lines) -> Lines:
    return lines[:-3]


def cut_last(lines: Lines) -> Lines:
    return lines[:-1]


def emptied(lines: Lines) -> Lines:
    return []


def rewritten(lines: Lines) -> Lines:
    return rechained(flipped(lines), TARGET)


def deleted_and_rechained(lines: Lines) -> Lines:
    return rechained(deleted(lines), TARGET)


def swapped_and_rechained(lines: Lines) -> Lines:
    return rechained(swapped(lines), TARGET - 1)


ATTACKS: list[tuple[Callable[[Lines], Lines], int, int]] = [
    # attack, line of the first problem, number of its record
    (flipped, 9, 9),
    (deleted, 8, 9),
    (inserted, 9, 8),
    (swapped, 7, 8),
    (duplicated, 9, 8),
    (foreign_line, 8, 8),
    (cut_tail, 0, 24),
    (cut_last, 0, 26),
    (emptied, 0, 0),
    (rewritten, 9, 9),
    (deleted_and_rechained, 8, 8),
    (swapped_and_rechained, 9, 9),
]


@pytest.mark.promise("audit:changes-are-found")
@pytest.mark.parametrize(("attack", "line", "sequence"), ATTACKS, ids=lambda value: getattr(value, "__name__", ""))
async def test_a_change_is_detected_at_its_place(
    tmp_path: Path, attack: Callable[[Lines], Lines], line: int, sequence: int
) -> None:
    path = await a_log(tmp_path)
    assert checked(path).sound
    path.write_bytes(b"".join(attack(raw_lines(path))))
    problem = checked(path).problems[0]
    assert (problem.file, problem.line, problem.sequence) == ("audit.jsonl", line, sequence)


@pytest.mark.promise("audit:changes-are-found")
async def test_a_change_of_any_byte_is_detected(tmp_path: Path) -> None:
    path = await a_log(tmp_path, records=3, checkpoint_records=2)
    whole, key = path.read_bytes(), PublicKey.read(path.with_suffix(".pub"))
    for at in range(len(whole)):
        changed = bytearray(whole)
        changed[at] ^= 1
        path.write_bytes(changed)
        assert not verify_log(path, key=key).sound, f"a change of byte {at} is not detected"


@pytest.mark.promise("audit:changes-are-found")
async def test_any_cut_of_a_closed_log_is_detected_and_prevents_the_start(tmp_path: Path) -> None:
    path = await a_log(tmp_path, records=3, checkpoint_records=2)
    whole, key = path.read_bytes(), PublicKey.read(path.with_suffix(".pub"))
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        assert not verify_log(path, key=key).sound, f"a cut to {size} bytes is not detected"
        with pytest.raises(ConfigurationInvalid):
            a_writer(path)
        assert path.stat().st_size == size, "a damaged log must not be modified"


@pytest.mark.parametrize("name", ["audit.head", "audit.key"])
async def test_a_missing_head_or_key_prevents_the_start(tmp_path: Path, name: str) -> None:
    path = await a_log(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(ConfigurationInvalid):
        a_writer(path)
    assert not (tmp_path / name).exists()


async def test_a_missing_head_is_detected(tmp_path: Path) -> None:
    path = await a_log(tmp_path)
    (tmp_path / "audit.head").unlink()
    assert checked(path).problems[0].file == "audit.head"


@pytest.mark.promise("audit:changes-are-found")
async def test_a_cut_with_an_older_head_is_detected_by_a_known_checkpoint(tmp_path: Path) -> None:
    path = await a_log(tmp_path)
    latest = (tmp_path / "audit.head").read_bytes()
    lines = raw_lines(path)
    end = max(at for at, line in enumerate(lines[:-1]) if b'"kind":"CHECKPOINT"' in line)
    path.write_bytes(b"".join(lines[: end + 1]))
    (tmp_path / "audit.head").write_bytes(lines[end])
    assert checked(path).sound
    assert checked(path, checkpoints=[latest]).problems[0].sequence == end + 1


@pytest.mark.promise("audit:changes-are-found")
async def test_a_log_signed_with_another_key_is_detected(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "ours").mkdir()
    theirs, ours = await a_log(tmp_path / "theirs"), await a_log(tmp_path / "ours")
    verdict = verify_log(theirs, key=PublicKey.read(ours.with_suffix(".pub")))
    assert not verdict.sound


@pytest.mark.promise("audit:changes-are-found")
async def test_a_log_rewritten_with_the_key_is_detected_by_a_known_checkpoint(tmp_path: Path) -> None:
    path = await a_log(tmp_path)
    kept = (tmp_path / "audit.head").read_bytes()
    for entry in (path, path.with_suffix(".head")):
        entry.unlink()
    await a_log(tmp_path)
    assert checked(path).sound
    assert not checked(path, checkpoints=[kept]).sound


async def test_records_of_another_log_with_the_same_key_are_detected(tmp_path: Path) -> None:
    first = await a_log(tmp_path, records=3)
    lines = raw_lines(first)
    first.unlink()
    first.with_suffix(".head").unlink()
    second = await a_log(tmp_path, records=3)
    own = raw_lines(second)
    second.write_bytes(b"".join([*own[:2], *lines[2:]]))
    assert not checked(second).sound


async def rotated_log(tmp_path: Path) -> list[Path]:
    path = tmp_path / "audit.jsonl"
    with a_writer(path, rotate_bytes=3000) as audit:
        for number in range(40):
            await audit.record(a_record(call_id=f"c{number}"))
    return [*sorted(tmp_path.glob("audit-*.jsonl")), path]


@pytest.mark.parametrize("which", [0, 1, -2, -1])
async def test_a_missing_file_is_detected(tmp_path: Path, which: int) -> None:
    files = await rotated_log(tmp_path)
    files[which].unlink()
    assert not checked(tmp_path / "audit.jsonl").sound


async def test_swapped_files_are_detected(tmp_path: Path) -> None:
    files = await rotated_log(tmp_path)
    first, second = files[0].read_bytes(), files[1].read_bytes()
    files[0].write_bytes(second)
    files[1].write_bytes(first)
    assert checked(tmp_path / "audit.jsonl").problems[0].file == "audit-000001.jsonl"


async def test_a_truncated_full_file_is_detected(tmp_path: Path) -> None:
    files = await rotated_log(tmp_path)
    os.truncate(files[0], files[0].stat().st_size - 1)
    assert checked(tmp_path / "audit.jsonl").problems[0].file == "audit-000001.jsonl"


async def test_a_running_log_is_sound_and_reports_unsigned_records(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    with a_writer(path) as audit:
        for _ in range(3):
            await audit.record(a_record(RecordKind.SANDBOX_EXEC))
        copy = Path(shutil.copytree(tmp_path, tmp_path.with_name("copy"))) / "audit.jsonl"
    with copy.open("ab") as file:
        file.write(b'{"prev":"')
    verdict = checked(copy)
    assert (verdict.sound, verdict.unsigned_records, verdict.unfinished_bytes) == (True, 3, 9)


async def test_a_linked_line_that_is_not_json_is_detected(tmp_path: Path) -> None:
    path = await a_log(tmp_path)
    lines = raw_lines(path)
    forged = b'{"prev":"%b","seq":%d,"kind":"X' % (digest_of(lines[-1]).encode(), len(lines) + 1)
    path.write_bytes(b"".join([*lines, forged + b"\n"]))
    assert checked(path).problems[0].line == len(lines) + 1


@pytest.mark.parametrize("wrong", [{"root": "0" * 64}, {"first": 1}, {"log": "another"}])
async def test_a_signed_checkpoint_with_wrong_contents_is_detected(tmp_path: Path, wrong: dict[str, str | int]) -> None:
    path = await a_log(tmp_path)
    lines = raw_lines(path)
    entry = json.loads(lines[-1])
    facts = {name: entry[name] for name in ("log", "key", "first", "root")} | wrong
    unsigned = compose(prev=entry["prev"], seq=entry["seq"], kind="CHECKPOINT", time=entry["time"], members=facts)
    key = SigningKey.read_if_exists(path.with_suffix(".key"))
    assert key is not None
    signature = key.sign(signed_part(unsigned))
    lines[-1] = add_signature(unsigned, signature)
    path.write_bytes(b"".join(lines))
    path.with_suffix(".head").write_bytes(lines[-1])
    assert checked(path).problems[0].sequence == entry["seq"]


async def test_another_spelling_of_a_signature_is_detected(tmp_path: Path) -> None:
    path = await a_log(tmp_path)
    lines = raw_lines(path)
    body, mark, signature = lines[-1].rpartition(b'"signature":"')
    lines[-1] = body + mark + signature.upper()
    path.write_bytes(b"".join(lines))
    path.with_suffix(".head").write_bytes(lines[-1])
    assert not checked(path).sound
