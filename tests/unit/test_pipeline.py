from __future__ import annotations

import json
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import anyio
import pytest

from browser_shell import pipeline as pipeline_module
from browser_shell.core.calls import Attachment, BrowserCommand, CommandResult, Principal, ToolCall
from browser_shell.core.errors import (
    ActFailed,
    AuditUnavailable,
    BrowserShellError,
    BrowserUnavailable,
    CallRefused,
    DialogOpen,
    ErrorCode,
    ExecutionTimedOut,
    PolicyBlocked,
    SandboxUnavailable,
    TryLater,
    UnknownTool,
)
from browser_shell.core.json_values import JsonValue
from browser_shell.core.ports import Hook, ReportProgress
from browser_shell.core.records import AuditRecord, RecordKind
from browser_shell.policy.document import PolicyDocument
from browser_shell.policy.rules import UrlPolicy
from browser_shell.server.common import SystemClock
from browser_shell.tools.browser_shell import BrowserShellTool
from browser_shell.tools.registry import ToolRegistry
from support.fake_engine import HangingEngine, ScriptedEngine
from support.fake_hooks import CrashingAfterHook, CrashingBeforeHook, NamingHook, RefusingHook
from support.fakes import (
    BrokenSandbox,
    FakeClock,
    FakePerson,
    FakePolicy,
    FakeResolver,
    FullDiskAudit,
    HangingAudit,
    HangingSandbox,
    NoLimits,
    RecordingActivity,
    RecordingAudit,
    RecordingSandbox,
    SilentResolver,
    a_call,
    a_pipeline,
    full_sandbox,
    timing_out_sandbox,
)
from support.gates import a_local_gate
from support.job_plans import RUN, JobBench, a_job_call

RAN = ["MCP_TOOL_CALL", "SANDBOX_EXEC", "TOOL_FINISHED"]
REFUSED = ["MCP_TOOL_CALL", "POLICY_BLOCKED", "TOOL_FINISHED"]


async def test_a_call_runs_and_answers_with_compact_json() -> None:
    audit, sandbox = RecordingAudit(), RecordingSandbox(result=CommandResult(exit_code=0, data={"title": "Ä", "n": 1}))
    outcome = await a_pipeline(audit=audit, sandbox=sandbox).handle(a_call("get", "title"))
    assert (outcome.session_id, outcome.exit_code, outcome.error) == ("s1", 0, None)
    assert (outcome.stdout, outcome.stderr) == ('{"title":"Ä","n":1}\n', "")
    assert [(principal.subject, plan.name) for principal, plan in sandbox.ran] == [("local", "get")]
    assert audit.kinds == RAN
    assert audit.records[-1].exit_code == 0
    assert audit.records[-1].subcommand == "get"


async def test_no_data_is_null() -> None:
    sandbox = RecordingSandbox(result=CommandResult(exit_code=0))
    assert (await a_pipeline(sandbox=sandbox).handle(a_call())).stdout == "null\n"


async def test_a_failed_command_is_a_result_with_advice() -> None:
    failed = CommandResult(exit_code=1, message="Unknown ref: e9", error=ErrorCode.COMMAND_FAILED)
    audit = RecordingAudit()
    outcome = await a_pipeline(sandbox=RecordingSandbox(result=failed), audit=audit).handle(a_call("click", "@e9"))
    assert (outcome.exit_code, outcome.stdout) == (1, "")
    assert outcome.stderr == f"COMMAND_FAILED: Unknown ref: e9\n{ErrorCode.COMMAND_FAILED.advice}"
    assert audit.records[-1].error == "COMMAND_FAILED"


async def test_attachments_are_part_of_the_outcome() -> None:
    picture = Attachment(mime_type="image/png", content=b"png", name="a.png")
    sandbox = RecordingSandbox(result=CommandResult(exit_code=0, attachments=(picture,)))
    assert (await a_pipeline(sandbox=sandbox).handle(a_call("screenshot"))).attachments == (picture,)


@pytest.mark.promise("policy:denied-does-not-run")
async def test_a_blocked_host_is_refused_with_the_reason() -> None:
    audit, sandbox = RecordingAudit(), RecordingSandbox()
    pipeline = a_pipeline(policy=FakePolicy(blocked_hosts=frozenset({"bad.example"})), audit=audit, sandbox=sandbox)
    outcome = await pipeline.handle(a_call("open", "https://bad.example/x?token=s3cret"))
    assert (outcome.exit_code, outcome.error, outcome.rule_id) == (126, ErrorCode.POLICY_BLOCKED, "host.blocked")
    assert outcome.stderr.startswith("POLICY_BLOCKED: bad.example is blocked (rule host.blocked)")
    assert sandbox.ran == []
    assert audit.kinds == REFUSED
    assert (audit.records[1].rule_id, audit.records[1].host) == ("host.blocked", "bad.example")


async def test_a_host_that_does_not_resolve_is_refused_with_its_own_code() -> None:
    audit, sandbox = RecordingAudit(), RecordingSandbox()
    pipeline = a_pipeline(policy=UrlPolicy(PolicyDocument()), resolver=FakeResolver(), audit=audit, sandbox=sandbox)
    outcome = await pipeline.handle(a_call("open", "https://nosuch.example/"))
    assert (outcome.exit_code, outcome.error, outcome.rule_id) == (1, ErrorCode.NAME_NOT_RESOLVED, "dns.no_answer")
    assert outcome.stderr == (
        f"NAME_NOT_RESOLVED: nosuch.example does not resolve (rule dns.no_answer)\n{ErrorCode.NAME_NOT_RESOLVED.advice}"
    )
    assert sandbox.ran == []
    assert audit.kinds == REFUSED
    assert [record.rule_id for record in audit.records] == ["", "dns.no_answer", "dns.no_answer"]


@pytest.mark.promise("audit:no-secrets")
async def test_records_contain_no_typed_text_paths_or_queries() -> None:
    audit = RecordingAudit()
    pipeline = a_pipeline(audit=audit)
    await pipeline.handle(a_call("open", "https://a.example/s3cret?token=s3cret"))
    await pipeline.handle(a_call("fill", "#pin", "s3cret"))
    await pipeline.handle(a_call("open", session_id={"s3cret": "s3cret"}))
    assert "s3cret" not in repr(audit.records)


async def test_the_policy_gets_all_addresses_of_the_host() -> None:
    policy, addresses = FakePolicy(), [ip_address("203.0.113.7"), ip_address("10.0.0.7")]
    pipeline = a_pipeline(policy=policy, resolver=FakeResolver({"a.example": addresses}))
    await pipeline.handle(a_call("open", "https://a.example/"))
    assert policy.judged[0][1] == {"a.example": addresses}


async def test_a_host_has_no_addresses_after_the_lookup_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline_module, "LOOKUP_SECONDS", 0.01)
    policy = FakePolicy()
    await a_pipeline(policy=policy, resolver=SilentResolver()).handle(a_call("open", "https://a.example/"))
    assert policy.judged[0][1] == {"a.example": ()}


async def test_bad_arguments_are_refused_and_recorded() -> None:
    audit, sandbox = RecordingAudit(), RecordingSandbox()
    call = ToolCall(call_id="c", principal=Principal(subject="u"), tool="browser-shell", arguments={"cmd": "ls"})
    outcome = await a_pipeline(audit=audit, sandbox=sandbox).handle(call)
    assert (outcome.exit_code, outcome.error, outcome.session_id) == (2, ErrorCode.INVALID_ARGUMENTS, "")
    assert sandbox.ran == []
    assert audit.kinds == REFUSED


@pytest.mark.parametrize(("tool", "error"), [("run_shell", PolicyBlocked), ("browser_shell", UnknownTool)])
async def test_an_unknown_or_reserved_tool_is_a_protocol_error_and_recorded(
    tool: str, error: type[BrowserShellError]
) -> None:
    audit, sandbox = RecordingAudit(), RecordingSandbox()
    with pytest.raises(error):
        await a_pipeline(audit=audit, sandbox=sandbox).handle(a_call(tool=tool))
    assert sandbox.ran == []
    assert audit.kinds == REFUSED
    assert audit.records[-1].rule_id.startswith("tool.")


async def test_a_long_tool_name_is_shortened_in_records() -> None:
    audit = RecordingAudit()
    with pytest.raises(UnknownTool):
        await a_pipeline(audit=audit).handle(a_call(tool="x" * 5000))
    assert len(audit.records[0].tool) == 64


@pytest.mark.promise("audit:no-record-no-run")
@pytest.mark.parametrize("full_at", [RecordKind.MCP_TOOL_CALL, RecordKind.SANDBOX_EXEC])
async def test_a_call_that_cannot_be_recorded_does_not_run(full_at: RecordKind) -> None:
    sandbox = RecordingSandbox()
    outcome = await a_pipeline(audit=FullDiskAudit(full_at=full_at), sandbox=sandbox).handle(a_call())
    assert (outcome.exit_code, outcome.error) == (75, ErrorCode.AUDIT_UNAVAILABLE)
    assert sandbox.ran == []


async def test_an_unknown_tool_that_cannot_be_recorded_reports_the_audit_fault() -> None:
    outcome = await a_pipeline(audit=FullDiskAudit()).handle(a_call(tool="nonsense"))
    assert outcome.error is ErrorCode.AUDIT_UNAVAILABLE


async def test_a_refusal_that_cannot_be_recorded_reports_the_audit_fault() -> None:
    pipeline = a_pipeline(hooks=[RefusingHook()], audit=FullDiskAudit(full_at=RecordKind.POLICY_BLOCKED))
    assert (await pipeline.handle(a_call())).error is ErrorCode.AUDIT_UNAVAILABLE


async def test_a_result_is_returned_even_if_its_last_record_fails() -> None:
    pipeline = a_pipeline(audit=FullDiskAudit(full_at=RecordKind.TOOL_FINISHED))
    assert (await pipeline.handle(a_call())).exit_code == 0


async def test_a_hanging_last_record_does_not_block_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline_module, "LAST_RECORD_SECONDS", 0.01)
    assert (await a_pipeline(audit=HangingAudit()).handle(a_call())).exit_code == 0


async def test_a_hook_can_refuse_a_call() -> None:
    audit, sandbox = RecordingAudit(), RecordingSandbox()
    outcome = await a_pipeline(hooks=[RefusingHook()], audit=audit, sandbox=sandbox).handle(a_call())
    assert (outcome.error, outcome.rule_id) == (ErrorCode.POLICY_BLOCKED, "acme.sunday")
    assert sandbox.ran == []
    assert audit.kinds == REFUSED


@pytest.mark.promise("hooks:crash-refuses")
async def test_a_crash_of_a_before_hook_refuses_the_call() -> None:
    sandbox = RecordingSandbox()
    outcome = await a_pipeline(hooks=[CrashingBeforeHook()], sandbox=sandbox).handle(a_call())
    assert (outcome.exit_code, outcome.error, outcome.rule_id) == (126, ErrorCode.HOOK_FAILED, "hook.before")
    assert sandbox.ran == []


@pytest.mark.promise("hooks:crash-withholds")
async def test_a_crash_of_an_after_hook_withholds_the_result() -> None:
    audit, sandbox = RecordingAudit(), RecordingSandbox(result=CommandResult(exit_code=0, data="page content"))
    outcome = await a_pipeline(hooks=[CrashingAfterHook()], sandbox=sandbox, audit=audit).handle(a_call())
    assert (outcome.exit_code, outcome.error, outcome.rule_id) == (126, ErrorCode.HOOK_FAILED, "hook.after")
    assert "page content" not in repr(outcome)
    assert audit.kinds == RAN


class WithholdingHook:
    async def after(self, call: ToolCall, plan: BrowserCommand, result: CommandResult) -> CommandResult:
        raise CallRefused("the page is confidential", rule_id="acme.secret")


class SleepingHook:
    async def before(self, call: ToolCall, plan: BrowserCommand) -> BrowserCommand:
        await anyio.sleep_forever()
        return plan


class SleepingAfterHook:
    async def after(self, call: ToolCall, plan: BrowserCommand, result: CommandResult) -> CommandResult:
        await anyio.sleep_forever()
        return result


async def test_a_hook_can_withhold_a_result() -> None:
    outcome = await a_pipeline(hooks=[WithholdingHook()]).handle(a_call())
    assert (outcome.error, outcome.rule_id, outcome.stdout) == (ErrorCode.POLICY_BLOCKED, "acme.secret", "")


@pytest.mark.parametrize("hook", [SleepingHook(), SleepingAfterHook()])
async def test_a_hook_that_hangs_is_stopped_by_its_timeout(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline_module, "HOOKS_SECONDS", 0.01)
    assert (await a_pipeline(hooks=[hook]).handle(a_call())).error is ErrorCode.HOOK_FAILED


@pytest.mark.promise("policy:judges-what-runs")
async def test_the_plan_that_the_hooks_return_is_judged_and_runs() -> None:
    policy, sandbox = FakePolicy(), RecordingSandbox()
    await a_pipeline(hooks=[NamingHook("a")], policy=policy, sandbox=sandbox).handle(a_call("click"))
    assert policy.judged[0][0].operands == ("a",)
    assert sandbox.ran[0][1] is policy.judged[0][0]


@pytest.mark.parametrize(
    ("sandbox", "error", "exit_code"),
    [
        (timing_out_sandbox(), ErrorCode.TIMEOUT, 124),
        (BrokenSandbox(error=BrowserUnavailable("down")), ErrorCode.BROWSER_UNAVAILABLE, 127),
        (BrokenSandbox(error=SandboxUnavailable("gone")), ErrorCode.DRIVER_UNAVAILABLE, 127),
        (full_sandbox(), ErrorCode.SESSION_LIMIT, 75),
        (BrokenSandbox(error=RuntimeError("/home/op/secret is missing")), ErrorCode.INTERNAL_ERROR, 127),
    ],
)
async def test_runner_errors_become_outcomes(sandbox: BrokenSandbox, error: ErrorCode, exit_code: int) -> None:
    audit = RecordingAudit()
    outcome = await a_pipeline(sandbox=sandbox, audit=audit).handle(a_call())
    assert (outcome.error, outcome.exit_code) == (error, exit_code)
    assert outcome.stderr.startswith(f"{error.name}: ")
    assert "secret" not in outcome.stderr
    assert audit.kinds == RAN
    assert audit.records[-1].error == error.name


async def test_a_full_server_names_the_seconds_to_wait() -> None:
    assert (await a_pipeline(sandbox=full_sandbox()).handle(a_call())).retry_after_seconds == 5


async def test_a_runner_that_ignores_its_timeout_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline_module, "RUNNER_GRACE_SECONDS", -29.99)
    sandbox = HangingSandbox()
    assert (await a_pipeline(sandbox=sandbox).handle(a_call())).error is ErrorCode.TIMEOUT
    assert sandbox.stopped.is_set()


@pytest.mark.promise("audit:cancelled-is-recorded")
async def test_a_cancelled_call_stops_the_runner_and_its_end_is_recorded() -> None:
    audit, sandbox = RecordingAudit(), HangingSandbox()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(a_pipeline(audit=audit, sandbox=sandbox).handle, a_call())
        with anyio.fail_after(5):
            await sandbox.started.wait()
        tasks.cancel_scope.cancel()
    assert sandbox.stopped.is_set()
    assert audit.kinds == RAN
    assert (audit.records[-1].error, audit.records[-1].exit_code) == ("CANCELLED", None)


async def test_reasons_are_redacted_and_shortened() -> None:
    sandbox = BrokenSandbox(error=TryLater("https://u:s3cret@a.example/ " + "x" * 50_000))
    outcome = await a_pipeline(sandbox=sandbox).handle(a_call())
    assert "s3cret" not in outcome.stderr
    assert len(outcome.stderr) < 7000


async def test_a_lone_surrogate_is_replaced_in_the_outcome() -> None:
    sandbox = RecordingSandbox(result=CommandResult(exit_code=0, data="a\ud800b", message="\udc00"))
    outcome = await a_pipeline(sandbox=sandbox).handle(a_call())
    assert json.loads(outcome.stdout.encode()) == "a\ufffdb"
    assert outcome.stderr.encode()


async def test_a_timeout_error_of_python_is_an_internal_error() -> None:
    outcome = await a_pipeline(sandbox=BrokenSandbox(error=TimeoutError())).handle(a_call())
    assert outcome.error is ErrorCode.INTERNAL_ERROR
    assert issubclass(ExecutionTimedOut, TimeoutError)


def test_the_listed_tools_are_those_of_the_registry() -> None:
    assert [tool.name for tool in a_pipeline().tools()] == ["browser-shell"]


@pytest.mark.promise("limits:refused-is-recorded")
async def test_a_call_over_a_limit_is_refused_with_the_seconds_to_wait_and_recorded() -> None:
    audit, sandbox = RecordingAudit(), RecordingSandbox()
    pipeline = a_pipeline(limits=a_local_gate(calls_per_minute=1), audit=audit, sandbox=sandbox)
    await pipeline.handle(a_call())
    outcome = await pipeline.handle(a_call())
    assert (outcome.exit_code, outcome.error, outcome.rule_id) == (75, ErrorCode.RATE_LIMITED, "limits.rate")
    assert outcome.retry_after_seconds == 61
    assert len(sandbox.ran) == 1
    assert audit.kinds == RAN + REFUSED
    assert [record.rule_id for record in audit.records[4:]] == ["limits.rate", "limits.rate"]


async def test_limits_are_checked_before_hooks_and_policy() -> None:
    pipeline = a_pipeline(
        limits=a_local_gate(budget={"max_retries": 0}), policy=FakePolicy(blocked_hosts=frozenset({"bad.example"}))
    )
    call = a_call("open", "https://bad.example/")
    assert [(await pipeline.handle(call)).error for _ in range(2)] == [
        ErrorCode.POLICY_BLOCKED,
        ErrorCode.BUDGET_EXCEEDED,
    ]


async def test_an_unknown_tool_does_not_count_against_the_limits() -> None:
    limits = NoLimits()
    with pytest.raises(PolicyBlocked):
        await a_pipeline(limits=limits).handle(a_call(tool="run_shell"))
    assert limits.leases == []


@pytest.mark.promise("limits:lease-comes-back")
@pytest.mark.parametrize(
    "pipeline_parts",
    [
        {},
        {"sandbox": timing_out_sandbox()},
        {"sandbox": BrokenSandbox(error=RuntimeError("bug"))},
        {"hooks": [RefusingHook()]},
        {"hooks": [CrashingAfterHook()]},
        {"policy": FakePolicy(blocked_hosts=frozenset({"bad.example"}))},
        {"audit": FullDiskAudit(full_at=RecordKind.SANDBOX_EXEC)},
        {"audit": FullDiskAudit(full_at=RecordKind.TOOL_FINISHED)},
    ],
)
async def test_a_lease_is_settled_once_however_the_call_ends(pipeline_parts: dict[str, Any]) -> None:
    limits = NoLimits()
    outcome = await a_pipeline(limits=limits, **pipeline_parts).handle(a_call("open", "https://bad.example/"))
    (settled,) = (lease.settled for lease in limits.leases)
    (result,) = settled
    assert result is not None
    assert result.error is outcome.error


@pytest.mark.promise("limits:lease-comes-back")
async def test_a_cancelled_call_releases_its_slot() -> None:
    sandbox = HangingSandbox()
    gate = a_local_gate(concurrent_calls=1)
    pipeline = a_pipeline(limits=gate, sandbox=sandbox)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pipeline.handle, a_call())
        with anyio.fail_after(5):
            await sandbox.started.wait()
        assert (await pipeline.handle(a_call("open"))).rule_id == "limits.concurrency"
        tasks.cancel_scope.cancel()
    await gate.admit(a_call())


async def test_a_call_that_exceeds_the_budget_of_its_task_is_stopped() -> None:
    sandbox, gate, audit = HangingSandbox(), a_local_gate(budget={"elapsed_seconds": 1}), RecordingAudit()
    outcome = await a_pipeline(limits=gate, sandbox=sandbox, audit=audit).handle(a_call())
    assert (outcome.exit_code, outcome.error, outcome.rule_id) == (
        75,
        ErrorCode.BUDGET_EXCEEDED,
        "limits.budget.elapsed",
    )
    assert sandbox.stopped.is_set()
    assert audit.kinds == RAN


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (("fill", "#pin", "s3cret"), "s3cret"),
        (("type", "#pin", ""), ""),
        (("press", "Enter"), "Enter"),
        (("select", "#a", "x", "y"), "x\ny"),
        (("dialog", "accept", "s3cret"), "s3cret"),
        (("dialog", "accept"), None),
        (("click", "#pin"), None),
    ],
)
async def test_typed_text_is_in_one_record_and_only_as_a_secret(argv: tuple[str, ...], text: str | None) -> None:
    audit = RecordingAudit()
    await a_pipeline(audit=audit).handle(a_call(*argv))
    found = [record.text.reveal() if record.text else None for record in audit.records]
    assert found == [None, text, None]


async def test_refused_text_is_recorded_as_a_secret() -> None:
    audit = RecordingAudit()
    await a_pipeline(audit=audit, hooks=[RefusingHook()]).handle(a_call("fill", "#pin", "s3cret"))
    assert [record.text is not None for record in audit.records] == [False, True, False]


async def test_records_contain_durations_and_the_trace_id() -> None:
    clock, audit = FakeClock(), RecordingAudit()

    class SlowHook:
        async def before(self, call: ToolCall, plan: BrowserCommand) -> BrowserCommand:
            clock.advance(0.5)
            return plan

    class SlowSandbox(RecordingSandbox):
        async def run(self, call: ToolCall, plan: BrowserCommand, report_progress: ReportProgress) -> CommandResult:
            clock.advance(2)
            return self.result

    call = replace(a_call(), trace_id="0af7651916cd43dd8448eb211c80319c")
    await a_pipeline(audit=audit, clock=clock, hooks=[SlowHook()], sandbox=SlowSandbox()).handle(call)
    times = [(record.judged_ms, record.ran_ms, record.duration_ms) for record in audit.records]
    assert times == [(None, None, None), (500, None, None), (500, 2000, 2500)]
    assert {record.trace_id for record in audit.records} == {"0af7651916cd43dd8448eb211c80319c"}


@pytest.mark.parametrize(
    ("argv", "kinds", "subcommand"),
    [
        (("eval", "s3cret"), ["MCP_COMMAND_BLOCKED", "POLICY_BLOCKED"], "eval"),
        (("goto", "https://a.example/"), ["MCP_COMMAND_BLOCKED", "POLICY_BLOCKED"], "goto"),
        (("click", "--cdp", "1"), ["MCP_COMMAND_BLOCKED", "POLICY_BLOCKED"], "click"),
        (("s3cret",), ["MCP_COMMAND_BLOCKED", "POLICY_BLOCKED"], ""),
        (("open", "ftp://a.example/"), ["POLICY_BLOCKED"], "open"),
    ],
)
async def test_a_refused_subcommand_has_an_additional_record(
    argv: tuple[str, ...], kinds: list[str], subcommand: str
) -> None:
    audit = RecordingAudit()
    await a_pipeline(audit=audit, registry=ToolRegistry([BrowserShellTool()])).handle(a_call(*argv))
    assert audit.kinds == ["MCP_TOOL_CALL", *kinds, "TOOL_FINISHED"]
    assert {record.subcommand for record in audit.records} == {subcommand}
    assert "s3cret" not in repr(audit.records)


class ProgressRunner(RecordingSandbox):
    """Reports progress with a secret in the message."""

    async def run(self, call: ToolCall, plan: BrowserCommand, report_progress: ReportProgress) -> CommandResult:
        await report_progress(1.0, 60.0, "GET /?access_token=s3cret")
        return CommandResult(exit_code=0)


@pytest.mark.promise("results:redacted")
async def test_secrets_in_progress_messages_are_redacted() -> None:
    messages: list[str] = []

    async def on_progress(done: float, total: float, message: str) -> None:
        await anyio.lowlevel.checkpoint()
        messages.append(message)

    await replace(a_pipeline(), runner=ProgressRunner()).handle(a_call(), on_progress)
    assert messages == ["GET /?access_token=[redacted]"]


async def test_a_job_that_exceeds_its_budget_names_its_run(tmp_path: Path) -> None:
    bench = JobBench(tmp_path, HangingEngine())
    limits = a_local_gate(SystemClock(), budget={"elapsed_seconds": 1, "window_seconds": 100})
    with anyio.fail_after(20):
        outcome = await bench.pipeline(limits=limits).handle(a_job_call())
    assert (outcome.error, outcome.run_id) == (ErrorCode.BUDGET_EXCEEDED, RUN)
    assert json.loads((bench.run_directory / "evidence.json").read_bytes())["outcome"]["end"] == "cancelled"
    assert (bench.audit.kinds[-1], bench.audit.records[-1].run_id) == ("TOOL_FINISHED", RUN)
    refused = await bench.pipeline(limits=limits).handle(a_job_call("b" * 24))
    assert (refused.error, refused.run_id) == (ErrorCode.BUDGET_EXCEEDED, ""), "nothing ran"


async def test_a_job_that_ignores_its_timeout_names_its_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = JobBench(tmp_path, HangingEngine())
    monkeypatch.setattr(pipeline_module, "RUNNER_GRACE_SECONDS", -120.5)
    with anyio.fail_after(20):
        outcome = await bench.pipeline().handle(a_job_call(timeout_sec=1))
    assert (outcome.error, outcome.run_id) == (ErrorCode.TIMEOUT, RUN)


async def test_a_job_whose_result_is_withheld_names_its_run(tmp_path: Path) -> None:
    bench = JobBench(tmp_path, ScriptedEngine())
    outcome = await bench.pipeline(hooks=[CrashingAfterHook()]).handle(a_job_call())
    assert (outcome.rule_id, outcome.run_id) == ("hook.after", RUN)


async def test_a_job_that_never_started_names_no_run(tmp_path: Path) -> None:
    bench = JobBench(tmp_path, ScriptedEngine())
    outcome = await bench.pipeline(hooks=[CrashingBeforeHook()]).handle(a_job_call())
    assert (outcome.rule_id, outcome.run_id) == ("hook.before", "")
    assert not bench.run_directory.exists()


async def test_activity_lists_each_call_without_typed_text_or_paths() -> None:
    activity = RecordingActivity()
    pipeline = a_pipeline(
        show_activity=activity.add, sandbox=RecordingSandbox(result=CommandResult(exit_code=0, data={}))
    )
    await pipeline.handle(a_call("fill", "#password", "hunter2"))
    await pipeline.handle(a_call("open", "https://a.example/path?token=secret"))
    fill, opened = activity.entries
    assert (fill.subject, fill.session_id, fill.what, fill.result) == ("local", "s1", "fill", "ok")
    assert fill.duration_ms is not None
    assert (opened.what, opened.detail) == ("open", "a.example")
    assert "hunter2" not in repr(activity.entries)
    assert "secret" not in repr(activity.entries)


async def test_activity_lists_failed_calls_by_their_error_name() -> None:
    activity = RecordingActivity()
    policy = FakePolicy(blocked_hosts=frozenset({"a.example"}))
    await a_pipeline(show_activity=activity.add, policy=policy).handle(a_call("open", "https://a.example/"))
    await a_pipeline(show_activity=activity.add, sandbox=timing_out_sandbox()).handle(a_call())
    await a_pipeline(show_activity=activity.add).handle(a_call(session_id=7))
    with pytest.raises(UnknownTool):
        await a_pipeline(show_activity=activity.add).handle(a_call(tool="unknown"))
    assert [(entry.what, entry.result) for entry in activity.entries] == [
        ("open", "POLICY_BLOCKED"),
        ("snapshot", "TIMEOUT"),
        ("", "INVALID_ARGUMENTS"),
        ("", "INVALID_ARGUMENTS"),
    ]
    assert activity.entries[0].detail == "a.example host.blocked"


class ScriptedSandbox(RecordingSandbox):
    """Returns the next result, or raises the next error, for each plan."""

    def __init__(self, *script: CommandResult | Exception) -> None:
        super().__init__()
        self.script = list(script)
        self.was_held: list[bool] = []

    async def run(self, call: ToolCall, plan: BrowserCommand, report_progress: ReportProgress) -> CommandResult:
        self.ran.append((call.principal, plan))
        self.was_held.append(self.is_held)
        end = self.script.pop(0) if self.script else self.result
        if isinstance(end, Exception):
            raise end
        return end

    @property
    def names(self) -> list[str]:
        return [plan.name for _, plan in self.ran]


def steps_of(audit: RecordingAudit, kind: str) -> list[int | None]:
    return [record.step for record in audit.records if record.kind.value == kind]


async def test_steps_run_in_order_in_a_session_that_is_held() -> None:
    data = [CommandResult(exit_code=0, data={"n": number}) for number in range(3)]
    audit, sandbox = RecordingAudit(), ScriptedSandbox(*data)
    call = a_call("open", "https://a.example/", then=[["fill", "#a", "x"], ["click", "#b"]])
    outcome = await a_pipeline(audit=audit, sandbox=sandbox).handle(call)
    assert (outcome.exit_code, outcome.stdout, outcome.stderr) == (0, '[{"n":0},{"n":1},{"n":2}]\n', "")
    assert sandbox.names == ["open", "fill", "click"]
    assert sandbox.was_held == [True] * 3
    assert not sandbox.is_held
    assert [plan.next_step for _, plan in sandbox.ran] == ["fill", "click", ""]
    assert audit.kinds == ["MCP_TOOL_CALL"] * 3 + ["SANDBOX_EXEC", "TOOL_FINISHED"] * 3
    assert [(record.step, record.subcommand) for record in audit.records[3:]] == [
        *((1, "open"), (1, "open"), (2, "fill"), (2, "fill"), (3, "click"), (3, "click"))
    ]
    assert {record.call_id for record in audit.records} == {"call-1"}


async def test_a_call_with_one_step_holds_nothing_and_has_no_step_number() -> None:
    audit, sandbox = RecordingAudit(), ScriptedSandbox()
    for call in (a_call("back"), a_call("back", then=[])):
        outcome = await a_pipeline(audit=audit, sandbox=sandbox).handle(call)
        assert outcome.stdout == '{"ok":true}\n'
    assert sandbox.was_held == [False, False]
    assert {record.step for record in audit.records} == {None}
    assert audit.kinds == RAN + RAN


@pytest.mark.parametrize(
    "end",
    [
        CommandResult(exit_code=1, error=ErrorCode.COMMAND_FAILED, message="no"),
        DialogOpen("a confirm dialog"),
        ActFailed(ErrorCode.PAGE_CHANGED, "@e1 belongs to an earlier page"),
        ExecutionTimedOut("late"),
        RuntimeError("bug"),
    ],
    ids=lambda end: type(end).__name__,
)
async def test_a_step_that_fails_stops_the_steps_after_it(end: CommandResult | Exception) -> None:
    audit, sandbox = RecordingAudit(), ScriptedSandbox(CommandResult(exit_code=0, data=1), end)
    call = a_call("back", then=[["click", "#a"], ["click", "#b"], ["click", "#c"]])
    outcome = await a_pipeline(audit=audit, sandbox=sandbox).handle(call)
    assert sandbox.names == ["back", "click"]
    assert outcome.error is not None
    assert (outcome.exit_code, outcome.stdout) == (outcome.error.exit_code, "[1]\n")
    assert outcome.stderr.startswith(f"{outcome.error.name}: step 2 of 4 (click): ")
    assert "; 2 steps did not run\n" in outcome.stderr
    ends = [(record.step, record.error) for record in audit.records if record.kind is RecordKind.TOOL_FINISHED]
    assert ends == [(1, ""), (2, outcome.error.name), (3, "NOT_RUN"), (4, "NOT_RUN")]
    assert steps_of(audit, "SANDBOX_EXEC") == [1, 2]


@pytest.mark.promise("steps:judged-before-the-first-runs")
@pytest.mark.parametrize(
    ("step", "error"),
    [
        (["open", "https://bad.example/"], ErrorCode.POLICY_BLOCKED),
        (["open", "file:///etc/passwd"], ErrorCode.POLICY_BLOCKED),
        (["eval", "1"], ErrorCode.POLICY_BLOCKED),
        (["click", "--session", "x"], ErrorCode.INVALID_ARGUMENTS),
        (["press", "Foo"], ErrorCode.INVALID_ARGUMENTS),
        ([""], ErrorCode.INVALID_ARGUMENTS),
    ],
)
async def test_a_refused_step_refuses_the_whole_call(step: list[str], error: ErrorCode) -> None:
    audit, sandbox = RecordingAudit(), RecordingSandbox()
    pipeline = a_pipeline(
        registry=ToolRegistry([BrowserShellTool()]),
        policy=FakePolicy(blocked_hosts=frozenset({"bad.example"})),
        audit=audit,
        sandbox=sandbox,
    )
    outcome = await pipeline.handle(a_call("open", "https://a.example/", then=[["back"], step, ["close"]]))
    assert (outcome.error, outcome.exit_code, outcome.stdout) == (error, error.exit_code, "")
    assert outcome.stderr.startswith(f"{error.name}: step 3 of 4")
    assert "1 step did not run" in outcome.stderr
    assert sandbox.ran == []
    assert steps_of(audit, "POLICY_BLOCKED") == [3]
    assert steps_of(audit, "SANDBOX_EXEC") == []
    assert [record.error for record in audit.records[-4:]] == ["NOT_RUN", "NOT_RUN", error.name, "NOT_RUN"]


async def test_malformed_steps_are_refused_as_one_call() -> None:
    audit, sandbox = RecordingAudit(), RecordingSandbox()
    pipeline = a_pipeline(registry=ToolRegistry([BrowserShellTool()]), audit=audit, sandbox=sandbox)
    outcome = await pipeline.handle(a_call("back", then=[["back"]] * 13))
    assert (outcome.error, outcome.rule_id) == (ErrorCode.INVALID_ARGUMENTS, "arguments.then")
    assert sandbox.ran == []
    assert audit.kinds == REFUSED


async def test_hooks_see_each_step_as_a_call_of_its_own() -> None:
    seen: list[JsonValue] = []

    class WatchingHook:
        async def before(self, call: ToolCall, plan: BrowserCommand) -> BrowserCommand:
            assert isinstance(call.arguments, dict)
            assert "then" not in call.arguments
            seen.append(call.arguments["argv"])
            return plan

        async def after(self, call: ToolCall, plan: BrowserCommand, result: CommandResult) -> CommandResult:
            return replace(result, data=f"{plan.name} {call.step}")

    outcome = await a_pipeline(hooks=[WatchingHook()]).handle(a_call("back", then=[["forward"]]))
    assert seen == [["back"], ["forward"]]
    assert json.loads(outcome.stdout) == ["back 1", "forward 2"]


async def test_a_hook_that_refuses_one_step_refuses_the_call() -> None:
    class NoPdf:
        async def before(self, call: ToolCall, plan: BrowserCommand) -> BrowserCommand:
            if plan.name == "pdf":
                raise CallRefused("no documents", rule_id="acme.pdf")
            return plan

    sandbox = RecordingSandbox()
    outcome = await a_pipeline(hooks=[NoPdf()], sandbox=sandbox).handle(a_call("back", then=[["pdf"]]))
    assert (outcome.rule_id, sandbox.ran) == ("acme.pdf", [])
    assert outcome.stderr.startswith("POLICY_BLOCKED: step 2 of 2 (pdf): no documents (rule acme.pdf)")


async def test_an_after_hook_that_fails_stops_the_steps() -> None:
    sandbox = RecordingSandbox()
    outcome = await a_pipeline(hooks=[CrashingAfterHook()], sandbox=sandbox).handle(a_call("back", then=[["back"]]))
    assert (outcome.error, len(sandbox.ran)) == (ErrorCode.HOOK_FAILED, 1)


@pytest.mark.promise("view:agents-wait")
async def test_a_takeover_stops_the_steps() -> None:
    person, audit = FakePerson(), RecordingAudit()

    class TakingOver(RecordingSandbox):
        async def run(self, call: ToolCall, plan: BrowserCommand, report_progress: ReportProgress) -> CommandResult:
            person.seconds = 9 if plan.name == "click" else 0
            return await super().run(call, plan, report_progress)

    sandbox = TakingOver()
    call = a_call("back", then=[["click", "#a"], ["fill", "#b", "s3cret"], ["close"]])
    outcome = await a_pipeline(sandbox=sandbox, human=person, audit=audit).handle(call)
    assert (outcome.error, outcome.retry_after_seconds) == (ErrorCode.HUMAN_IN_CONTROL, 9)
    assert outcome.stderr.startswith("HUMAN_IN_CONTROL: step 3 of 4 (fill): ")
    assert len(sandbox.ran) == 2
    assert steps_of(audit, "POLICY_BLOCKED") == [3]


@pytest.mark.promise("audit:no-record-no-run")
async def test_a_step_that_cannot_be_recorded_does_not_run() -> None:
    class FullAtSecondStep(RecordingAudit):
        async def record(self, record: AuditRecord) -> None:
            if record.step == 2 and record.kind is RecordKind.SANDBOX_EXEC:
                raise AuditUnavailable("no space left")
            await super().record(record)

    sandbox = RecordingSandbox()
    outcome = await a_pipeline(audit=FullAtSecondStep(), sandbox=sandbox).handle(a_call("back", then=[["forward"]]))
    assert (outcome.error, outcome.stdout) == (ErrorCode.AUDIT_UNAVAILABLE, '[{"ok":true}]\n')
    assert len(sandbox.ran) == 1


async def test_every_step_counts_against_the_rate() -> None:
    sandbox = RecordingSandbox()
    pipeline = a_pipeline(limits=a_local_gate(calls_per_minute=4), sandbox=sandbox)
    assert (await pipeline.handle(a_call("back", then=[["forward"], ["back"]]))).exit_code == 0
    refused = await pipeline.handle(a_call("back", then=[["forward"]]))
    assert (refused.error, refused.rule_id, refused.stdout) == (ErrorCode.RATE_LIMITED, "limits.rate", "")
    assert len(sandbox.ran) == 3
    assert (await pipeline.handle(a_call("back"))).exit_code == 0


async def test_a_step_that_fails_too_often_stops_further_calls_with_it() -> None:
    failing = CommandResult(exit_code=1, error=ErrorCode.COMMAND_FAILED, message="no")

    class FailingClicks(RecordingSandbox):
        async def run(self, call: ToolCall, plan: BrowserCommand, report_progress: ReportProgress) -> CommandResult:
            result = await super().run(call, plan, report_progress)
            return failing if plan.name == "click" else result

    sandbox = FailingClicks()
    pipeline = a_pipeline(limits=a_local_gate(budget={"max_retries": 1}), sandbox=sandbox)
    call = a_call("hover", "#a", then=[["click", "#a"], ["back"]])
    errors = [(await pipeline.handle(call)).error for _ in range(3)]
    assert errors == [ErrorCode.COMMAND_FAILED, ErrorCode.COMMAND_FAILED, ErrorCode.BUDGET_EXCEEDED]
    assert (await pipeline.handle(a_call("click", "#a"))).error is ErrorCode.BUDGET_EXCEEDED
    assert [plan.name for _, plan in sandbox.ran] == ["hover", "click", "hover", "click", "hover"]


async def test_a_refused_later_step_counts_against_its_own_budget() -> None:
    pipeline = a_pipeline(
        limits=a_local_gate(budget={"max_retries": 0}), policy=FakePolicy(blocked_hosts=frozenset({"bad.example"}))
    )
    call = a_call("back", then=[["open", "https://bad.example/"]])
    first, second = await pipeline.handle(call), await pipeline.handle(call)
    assert (first.error, second.error) == (ErrorCode.POLICY_BLOCKED, ErrorCode.BUDGET_EXCEEDED)
    assert second.stderr.startswith("BUDGET_EXCEEDED: step 2 of 2 (open): ")
    assert (await pipeline.handle(a_call("back"))).exit_code == 0


async def test_a_lease_of_several_steps_is_settled_once() -> None:
    limits = NoLimits()
    await a_pipeline(limits=limits).handle(a_call("back", then=[["forward"], ["reload"]]))
    (lease,) = limits.leases
    assert len(lease.settled) == 1
    assert [(step.step, after is not None) for step, after in lease.continued] == [(2, True), (3, True)]


@pytest.mark.promise("audit:cancelled-is-recorded")
async def test_a_cancelled_call_with_steps_ends_each_of_them_in_the_log() -> None:
    audit, sandbox = RecordingAudit(), HangingSandbox()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(a_pipeline(audit=audit, sandbox=sandbox).handle, a_call("back", then=[["forward"]]))
        with anyio.fail_after(5):
            await sandbox.started.wait()
        tasks.cancel_scope.cancel()
    assert not sandbox.is_held
    ends = [(record.step, record.error) for record in audit.records if record.kind is RecordKind.TOOL_FINISHED]
    assert ends == [(1, "CANCELLED"), (2, "NOT_RUN")]


async def test_steps_share_the_time_after_which_the_runner_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline_module, "RUNNER_GRACE_SECONDS", 0)
    clock = FakeClock()

    class SlowThenHanging(HangingSandbox):
        async def run(self, call: ToolCall, plan: BrowserCommand, report_progress: ReportProgress) -> CommandResult:
            if plan.name == "back":
                clock.advance(29.99)
                return self.result
            return await super().run(call, plan, report_progress)

    with anyio.fail_after(10):
        outcome = await a_pipeline(sandbox=SlowThenHanging(), clock=clock).handle(a_call("back", then=[["forward"]]))
    assert outcome.error is ErrorCode.TIMEOUT
    assert outcome.stderr.startswith("TIMEOUT: step 2 of 2 (forward)")


async def test_activity_lists_the_steps_that_were_reached() -> None:
    activity = RecordingActivity()
    failing = CommandResult(exit_code=1, error=ErrorCode.COMMAND_FAILED, message="no")
    pipeline = a_pipeline(show_activity=activity.add, sandbox=ScriptedSandbox(CommandResult(exit_code=0), failing))
    await pipeline.handle(a_call("back", then=[["click", "#a"], ["forward"]]))
    assert [(entry.what, entry.result) for entry in activity.entries] == [("back", "ok"), ("click", "COMMAND_FAILED")]


async def test_typed_text_of_a_step_is_only_in_its_own_record() -> None:
    audit = RecordingAudit()
    await a_pipeline(audit=audit).handle(a_call("back", then=[["fill", "#pin", "s3cret"]]))
    assert "s3cret" not in repr(audit.records)
    assert [(record.step, record.text.reveal()) for record in audit.records if record.text] == [(2, "s3cret")]
