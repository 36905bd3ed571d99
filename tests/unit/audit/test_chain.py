"""The format of the log: files of an earlier version verify, and values contain no secrets."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from browser_shell.audit.log import JsonLinesAudit
from browser_shell.audit.query import check_export
from browser_shell.audit.signing import PublicKey
from browser_shell.core.records import AuditRecord, RecordKind, SecretText
from support.audit_logs import a_record, a_writer, checked, entries, raw_lines
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


@pytest.mark.promise("audit:no-secrets")
async def test_typed_text_becomes_its_length_and_a_keyed_hash(tmp_path: Path) -> None:
    hashes = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        path = tmp_path / name / "audit.jsonl"
        with a_writer(path) as audit:
            for _ in range(2):
                await audit.record(
                    AuditRecord(
                        kind=RecordKind.SANDBOX_EXEC,
                        call_id="c1",
                        subject="local",
                        tool="browser-shell",
                        text=SecretText("hunter2"),
                    )
                )
        typed = [entry for entry in entries(path) if "text_hmac" in entry]
        assert [entry["text_length"] for entry in typed] == [7, 7]
        assert typed[0]["text_hmac"] == typed[1]["text_hmac"]
        hashes.append(typed[0]["text_hmac"])
        assert b"hunter2" not in path.read_bytes()
    assert hashes[0] != hashes[1]


@pytest.mark.promise("audit:no-secrets")
@pytest.mark.parametrize("field", ["call_id", "subject", "tool", "session_id", "subcommand", "host", "error", "path"])
@pytest.mark.parametrize(
    "secret",
    [
        "https://example.com/?token=s3cretvalue",
        "/a?b=s3cretvalue",
        "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJzM2NyZXQifQ.s3cretvalue",
        "Bearer s3cretvalue",
        "Cookie: sid=s3cretvalue",
        "https://me:s3cretvalue@example.com",
    ],
)
async def test_a_secret_in_any_field_is_withheld(path: Path, field: str, secret: str) -> None:
    facts = {"call_id": "c1", "subject": "local", "tool": "browser-shell", field: secret}
    with a_writer(path) as audit:
        await audit.record(AuditRecord(kind=RecordKind.MCP_TOOL_CALL, **facts))  # type: ignore[arg-type] # strings
    assert b"s3cretvalue" not in path.read_bytes()
    assert entries(path)[2][field] == f"[withheld: {len(secret)} characters]"


async def test_plain_values_are_kept_and_long_values_are_cut(path: Path) -> None:
    plain = AuditRecord(
        kind=RecordKind.MCP_TOOL_CALL,
        call_id="c1",
        subject="ann@example.com; team=a" * 40,
        tool='x\n{"seq":1}',
        host="[2001:db8::1]:443",
        image="sha256:" + "a" * 64,
        trace_id="4bf92f3577b34da6a3ce929d0e0e4736",
    )
    with a_writer(path) as audit:
        await audit.record(plain)
    written = entries(path)[2]
    assert (written["tool"], written["host"], written["image"]) == (plain.tool, plain.host, plain.image)
    assert written["trace_id"] == plain.trace_id
    assert len(raw_lines(path)) == 5
