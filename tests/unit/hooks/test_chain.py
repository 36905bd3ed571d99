from __future__ import annotations

import anyio
import pytest

from browser_shell.core.calls import ToolCall
from browser_shell.core.json_values import JsonValue
from browser_shell.core.plans import BrowserCommand
from browser_shell.core.results import CommandResult
from browser_shell.hooks.chain import HookChain
from browser_shell.hooks.standard import job_chain, standard_chain
from support.fake_hooks import CrashingAfterHook, NamingHook
from support.fakes import a_call, a_plan


async def test_before_runs_in_the_order_given() -> None:
    plan = await HookChain.of([NamingHook("a"), NamingHook("b")]).before(a_call(), a_plan("click"))
    assert plan.operands == ("a", "b")


async def test_after_runs_in_reverse() -> None:
    chain = HookChain.of([NamingHook("a"), NamingHook("b")])
    assert (await chain.after(a_call(), a_plan(), CommandResult(exit_code=0))).message == "ba"


async def test_a_hook_with_only_after_does_not_see_the_plan() -> None:
    assert await HookChain.of([CrashingAfterHook()]).before(a_call(), a_plan()) == a_plan()


class ForgetfulHook:
    async def before(self, call: ToolCall, plan: BrowserCommand) -> BrowserCommand:
        return None  # type: ignore[return-value]  # the mistake under test

    async def after(self, call: ToolCall, plan: BrowserCommand, result: CommandResult) -> CommandResult:
        return None  # type: ignore[return-value]  # the mistake under test


async def test_a_hook_that_forgets_its_return_is_an_error() -> None:
    chain = HookChain.of([ForgetfulHook()])
    with pytest.raises(TypeError):
        await chain.before(a_call(), a_plan())
    with pytest.raises(TypeError):
        await chain.after(a_call(), a_plan(), CommandResult(exit_code=0))


class LeakyHook:
    async def after(self, call: ToolCall, plan: BrowserCommand, result: CommandResult) -> CommandResult:
        return CommandResult(exit_code=0, data={"lifecycle": 1, "note": "Bearer abcdef123456", "long": "x" * 5000})


async def test_what_a_plugin_adds_is_normalised_redacted_and_bounded() -> None:
    chain = standard_chain(max_output_characters=1000, plugins=[LeakyHook()])
    result = await chain.after(a_call(), a_plan(), CommandResult(exit_code=0))
    assert isinstance(result.data, dict)
    assert set(result.data) == {"note", "long"}
    assert result.data["note"] == "Bearer [redacted]"
    assert len(str(result.data["long"])) < 1000
    assert "OUTPUT_TRUNCATED" in result.message


async def test_an_operator_can_turn_redaction_off() -> None:
    data = {"text": "Bearer abcdefghijklmnopqrstuvwxyz0123456789"}
    shown = await standard_chain(redact=False).after(a_call(), a_plan(), CommandResult(exit_code=0, data=dict(data)))
    hidden = await standard_chain().after(a_call(), a_plan(), CommandResult(exit_code=0, data=dict(data)))
    assert shown.data == data
    assert hidden.data != data


async def test_only_hooks_of_our_own_go_without_a_time_limit() -> None:
    chain = standard_chain()
    assert chain.never_waits
    with anyio.CancelScope() as cancelled:
        cancelled.cancel()  # Whatever waits now goes no further.
        assert await chain.before(a_call(), a_plan()) == a_plan()
        data: JsonValue = {"lifecycle": 1, "note": "Bearer abcdef123456", "long": "x" * 50_000}
        await chain.after(a_call(), a_plan(), CommandResult(exit_code=0, data=data))
    assert not cancelled.cancelled_caught
    assert job_chain().never_waits
    assert not standard_chain(plugins=[LeakyHook()]).never_waits
    assert not HookChain.of([NamingHook("a")]).never_waits
