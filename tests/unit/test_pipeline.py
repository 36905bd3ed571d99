from __future__ import annotations

import json
from dataclasses import replace
from ipaddress import ip_address
from typing import Any

import anyio
import pytest

from browser_shell import pipeline as pipeline_module
from browser_shell.core.calls import Principal, ToolCall
from browser_shell.core.errors import (
    BrowserShellError,
    BrowserUnavailable,
    CallRefused,
    ErrorCode,
    ExecutionTimedOut,
    PolicyBlocked,
    SandboxUnavailable,
    TryLater,
    UnknownTool,
)
from browser_shell.core.json_values import JsonValue
from browser_shell.core.plans import BrowserCommand
from browser_shell.core.ports import Hook, ReportProgress
from browser_shell.core.records import RecordKind
from browser_shell.core.results import Attachment, CommandResult
from browser_shell.policy.document import PolicyDocument
from browser_shell.policy.rules import UrlPolicy
from browser_shell.tools.browser_shell import BrowserShellTool
from browser_shell.tools.registry import ToolRegistry
from support.fake_hooks import CrashingAfterHook, CrashingBeforeHook, NamingHook, RefusingHook
from support.fakes import (
    BrokenSandbox,
    FakeClock,
    FakePolicy,
    FakeResolver,
    FullDiskAudit,
    HangingAudit,
    HangingSandbox,
    NoLimits,
    RecordingAudit,
    RecordingSandbox,
    SilentResolver,
    a_call,
    a_pipeline,
    full_sandbox,
    timing_out_sandbox,
)
from support.gates import a_local_gate

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


async def test_a_command_that_fails_is_a_result_with_advice() -> None:
    failed = CommandResult(exit_code=1, message="Unknown ref: e9", error=ErrorCode.COMMAND_FAILED)
    audit = RecordingAudit()
    outcome = await a_pipeline(sandbox=RecordingSandbox(result=failed), audit=audit).handle(a_call("click", "@e9"))
    assert (outcome.exit_code, outcome.stdout) == (1, "")
    assert outcome.stderr == f"COMMAND_FAILED: Unknown ref: e9\n{ErrorCode.COMMAND_FAILED.advice}"
    assert audit.records[-1].error == "COMMAND_FAILED"


async def test_attachments_ride_along() -> None:
    picture = Attachment(mime_type="image/png", content=b"png", name="a.png")
    sandbox = RecordingSandbox(result=CommandResult(exit_code=0, attachments=(picture,)))
    assert (await a_pipeline(sandbox=sandbox).handle(a_call("screenshot"))).attachments == (picture,)


@pytest.mark.promise("policy:denied-does-not-run")
async def test_a_blocked_host_does_not_run_and_the_model_reads_why() -> None:
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
async def test_records_hold_neither_typed_text_nor_paths_nor_queries() -> None:
    audit = RecordingAudit()
    pipeline = a_pipeline(audit=audit)
    await pipeline.handle(a_call("open", "https://a.example/s3cret?token=s3cret"))
    await pipeline.handle(a_call("fill", "#pin", "s3cret"))
    await pipeline.handle(a_call("open", session_id={"s3cret": "s3cret"}))
    assert "s3cret" not in repr(audit.records)


async def test_the_policy_sees_every_address_of_the_host() -> None:
    policy, addresses = FakePolicy(), [ip_address("203.0.113.7"), ip_address("10.0.0.7")]
    pipeline = a_pipeline(policy=policy, resolver=FakeResolver({"a.example": addresses}))
    await pipeline.handle(a_call("open", "https://a.example/"))
    assert policy.judged[0][1] == {"a.example": addresses}


async def test_a_name_that_is_not_answered_in_time_has_no_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
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


@pytest.mark.parametrize("session_id", ["", "../x", "-a", ".a", "a" * 65, "a\n", "a b", 5, None, ["a"]])
async def test_a_session_id_that_could_not_exist_is_not_echoed(session_id: JsonValue) -> None:
    assert (await a_pipeline().handle(a_call(session_id=session_id))).session_id == ""


@pytest.mark.parametrize("session_id", ["a", "_a", "9", "A.b-c_d", "a" * 64])
async def test_a_session_id_is_echoed(session_id: str) -> None:
    assert (await a_pipeline().handle(a_call(session_id=session_id))).session_id == session_id


@pytest.mark.parametrize(("tool", "error"), [("run_shell", PolicyBlocked), ("browser_shell", UnknownTool)])
async def test_a_tool_that_is_not_offered_is_an_error_of_the_protocol_and_recorded(
    tool: str, error: type[BrowserShellError]
) -> None:
    audit, sandbox = RecordingAudit(), RecordingSandbox()
    with pytest.raises(error):
        await a_pipeline(audit=audit, sandbox=sandbox).handle(a_call(tool=tool))
    assert sandbox.ran == []
    assert audit.kinds == REFUSED
    assert audit.records[-1].rule_id.startswith("tool.")


async def test_a_long_tool_name_does_not_fill_the_log() -> None:
    audit = RecordingAudit()
    with pytest.raises(UnknownTool):
        await a_pipeline(audit=audit).handle(a_call(tool="x" * 5000))
    assert len(audit.records[0].tool) == 64


@pytest.mark.promise("audit:no-record-no-run")
@pytest.mark.parametrize("full_at", [RecordKind.MCP_TOOL_CALL, RecordKind.SANDBOX_EXEC])
async def test_nothing_runs_when_the_call_cannot_be_recorded(full_at: RecordKind) -> None:
    sandbox = RecordingSandbox()
    outcome = await a_pipeline(audit=FullDiskAudit(full_at=full_at), sandbox=sandbox).handle(a_call())
    assert (outcome.exit_code, outcome.error) == (75, ErrorCode.AUDIT_UNAVAILABLE)
    assert sandbox.ran == []


async def test_an_unknown_tool_on_a_full_disk_is_not_answered_as_usual() -> None:
    outcome = await a_pipeline(audit=FullDiskAudit()).handle(a_call(tool="nonsense"))
    assert outcome.error is ErrorCode.AUDIT_UNAVAILABLE


async def test_a_refusal_that_cannot_be_recorded_says_so() -> None:
    pipeline = a_pipeline(hooks=[RefusingHook()], audit=FullDiskAudit(full_at=RecordKind.POLICY_BLOCKED))
    assert (await pipeline.handle(a_call())).error is ErrorCode.AUDIT_UNAVAILABLE


async def test_a_command_that_ran_keeps_its_result_when_its_end_cannot_be_recorded() -> None:
    pipeline = a_pipeline(audit=FullDiskAudit(full_at=RecordKind.TOOL_FINISHED))
    assert (await pipeline.handle(a_call())).exit_code == 0


async def test_a_log_that_hangs_at_the_end_does_not_hang_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline_module, "LAST_RECORD_SECONDS", 0.01)
    assert (await a_pipeline(audit=HangingAudit()).handle(a_call())).exit_code == 0


async def test_a_hook_may_refuse() -> None:
    audit, sandbox = RecordingAudit(), RecordingSandbox()
    outcome = await a_pipeline(hooks=[RefusingHook()], audit=audit, sandbox=sandbox).handle(a_call())
    assert (outcome.error, outcome.rule_id) == (ErrorCode.POLICY_BLOCKED, "acme.sunday")
    assert sandbox.ran == []
    assert audit.kinds == REFUSED


@pytest.mark.promise("hooks:crash-refuses")
async def test_a_hook_that_crashes_before_refuses_the_call() -> None:
    sandbox = RecordingSandbox()
    outcome = await a_pipeline(hooks=[CrashingBeforeHook()], sandbox=sandbox).handle(a_call())
    assert (outcome.exit_code, outcome.error, outcome.rule_id) == (126, ErrorCode.HOOK_FAILED, "hook.before")
    assert sandbox.ran == []


@pytest.mark.promise("hooks:crash-withholds")
async def test_a_hook_that_crashes_after_withholds_the_result() -> None:
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


async def test_a_hook_may_withhold_a_result() -> None:
    outcome = await a_pipeline(hooks=[WithholdingHook()]).handle(a_call())
    assert (outcome.error, outcome.rule_id, outcome.stdout) == (ErrorCode.POLICY_BLOCKED, "acme.secret", "")


@pytest.mark.parametrize("hook", [SleepingHook(), SleepingAfterHook()])
async def test_a_hook_that_hangs_has_failed(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline_module, "HOOKS_SECONDS", 0.01)
    assert (await a_pipeline(hooks=[hook]).handle(a_call())).error is ErrorCode.HOOK_FAILED


@pytest.mark.promise("policy:judges-what-runs")
async def test_the_policy_judges_the_plan_that_the_hooks_left_and_that_one_runs() -> None:
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
async def test_faults_of_the_sandbox_are_outcomes(sandbox: BrokenSandbox, error: ErrorCode, exit_code: int) -> None:
    audit = RecordingAudit()
    outcome = await a_pipeline(sandbox=sandbox, audit=audit).handle(a_call())
    assert (outcome.error, outcome.exit_code) == (error, exit_code)
    assert outcome.stderr.startswith(f"{error.name}: ")
    assert "secret" not in outcome.stderr
    assert audit.kinds == RAN
    assert audit.records[-1].error == error.name


async def test_try_later_says_when() -> None:
    assert (await a_pipeline(sandbox=full_sandbox()).handle(a_call())).retry_after_seconds == 5


async def test_a_sandbox_that_ignores_its_deadline_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline_module, "RUNNER_GRACE_SECONDS", -29.99)
    sandbox = HangingSandbox()
    assert (await a_pipeline(sandbox=sandbox).handle(a_call())).error is ErrorCode.TIMEOUT
    assert sandbox.stopped.is_set()


@pytest.mark.promise("audit:cancelled-is-recorded")
async def test_a_cancelled_call_stops_the_sandbox_and_its_end_is_recorded() -> None:
    audit, sandbox = RecordingAudit(), HangingSandbox()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(a_pipeline(audit=audit, sandbox=sandbox).handle, a_call())
        with anyio.fail_after(5):
            await sandbox.begun.wait()
        tasks.cancel_scope.cancel()
    assert sandbox.stopped.is_set()
    assert audit.kinds == RAN
    assert (audit.records[-1].error, audit.records[-1].exit_code) == ("CANCELLED", None)


async def test_secrets_in_a_refusal_are_hidden_and_long_reasons_cut() -> None:
    sandbox = BrokenSandbox(error=TryLater("https://u:s3cret@a.example/ " + "x" * 50_000))
    outcome = await a_pipeline(sandbox=sandbox).handle(a_call())
    assert "s3cret" not in outcome.stderr
    assert len(outcome.stderr) < 7000


async def test_half_a_surrogate_pair_does_not_break_the_answer() -> None:
    sandbox = RecordingSandbox(result=CommandResult(exit_code=0, data="a\ud800b", message="\udc00"))
    outcome = await a_pipeline(sandbox=sandbox).handle(a_call())
    assert json.loads(outcome.stdout.encode()) == "a\ufffdb"
    assert outcome.stderr.encode()


async def test_a_timeout_error_of_python_is_not_taken_for_ours() -> None:
    outcome = await a_pipeline(sandbox=BrokenSandbox(error=TimeoutError())).handle(a_call())
    assert outcome.error is ErrorCode.INTERNAL_ERROR
    assert issubclass(ExecutionTimedOut, TimeoutError)


def test_tools_are_those_of_the_registry() -> None:
    assert [tool.name for tool in a_pipeline().tools()] == ["browser-shell"]


@pytest.mark.promise("limits:refused-is-recorded")
async def test_a_call_over_a_limit_does_not_run_is_told_when_to_come_back_and_is_recorded() -> None:
    audit, sandbox = RecordingAudit(), RecordingSandbox()
    pipeline = a_pipeline(limits=a_local_gate(calls_per_minute=1), audit=audit, sandbox=sandbox)
    await pipeline.handle(a_call())
    outcome = await pipeline.handle(a_call())
    assert (outcome.exit_code, outcome.error, outcome.rule_id) == (75, ErrorCode.RATE_LIMITED, "limits.rate")
    assert outcome.retry_after_seconds == 61
    assert len(sandbox.ran) == 1
    assert audit.kinds == RAN + REFUSED
    assert [record.rule_id for record in audit.records[4:]] == ["limits.rate", "limits.rate"]


async def test_limits_go_before_policy_and_hooks() -> None:
    pipeline = a_pipeline(
        limits=a_local_gate(budget={"max_retries": 0}), policy=FakePolicy(blocked_hosts=frozenset({"bad.example"}))
    )
    call = a_call("open", "https://bad.example/")
    assert [(await pipeline.handle(call)).error for _ in range(2)] == [
        ErrorCode.POLICY_BLOCKED,
        ErrorCode.BUDGET_EXCEEDED,
    ]


async def test_a_name_that_no_tool_has_is_answered_as_ever_and_uses_up_nothing() -> None:
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
async def test_a_cancelled_call_gives_its_place_back() -> None:
    sandbox = HangingSandbox()
    gate = a_local_gate(concurrent_calls=1)
    pipeline = a_pipeline(limits=gate, sandbox=sandbox)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pipeline.handle, a_call())
        with anyio.fail_after(5):
            await sandbox.begun.wait()
        assert (await pipeline.handle(a_call("open"))).rule_id == "limits.concurrency"
        tasks.cancel_scope.cancel()
    await gate.admit(a_call())


async def test_a_run_beyond_its_tasks_time_is_stopped() -> None:
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
async def test_what_was_typed_is_in_one_record_and_only_as_a_secret(argv: tuple[str, ...], text: str | None) -> None:
    audit = RecordingAudit()
    await a_pipeline(audit=audit).handle(a_call(*argv))
    found = [record.text.reveal() if record.text else None for record in audit.records]
    assert found == [None, text, None]


async def test_a_refused_text_is_recorded_as_a_secret_too() -> None:
    audit = RecordingAudit()
    await a_pipeline(audit=audit, hooks=[RefusingHook()]).handle(a_call("fill", "#pin", "s3cret"))
    assert [record.text is not None for record in audit.records] == [False, True, False]


async def test_records_say_how_long_it_took_to_decide_and_to_run_and_whose_trace_it_is() -> None:
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
async def test_a_command_refused_as_such_has_a_record_of_its_own(
    argv: tuple[str, ...], kinds: list[str], subcommand: str
) -> None:
    audit = RecordingAudit()
    await a_pipeline(audit=audit, registry=ToolRegistry([BrowserShellTool()])).handle(a_call(*argv))
    assert audit.kinds == ["MCP_TOOL_CALL", *kinds, "TOOL_FINISHED"]
    assert {record.subcommand for record in audit.records} == {subcommand}
    assert "s3cret" not in repr(audit.records)


class ProgressRunner:
    """Reports progress with a secret in the message."""

    async def run(self, call: ToolCall, plan: BrowserCommand, tell: ReportProgress) -> CommandResult:
        await tell(1.0, 60.0, "GET /?access_token=s3cret")
        return CommandResult(exit_code=0)


@pytest.mark.promise("results:redacted")
async def test_secrets_in_progress_messages_are_redacted() -> None:
    messages: list[str] = []

    async def on_progress(done: float, total: float, message: str) -> None:
        await anyio.lowlevel.checkpoint()
        messages.append(message)

    await replace(a_pipeline(), runner=ProgressRunner()).handle(a_call(), on_progress)
    assert messages == ["GET /?access_token=[redacted]"]
