"""What an attacker can do to a log, and that `verify` sees it and names the place."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from browser_shell.audit.chain import add_signature, compose, digest_of, merkle_root, signed_part
from browser_shell.audit.log import JsonLinesAudit
from browser_shell.audit.signing import PublicKey, SigningKey
from browser_shell.audit.verify import verify_log
from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.core.records import RecordKind
from support.audit_logs import a_log, a_record, checked, raw_lines
from support.fakes import FakeClock

Lines = list[bytes]
TARGET = 7
"""Index of the line that attacks aim at: the record with number 8, which is no checkpoint."""


def rechained(lines: Lines, start: int) -> Lines:
    """Links, numbers and roots made good again from `start` on, as an attacker without the key can."""
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


def foreign(lines: Lines) -> Lines:
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
    # what is done, the line that verify names first, the number of its record
    (flipped, 9, 9),
    (deleted, 8, 9),
    (inserted, 9, 8),
    (swapped, 7, 8),
    (duplicated, 9, 8),
    (foreign, 8, 8),
    (cut_tail, 0, 24),
    (cut_last, 0, 26),
    (emptied, 0, 0),
    (rewritten, 9, 9),
    (deleted_and_rechained, 8, 8),
    (swapped_and_rechained, 9, 9),
]


@pytest.mark.promise("audit:changes-are-found")
@pytest.mark.parametrize(("attack", "line", "sequence"), ATTACKS, ids=lambda value: getattr(value, "__name__", ""))
async def test_a_change_is_found_and_its_place_named(
    tmp_path: Path, attack: Callable[[Lines], Lines], line: int, sequence: int
) -> None:
    path = await a_log(tmp_path)
    assert checked(path).sound
    path.write_bytes(b"".join(attack(raw_lines(path))))
    problem = checked(path).problems[0]
    assert (problem.file, problem.line, problem.sequence) == ("audit.jsonl", line, sequence)


@pytest.mark.promise("audit:changes-are-found")
async def test_every_single_byte_counts(tmp_path: Path) -> None:
    path = await a_log(tmp_path, records=3, checkpoint_records=2)
    whole, key = path.read_bytes(), PublicKey.read(path.with_suffix(".pub"))
    for at in range(len(whole)):
        changed = bytearray(whole)
        changed[at] ^= 1
        path.write_bytes(changed)
        assert not verify_log(path, key=key).sound, f"byte {at} can be changed unseen"


@pytest.mark.promise("audit:changes-are-found")
async def test_every_cut_of_a_closed_log_is_found_and_stops_the_next_start(tmp_path: Path) -> None:
    path = await a_log(tmp_path, records=3, checkpoint_records=2)
    whole, key = path.read_bytes(), PublicKey.read(path.with_suffix(".pub"))
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        assert not verify_log(path, key=key).sound, f"a cut to {size} bytes is not seen"
        with pytest.raises(ConfigurationInvalid):
            JsonLinesAudit(path=path, clock=FakeClock())
        assert path.stat().st_size == size, "evidence must stay as it was found"


@pytest.mark.parametrize("name", ["audit.head", "audit.key"])
async def test_a_log_without_its_head_or_key_does_not_start(tmp_path: Path, name: str) -> None:
    path = await a_log(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(ConfigurationInvalid):
        JsonLinesAudit(path=path, clock=FakeClock())
    assert not (tmp_path / name).exists()


async def test_a_missing_head_is_found(tmp_path: Path) -> None:
    path = await a_log(tmp_path)
    (tmp_path / "audit.head").unlink()
    assert checked(path).problems[0].file == "audit.head"


@pytest.mark.promise("audit:changes-are-found")
async def test_an_older_head_hides_a_cut_only_from_those_without_a_checkpoint_of_their_own(tmp_path: Path) -> None:
    path = await a_log(tmp_path)
    latest = (tmp_path / "audit.head").read_bytes()
    lines = raw_lines(path)
    end = max(at for at, line in enumerate(lines[:-1]) if b'"kind":"CHECKPOINT"' in line)
    path.write_bytes(b"".join(lines[: end + 1]))
    (tmp_path / "audit.head").write_bytes(lines[end])
    assert checked(path).sound
    assert checked(path, known=[latest]).problems[0].sequence == end + 1


@pytest.mark.promise("audit:changes-are-found")
async def test_a_log_signed_with_another_key_is_found(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "ours").mkdir()
    theirs, ours = await a_log(tmp_path / "theirs"), await a_log(tmp_path / "ours")
    verdict = verify_log(theirs, key=PublicKey.read(ours.with_suffix(".pub")))
    assert not verdict.sound


@pytest.mark.promise("audit:changes-are-found")
async def test_history_rewritten_with_the_key_is_found_by_a_checkpoint_kept_elsewhere(tmp_path: Path) -> None:
    path = await a_log(tmp_path)
    kept = (tmp_path / "audit.head").read_bytes()
    for entry in (path, path.with_suffix(".head")):
        entry.unlink()
    await a_log(tmp_path)
    assert checked(path).sound
    assert not checked(path, known=[kept]).sound


async def test_a_checkpoint_of_another_log_with_the_same_key_does_not_fit(tmp_path: Path) -> None:
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
    with JsonLinesAudit(path=path, clock=FakeClock(), rotate_bytes=3000) as audit:
        for number in range(40):
            await audit.record(a_record(call_id=f"c{number}"))
    return [*sorted(tmp_path.glob("audit-*.jsonl")), path]


@pytest.mark.parametrize("which", [0, 1, -2, -1])
async def test_a_missing_file_is_found(tmp_path: Path, which: int) -> None:
    files = await rotated_log(tmp_path)
    files[which].unlink()
    assert not checked(tmp_path / "audit.jsonl").sound


async def test_swapped_files_are_found(tmp_path: Path) -> None:
    files = await rotated_log(tmp_path)
    first, second = files[0].read_bytes(), files[1].read_bytes()
    files[0].write_bytes(second)
    files[1].write_bytes(first)
    assert checked(tmp_path / "audit.jsonl").problems[0].file == "audit-000001.jsonl"


async def test_a_full_file_without_an_end_is_found(tmp_path: Path) -> None:
    files = await rotated_log(tmp_path)
    os.truncate(files[0], files[0].stat().st_size - 1)
    assert checked(tmp_path / "audit.jsonl").problems[0].file == "audit-000001.jsonl"


async def test_a_running_log_is_sound_and_says_what_is_not_signed_yet(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    with JsonLinesAudit(path=path, clock=FakeClock()) as audit:
        for _ in range(3):
            await audit.record(a_record(RecordKind.SANDBOX_EXEC))
        copy = Path(shutil.copytree(tmp_path, tmp_path.with_name("copy"))) / "audit.jsonl"
    with copy.open("ab") as file:
        file.write(b'{"prev":"')
    verdict = checked(copy)
    assert (verdict.sound, verdict.unsigned_records, verdict.unfinished_bytes) == (True, 3, 9)


async def test_a_line_that_follows_but_is_no_record_is_found(tmp_path: Path) -> None:
    path = await a_log(tmp_path)
    lines = raw_lines(path)
    forged = b'{"prev":"%b","seq":%d,"kind":"X' % (digest_of(lines[-1]).encode(), len(lines) + 1)
    path.write_bytes(b"".join([*lines, forged + b"\n"]))
    assert checked(path).problems[0].line == len(lines) + 1


@pytest.mark.parametrize("wrong", [{"root": "0" * 64}, {"first": 1}, {"log": "another"}])
async def test_a_signed_checkpoint_that_does_not_cover_its_records_is_found(
    tmp_path: Path, wrong: dict[str, str | int]
) -> None:
    path = await a_log(tmp_path)
    lines = raw_lines(path)
    entry = json.loads(lines[-1])
    facts = {name: entry[name] for name in ("log", "key", "first", "root")} | wrong
    unsigned = compose(prev=entry["prev"], seq=entry["seq"], kind="CHECKPOINT", time=entry["time"], members=facts)
    signature = SigningKey.read(path.with_suffix(".key")).sign(signed_part(unsigned))
    lines[-1] = add_signature(unsigned, signature)
    path.write_bytes(b"".join(lines))
    path.with_suffix(".head").write_bytes(lines[-1])
    assert checked(path).problems[0].sequence == entry["seq"]


async def test_a_second_spelling_of_a_signature_is_found(tmp_path: Path) -> None:
    path = await a_log(tmp_path)
    lines = raw_lines(path)
    body, mark, signature = lines[-1].rpartition(b'"signature":"')
    lines[-1] = body + mark + signature.upper()
    path.write_bytes(b"".join(lines))
    path.with_suffix(".head").write_bytes(lines[-1])
    assert not checked(path).sound


def test_a_key_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "no.pub").write_text("nonsense", encoding="ascii")
    with pytest.raises(ConfigurationInvalid):
        PublicKey.read(tmp_path / "no.pub")
    with pytest.raises(ConfigurationInvalid):
        PublicKey.read(tmp_path / "absent.pub")
    key = tmp_path / "no.key"
    key.write_text("nonsense", encoding="ascii")
    key.chmod(0o600)
    with pytest.raises(ConfigurationInvalid):
        SigningKey.read(key)
