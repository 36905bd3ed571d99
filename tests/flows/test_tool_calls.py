"""Tool calls as an MCP client sees them, in both protocol eras, over a real socket."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from browser_shell.core.calls import Attachment, CommandResult
from browser_shell.core.errors import BrowserUnavailable, ErrorCode
from browser_shell.core.ports import StepRunner
from browser_shell.hooks.chain import standard_chain
from browser_shell.pipeline import Pipeline
from browser_shell.runner import ExecutionRunner
from browser_shell.tools.browser_shell import BrowserShellTool
from browser_shell.tools.registry import ToolRegistry
from support.fake_hooks import CrashingAfterHook
from support.fakes import (
    BrokenSandbox,
    FakeClock,
    FakePerson,
    FakePolicy,
    FakeResolver,
    FullDiskAudit,
    NoLimits,
    RecordingActivity,
    RecordingAudit,
    RecordingSandbox,
    a_pipeline,
    full_sandbox,
    timing_out_sandbox,
)
from support.wire import Connect, call_params

RESULT_KEYS = {"session_id", "exit_code", "stdout", "stderr"}


def pipeline_with_real_tool(sandbox: StepRunner) -> Pipeline:
    return Pipeline(
        registry=ToolRegistry([BrowserShellTool()]),
        limits=NoLimits(),
        hooks=standard_chain(),
        policy=FakePolicy(),
        resolver=FakeResolver(),
        audit=RecordingAudit(),
        runner=ExecutionRunner(browser=sandbox),
        human=FakePerson(),
        show_activity=RecordingActivity().add,
        clock=FakeClock(),
    )


@pytest.mark.promise("mcp:one-tool")
async def test_tools_list_has_one_tool_with_closed_schemas(connect: Connect) -> None:
    async with connect(pipeline_with_real_tool(RecordingSandbox())) as client:
        first, second = await client.request("tools/list"), await client.request("tools/list")
    assert first == second
    (tool,) = first["result"]["tools"]
    assert tool["name"] == "browser-shell"
    assert tool["inputSchema"]["additionalProperties"] is False
    assert set(tool["inputSchema"]["properties"]) == {"session_id", "argv", "then", "timeout_sec"}
    assert set(tool["outputSchema"]["properties"]) == RESULT_KEYS
    assert tool["outputSchema"]["additionalProperties"] is False
    assert set(tool["annotations"]) == {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}


async def test_text_and_structured_content_are_equal(connect: Connect) -> None:
    sandbox = RecordingSandbox(result=CommandResult(exit_code=0, data={"title": "Käse", "lifecycle": 1}))
    async with connect(pipeline_with_real_tool(sandbox)) as client:
        (tool,) = (await client.request("tools/list"))["result"]["tools"]
        result = (await client.request("tools/call", call_params("get", "title")))["result"]
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    assert result["structuredContent"] == {
        "session_id": "s1",
        "exit_code": 0,
        "stdout": '{"title":"Käse"}\n',
        "stderr": "",
    }
    assert result.get("isError", False) is False
    assert "code" not in result.get("_meta", {})
    Draft202012Validator(tool["outputSchema"]).validate(result["structuredContent"])


@pytest.mark.parametrize(
    ("pipeline", "error"),
    [
        (a_pipeline(policy=FakePolicy(blocked_hosts=frozenset({"bad.example"}))), ErrorCode.POLICY_BLOCKED),
        (a_pipeline(sandbox=timing_out_sandbox()), ErrorCode.TIMEOUT),
        (a_pipeline(sandbox=BrokenSandbox(error=BrowserUnavailable("down"))), ErrorCode.BROWSER_UNAVAILABLE),
        (a_pipeline(sandbox=full_sandbox()), ErrorCode.SESSION_LIMIT),
        (a_pipeline(sandbox=BrokenSandbox(error=KeyError("bug"))), ErrorCode.INTERNAL_ERROR),
        (a_pipeline(hooks=[CrashingAfterHook()]), ErrorCode.HOOK_FAILED),
        (a_pipeline(audit=FullDiskAudit()), ErrorCode.AUDIT_UNAVAILABLE),
    ],
)
async def test_refusals_and_faults_are_tool_results(connect: Connect, pipeline: Pipeline, error: ErrorCode) -> None:
    async with connect(pipeline) as client:
        result = (await client.request("tools/call", call_params("open", "https://bad.example/")))["result"]
    assert result["isError"] is True
    assert set(result["structuredContent"]) == RESULT_KEYS
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    assert result["structuredContent"]["exit_code"] == error.exit_code
    assert result["structuredContent"]["stderr"].startswith(f"{error.name}: ")
    assert (result["_meta"]["code"], result["_meta"]["name"]) == (error.number, error.name)


async def test_retryable_error_carries_retry_after(connect: Connect) -> None:
    async with connect(a_pipeline(sandbox=full_sandbox())) as client:
        result = (await client.request("tools/call", call_params()))["result"]
    assert (result["_meta"]["retry_after"], result["_meta"]["rule"]) == (5, "sessions.max")


async def test_invalid_arguments_are_a_tool_result(connect: Connect) -> None:
    async with connect(pipeline_with_real_tool(RecordingSandbox())) as client:
        result = (await client.request("tools/call", {"name": "browser-shell", "arguments": {"cmd": "ls"}}))["result"]
        without = (await client.request("tools/call", {"name": "browser-shell"}))["result"]
    assert (result["structuredContent"]["exit_code"], without["structuredContent"]["exit_code"]) == (2, 2)
    assert result["structuredContent"]["session_id"] == ""


@pytest.mark.promise("tools:no-shell")
async def test_run_shell_is_a_protocol_error_and_recorded(connect: Connect) -> None:
    audit = RecordingAudit()
    async with connect(a_pipeline(audit=audit)) as client:
        error = (await client.request("tools/call", call_params(tool="run_shell")))["error"]
    assert (error["code"], error["data"]) == (-32004, {"code": "POLICY_BLOCKED", "rule": "tool.reserved"})
    assert error["message"].startswith("POLICY_BLOCKED: ")
    assert audit.kinds == ["MCP_TOOL_CALL", "POLICY_BLOCKED", "TOOL_FINISHED"]


async def test_unknown_tool_is_a_protocol_error(connect: Connect) -> None:
    async with connect(a_pipeline()) as client:
        error = (await client.request("tools/call", call_params(tool="browser_shell")))["error"]
    assert (error["code"], error["data"]["rule"]) == (-32602, "tool.unknown")


@pytest.mark.promise("mcp:tools-only")
@pytest.mark.parametrize(
    "method", ["prompts/list", "resources/list", "completion/complete", "logging/setLevel", "nonsense"]
)
async def test_other_mcp_features_are_not_offered(connect: Connect, method: str) -> None:
    params: dict[str, dict[str, Any]] = {
        "completion/complete": {"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": "b"}},
        "logging/setLevel": {"level": "debug"},
    }
    async with connect(a_pipeline()) as client:
        assert (await client.request(method, params.get(method)))["error"]["code"] == -32601


async def test_images_and_documents_have_their_content_types(connect: Connect) -> None:
    attachments = (
        Attachment(mime_type="image/jpeg", content=b"jpeg", name="shot.jpg"),
        Attachment(mime_type="application/pdf", content=b"%PDF", name="page.pdf"),
    )
    sandbox = RecordingSandbox(result=CommandResult(exit_code=0, data={"path": "/run/x.jpg"}, attachments=attachments))
    async with connect(pipeline_with_real_tool(sandbox)) as client:
        text, image, document = (await client.request("tools/call", call_params("screenshot")))["result"]["content"]
    assert json.loads(text["text"])["stdout"] == "{}\n"
    assert (image["type"], image["mimeType"], base64.b64decode(image["data"])) == ("image", "image/jpeg", b"jpeg")
    assert document["type"] == "resource"
    assert document["resource"] == {
        "uri": "browser-shell://artifact/page.pdf",
        "mimeType": "application/pdf",
        "blob": base64.b64encode(b"%PDF").decode(),
    }


async def test_lone_surrogate_from_a_page_is_replaced(connect: Connect) -> None:
    sandbox = RecordingSandbox(result=CommandResult(exit_code=0, data=["\ud83d", "\U0001f600"]))
    async with connect(a_pipeline(sandbox=sandbox)) as client:
        result = (await client.request("tools/call", call_params()))["result"]
    assert json.loads(result["structuredContent"]["stdout"]) == ["\ufffd", "\U0001f600"]


async def test_lone_surrogate_from_a_client_does_not_break_the_server(connect: Connect) -> None:
    async with connect(a_pipeline()) as client:
        headers, content = client.build_request("tools/call", call_params("fill", "#a", "LONE"))
        raw = json.dumps(content).replace("LONE", "\\ud800").encode()
        assert (await client.http.post("/mcp", headers=headers, content=raw)).status_code in {200, 400}
        assert "result" in await client.request("tools/call", call_params())
