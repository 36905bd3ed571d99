"""A real HTTP server in its own process, with the real gate and a sandbox that only waits.

python tests/support/limits_server.py LIMITS_AS_JSON [REDIS_URL]

It has no browser, so that tests can kill it and change its clock.
"""

from __future__ import annotations

import json
import sys
import time

import anyio

from browser_shell.core.calls import BrowserCommand, CommandResult, ToolCall
from browser_shell.core.ports import ReportProgress
from browser_shell.limits.gate import open_gate
from browser_shell.policy.loading import policy_from
from browser_shell.server.common import SystemClock, new_call_id
from browser_shell.tools.browser_shell import BrowserShellTool
from browser_shell.tools.registry import ToolRegistry
from support.fakes import RecordingSandbox, a_pipeline
from support.loopback_server import serving


class WaitingSandbox(RecordingSandbox):
    async def run(self, call: ToolCall, plan: BrowserCommand, report_progress: ReportProgress) -> CommandResult:
        if plan.name == "wait":
            await anyio.sleep(int(plan.operands[0]) / 1000)
        return CommandResult(exit_code=0, data={"wall": time.time()})


async def main(limits: str, redis_url: str = "") -> None:
    rules = policy_from({"limits": json.loads(limits)}, source="test").limits
    clock = SystemClock()
    async with open_gate(rules, redis_url=redis_url, clock=clock, new_id=new_call_id) as gate:
        pipeline = a_pipeline(
            limits=gate, sandbox=WaitingSandbox(), registry=ToolRegistry([BrowserShellTool()]), clock=clock
        )
        async with serving(pipeline, clock=clock) as address:
            print(address, flush=True)
            await anyio.sleep_forever()


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "")
