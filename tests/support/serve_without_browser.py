"""A server without a browser, for the conformance suites and tests that need a separate process.

python -m support.serve_without_browser http 8080
python -m support.serve_without_browser stdio
python -m support.serve_without_browser stdio-hanging
"""

from __future__ import annotations

import sys

import anyio

from browser_shell.core.calls import Attachment, BrowserCommand, CommandResult, ToolCall
from browser_shell.core.ports import ReportProgress
from browser_shell.hooks.chain import standard_chain
from browser_shell.http.gateway import Gateway
from browser_shell.http.server import listen_on, serve_listener
from browser_shell.http.tokens import NoAuth
from browser_shell.mcp_server.stdio import run_stdio
from browser_shell.ops.metrics import Metrics
from browser_shell.pipeline import Pipeline
from browser_shell.runner import ExecutionRunner
from browser_shell.server.common import cancel_on_signal
from browser_shell.tools.browser_shell import BrowserShellTool
from browser_shell.tools.registry import ToolRegistry
from support.fakes import (
    FakeClock,
    FakePerson,
    FakePolicy,
    FakeResolver,
    HangingSandbox,
    NoLimits,
    RecordingActivity,
    RecordingAudit,
    RecordingSandbox,
    numbered_ids,
)
from support.loopback_server import NO_RATE_LIMIT

PICTURE = Attachment(mime_type="image/png", content=b"\x89PNG\r\n\x1a\n", name="picture.png")


async def main(mode: str, port: int = 0) -> None:
    pipeline = Pipeline(
        registry=ToolRegistry([BrowserShellTool()]),
        limits=NoLimits(),
        hooks=standard_chain(),
        policy=FakePolicy(blocked_hosts=frozenset({"blocked.example"})),
        resolver=FakeResolver(),
        audit=RecordingAudit(),
        runner=ExecutionRunner(browser=_LoggingSandbox() if mode == "stdio-hanging" else _sandbox_with_picture()),
        human=FakePerson(),
        show_activity=RecordingActivity().add,
        clock=FakeClock(),
    )
    ids = iter(numbered_ids())
    if mode.startswith("stdio"):
        async with anyio.create_task_group() as foreground:
            foreground.start_soon(cancel_on_signal, foreground.cancel_scope)
            await run_stdio(pipeline, new_id=lambda: next(ids))
            foreground.cancel_scope.cancel()
        return
    gateway = Gateway(
        NO_RATE_LIMIT,
        handler=pipeline,
        authenticator=NoAuth(),
        viewer=None,
        audit=RecordingAudit(),
        clock=FakeClock(),
        new_id=lambda: next(ids),
        metrics=Metrics(),
    )
    await serve_listener(gateway, listen_on("127.0.0.1", port), on_ready=_announce)


class _LoggingSandbox(HangingSandbox):
    """Logs to standard error when a call starts and when it is cancelled."""

    async def run(self, call: ToolCall, plan: BrowserCommand, report_progress: ReportProgress) -> CommandResult:
        _log("begun")
        try:
            return await super().run(call, plan, report_progress)
        finally:
            _log("stopped")


def _sandbox_with_picture() -> RecordingSandbox:
    return RecordingSandbox(result=CommandResult(exit_code=0, data={"ok": True}, attachments=(PICTURE,)))


def _announce(port: int) -> None:
    _log(f"http://127.0.0.1:{port}/mcp")


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0)
