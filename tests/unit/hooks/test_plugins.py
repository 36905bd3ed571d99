from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from browser_shell.core.errors import ConfigurationInvalid, ErrorCode
from browser_shell.core.results import CommandResult
from browser_shell.hooks.plugins import GROUP, installed_hooks, load_hooks
from support.fakes import RecordingSandbox, a_call, a_pipeline

DOCUMENT = Path(__file__).parents[3] / "docs" / "hooks.md"


def code_block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture(scope="module")
def site_with_the_example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package of docs/hooks.md, built and installed as its reader would."""
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


async def test_an_installed_hook_refuses_and_changes_results(
    site_with_the_example: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(site_with_the_example)
    sandbox = RecordingSandbox(result=CommandResult(exit_code=0, data={"text": "call +49 89 1234567"}))
    pipeline = a_pipeline(hooks=installed_hooks(), sandbox=sandbox)

    refused = await pipeline.handle(a_call("press", "Enter"))
    assert (refused.error, refused.rule_id) == (ErrorCode.POLICY_BLOCKED, "acme.no-enter")
    assert sandbox.ran == []

    shown = await pipeline.handle(a_call("get", "text", "body"))
    assert shown.stdout == '{"text":"call [phone]"}\n'


def test_without_plugins_there_are_no_hooks() -> None:
    assert load_hooks([]) == ()


def test_hooks_are_ordered_by_name() -> None:
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
        "support.fake_hooks:NamingHook",  # its constructor wants a name
        "support.fakes:FakeClock",  # no hook at all
    ],
)
def test_a_hook_that_cannot_be_used_stops_the_start_and_is_named(value: str) -> None:
    with pytest.raises(ConfigurationInvalid, match="acme"):
        load_hooks([EntryPoint("acme", value, GROUP)])
