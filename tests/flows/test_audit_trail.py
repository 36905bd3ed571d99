"""Audit records of calls through the whole server."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from browser_shell.audit.log import JsonLinesAudit
from support.audit_logs import checked, entries
from support.fakes import FakeClock, FakePolicy, RecordingSandbox, a_pipeline
from support.wire import Connect, call_params


@pytest.mark.promise("audit:every-call-leaves-a-trail")
async def test_calls_leave_a_log_that_verifies(connect: Connect, tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    with JsonLinesAudit(path=path, clock=FakeClock(), policy_digest="d1") as audit:
        policy = FakePolicy(blocked_hosts=frozenset({"bad.example"}))
        async with connect(a_pipeline(audit=audit, policy=policy)) as client:
            for url in ("https://good.example/?token=s3cret", "https://bad.example/"):
                await client.request("tools/call", call_params("open", url))
    written = entries(path)
    kinds = [entry["kind"] for entry in written if not str(entry["kind"]).startswith(("AUDIT", "CHECK"))]
    assert kinds == [
        *("MCP_TOOL_CALL", "SANDBOX_EXEC", "TOOL_FINISHED"),
        *("MCP_TOOL_CALL", "POLICY_BLOCKED", "TOOL_FINISHED"),
    ]
    assert {entry["policy_digest"] for entry in written if "call_id" in entry} == {"d1"}
    assert "s3cret" not in json.dumps(written)
    assert checked(path).sound


@pytest.mark.promise("audit:no-record-no-run")
async def test_nothing_runs_while_the_disk_fails(
    connect: Connect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(file: int) -> None:
        raise OSError(errno.EIO, "broken")

    path, sandbox = tmp_path / "audit.jsonl", RecordingSandbox()
    with JsonLinesAudit(path=path, clock=FakeClock()) as audit:
        async with connect(a_pipeline(audit=audit, sandbox=sandbox)) as client:
            with monkeypatch.context() as patched:
                patched.setattr(os, "fdatasync", broken)
                await client.request("tools/call", call_params("open", "https://good.example/"))
            assert sandbox.ran == []
            await client.request("tools/call", call_params("open", "https://good.example/"))
            assert len(sandbox.ran) == 1
    errors = [entry.get("error") for entry in entries(path) if entry["kind"] == "TOOL_FINISHED"]
    assert errors == ["AUDIT_UNAVAILABLE", None]
    assert checked(path).sound


PARENT, OTHER = "0af7651916cd43dd8448eb211c80319c", "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.mark.parametrize(
    ("meta", "header", "found"),
    [
        (f"00-{PARENT}-b7ad6b7169203331-01", None, PARENT),
        (None, f"00-{PARENT}-b7ad6b7169203331-01", PARENT),
        (f"00-{PARENT}-b7ad6b7169203331-01", f"00-{OTHER}-b7ad6b7169203331-01", PARENT),
        ("s3cret", f"00-{OTHER}-b7ad6b7169203331-01", OTHER),
        ("s3cret", "00-s3cret-b7ad6b7169203331-01", None),
        (7, None, None),
    ],
)
async def test_records_contain_only_the_trace_id_of_a_traceparent(
    connect: Connect, tmp_path: Path, meta: object, header: str | None, found: str | None
) -> None:
    path = tmp_path / "audit.jsonl"
    with JsonLinesAudit(path=path, clock=FakeClock()) as audit:
        async with connect(a_pipeline(audit=audit)) as client:
            headers, content = client.build_request("tools/call", call_params("snapshot"))
            if meta is not None:
                content["params"]["_meta"] = {**content["params"].get("_meta", {}), "traceparent": meta}
            extra = {"traceparent": header} if header else {}
            await client.http.post("/mcp", headers={**headers, **extra}, json=content)
    assert {entry.get("trace_id") for entry in entries(path) if "call_id" in entry} == {found}
    assert "s3cret" not in path.read_text()
