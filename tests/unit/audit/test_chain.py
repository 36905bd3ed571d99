"""The format of the log: files of an earlier version verify, and a newer server continues them."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from browser_shell.audit.export import check_export
from browser_shell.audit.log import JsonLinesAudit
from browser_shell.audit.signing import PublicKey
from browser_shell.core.records import RecordKind, SecretText
from support.audit_logs import a_record, checked, entries, raw_lines
from support.fakes import FakeClock

STORED = Path(__file__).parents[2] / "data" / "audit_log"
SEED = b"audit log test data, not secret!"


@pytest.fixture
def stored_log(tmp_path: Path) -> Path:
    """A copy of the stored log with its signing key."""
    shutil.copytree(STORED, tmp_path, dirs_exist_ok=True)
    path = tmp_path / "audit.jsonl"
    key = path.with_suffix(".key")
    key.touch(mode=0o600)
    key.write_bytes(
        Ed25519PrivateKey.from_private_bytes(SEED).private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return path


def test_a_log_of_an_earlier_version_verifies(stored_log: Path) -> None:
    verdict = checked(stored_log)
    assert (verdict.problems, verdict.records, verdict.files, verdict.checkpoints) == ([], 16, 2, 4)


def test_an_export_of_an_earlier_version_verifies(stored_log: Path) -> None:
    lines = raw_lines(stored_log.with_name("ann.export.jsonl"))
    assert check_export(lines, key=PublicKey.read(stored_log.with_suffix(".pub"))) == (7, [])


async def test_a_log_of_an_earlier_version_is_continued_in_the_same_format(stored_log: Path) -> None:
    before = stored_log.read_bytes()
    with JsonLinesAudit(path=stored_log, clock=FakeClock(), policy_digest="dddddddd") as audit:
        await audit.record(replace(a_record(RecordKind.SANDBOX_EXEC), text=SecretText("hunter2")))
    assert stored_log.read_bytes().startswith(before)
    verdict = checked(stored_log)
    assert (verdict.problems, verdict.records) == ([], 21)
    earlier = next(entry for entry in entries(stored_log.with_name("audit-000001.jsonl")) if "text_hmac" in entry)
    later = next(entry for entry in entries(stored_log) if "text_hmac" in entry)
    assert (later["text_length"], later["text_hmac"]) == (earlier["text_length"], earlier["text_hmac"])
