from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from browser_shell.core.calls import BrowserCommand, CommandResult, ContainerJob, JobRunner, ToolCall
from browser_shell.core.errors import ConfigurationInvalid, ErrorCode
from browser_shell.core.json_values import JsonValue
from browser_shell.hooks.chain import GROUP, HookChain, installed_hooks, job_chain, load_hooks, standard_chain
from support.fake_hooks import CrashingAfterHook, NamingHook
from support.fakes import RecordingSandbox, a_call, a_pipeline, a_plan


async def test_before_hooks_run_in_order() -> None:
    plan = await HookChain(hooks=(NamingHook("a"), NamingHook("b"))).before(a_call(), a_plan("click"))
    assert plan.operands == ("a", "b")


async def test_after_hooks_run_in_reverse_order() -> None:
    chain = HookChain(hooks=(NamingHook("a"), NamingHook("b")))
    assert (await chain.after(a_call(), a_plan(), CommandResult(exit_code=0))).message == "ba"


async def test_a_hook_without_before_is_skipped_before_the_call() -> None:
    assert await HookChain(hooks=(CrashingAfterHook(),)).before(a_call(), a_plan()) == a_plan()


class ForgetfulHook:
    async def before(self, call: ToolCall, plan: BrowserCommand) -> BrowserCommand:
        return None  # type: ignore[return-value]  # the mistake under test

    async def after(self, call: ToolCall, plan: BrowserCommand, result: CommandResult) -> CommandResult:
        return None  # type: ignore[return-value]  # the mistake under test


async def test_a_hook_without_a_return_value_is_an_error() -> None:
    chain = HookChain(hooks=(ForgetfulHook(),))
    with pytest.raises(TypeError):
        await chain.before(a_call(), a_plan())
    with pytest.raises(TypeError):
        await chain.after(a_call(), a_plan(), CommandResult(exit_code=0))


class LeakyHook:
    async def after(self, call: ToolCall, plan: BrowserCommand, result: CommandResult) -> CommandResult:
        return CommandResult(exit_code=0, data={"lifecycle": 1, "note": "Bearer abcdef123456", "long": "x" * 5000})


async def test_plugin_results_are_normalised_redacted_and_truncated() -> None:
    chain = standard_chain(max_output_characters=1000, plugins=[LeakyHook()])
    result = await chain.after(a_call(), a_plan(), CommandResult(exit_code=0))
    assert isinstance(result.data, dict)
    assert set(result.data) == {"note", "long"}
    assert result.data["note"] == "Bearer [redacted]"
    assert len(str(result.data["long"])) < 1000
    assert "OUTPUT_TRUNCATED" in result.message


async def test_redaction_can_be_turned_off() -> None:
    data = {"text": "Bearer abcdefghijklmnopqrstuvwxyz0123456789"}
    plain = await standard_chain(redact=False).after(a_call(), a_plan(), CommandResult(exit_code=0, data=dict(data)))
    redacted = await standard_chain().after(a_call(), a_plan(), CommandResult(exit_code=0, data=dict(data)))
    assert plain.data == data
    assert redacted.data != data


JOB = ContainerJob(name="run_pytest", runner=JobRunner.PYTEST, timeout_seconds=60)


async def test_job_output_is_redacted_and_hashes_are_kept() -> None:
    data: JsonValue = {
        "output": "Authorization: Bearer abcdef0123456789abcdef",
        "artifacts": [{"path": "a.txt", "sha256": "0" * 64}],
        "evidence_sha256": "0" * 64,
    }
    result = await job_chain().after(a_call(), JOB, CommandResult(exit_code=0, data=data))
    assert isinstance(result.data, dict)
    assert "abcdef0123456789" not in str(result.data["output"])
    assert result.data["artifacts"] == [{"path": "a.txt", "sha256": "0" * 64}]
    assert result.data["evidence_sha256"] == "0" * 64


DOCUMENT = Path(__file__).parents[3] / "docs" / "how-to" / "write-a-hook.md"


def code_block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture(scope="module")
def site_with_the_example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build and install the example package of docs/how-to/write-a-hook.md."""
    source, site = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    (source / "acme_hooks.py").write_text(code_block("python"), encoding="utf-8")
    (source / "pyproject.toml").write_text(code_block("toml"), encoding="utf-8")
    offline = ["--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "--quiet"]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *offline, "--target", site, source], check=True, timeout=120
    )
    return site


def test_the_documented_example_is_short() -> None:
    assert len([line for line in code_block("python").splitlines() if line.strip()]) <= 20


async def test_an_installed_hook_refuses_calls_and_changes_results(
    site_with_the_example: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(site_with_the_example)
    sandbox = RecordingSandbox(result=CommandResult(exit_code=0, data={"text": "call +49 89 1234567"}))
    pipeline = a_pipeline(hooks=installed_hooks(GROUP), sandbox=sandbox)

    refused = await pipeline.handle(a_call("press", "Enter"))
    assert (refused.error, refused.rule_id) == (ErrorCode.POLICY_BLOCKED, "acme.no-enter")
    assert sandbox.ran == []

    changed = await pipeline.handle(a_call("get", "text", "body"))
    assert changed.stdout == '{"text":"call [phone]"}\n'


def test_no_entry_points_give_no_hooks() -> None:
    assert load_hooks([]) == ()


def test_hooks_are_loaded_in_order_of_their_names() -> None:
    found = [
        EntryPoint("b", "support.fake_hooks:RefusingHook", GROUP),
        EntryPoint("a", "support.fake_hooks:CrashingAfterHook", GROUP),
    ]
    assert [type(hook).__name__ for hook in load_hooks(found)] == ["CrashingAfterHook", "RefusingHook"]


@pytest.mark.promise("hooks:no-start-without-an-installed-hook")
@pytest.mark.parametrize(
    "value",
    [
        "no_such_module_at_all:Hook",
        "support.fakes:NoSuchHook",
        "support.fake_hooks:NamingHook",  # its constructor requires a name
        "support.fakes:FakeClock",  # not a hook
    ],
)
def test_a_hook_that_cannot_be_loaded_prevents_the_start(value: str) -> None:
    with pytest.raises(ConfigurationInvalid, match="acme"):
        load_hooks([EntryPoint("acme", value, GROUP)])
