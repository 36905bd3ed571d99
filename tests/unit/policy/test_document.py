"""Sections of the policy file: defaults, ranges and invalid values."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from browser_shell.core.access import ViewMode
from browser_shell.core.containers import ContainerLimits
from browser_shell.policy.document import PolicyDocument
from browser_shell.policy.loading import load_policy
from support.policies import load, mistake

SPEC_EXAMPLE = """
{"open": {"allow_schemes": ["http", "https"], "allow_about_blank": true,
          "allow_hosts": ["example.com"], "allow_host_suffixes": [".example.com"]}}
"""


def test_the_example_in_the_specification_is_valid() -> None:
    policy = load_policy(SPEC_EXAMPLE, source="policy.json")
    assert policy.open.allow_hosts == ("example.com",)
    assert policy.open.allow_host_suffixes == (".example.com",)


def test_an_empty_document_is_the_safe_default() -> None:
    policy = load({})
    assert policy == PolicyDocument()
    assert policy.open.allow_schemes == ("http", "https")
    assert policy.open.allow_ports is None
    assert policy.commands.allow is None
    assert (policy.output.max_characters, policy.output.screenshot_format) == (30_000, "jpeg")
    assert (policy.sessions.max, policy.sessions.idle_seconds) == (8, 900)
    assert policy.unsafe_settings() == []


@pytest.mark.parametrize(
    ("data", "path"),
    [
        ([], "the document"),
        (None, "the document"),
        ({"version": 2}, "version"),
        ({"version": "1"}, "version"),
        ({"open": []}, "open"),
        ({"open": {"allow_about_blank": "yes"}}, "open.allow_about_blank"),
        ({"open": {"allow_schemes": ["file"]}}, "open.allow_schemes.0"),
        ({"open": {"allow_hosts": ["*.example.com"]}}, "open.allow_hosts.0"),
        ({"open": {"allow_host_suffixes": ["127.0.0.1"]}}, "open.allow_host_suffixes.0"),
        ({"open": {"allow_ports": []}}, "open.allow_ports"),
        ({"open": {"allow_ports": [0]}}, "open.allow_ports"),
        ({"open": {"allow_ports": [22]}}, "open.allow_ports"),
        ({"open": {"allow_ports": [True]}}, "open.allow_ports"),
        ({"browser": {"trust_certificates": ["authority.pem"]}}, "browser.trust_certificates.0"),
        ({"browser": {"trust_certificates": ["/a\0b"]}}, "browser.trust_certificates.0"),
        ({"browser": {"trust_certificates": "/a.pem"}}, "browser.trust_certificates"),
        ({"browser": {"allow_login_prompts": ["intranet.example"]}}, "browser.allow_login_prompts.0"),
        ({"browser": {"allow_login_prompts": ["https://a.example/path"]}}, "browser.allow_login_prompts.0"),
        ({"browser": {"allow_login_prompts": ["https://a.example?q"]}}, "browser.allow_login_prompts.0"),
        ({"browser": {"allow_login_prompts": ["https://*.example"]}}, "browser.allow_login_prompts.0"),
        ({"browser": {"allow_login_prompts": ["ftp://a.example"]}}, "browser.allow_login_prompts.0"),
        ({"browser": {"allow_login_prompts": ["about:blank"]}}, "browser.allow_login_prompts.0"),
        ({"commands": {"allow": []}}, "commands.allow"),
        ({"commands": {"allow": ["open", "eval"]}}, "commands.allow.1"),
        ({"commands": {"allow": ["nonsense"]}}, "commands.allow.0"),
        ({"output": {"max_characters": 999}}, "output.max_characters"),
        ({"output": {"max_characters": 200_001}}, "output.max_characters"),
        ({"output": {"screenshot_format": "gif"}}, "output.screenshot_format"),
        ({"output": {"screenshot_quality": 0}}, "output.screenshot_quality"),
        ({"output": {"redact": 1}}, "output.redact"),
        ({"sessions": {"max": 0}}, "sessions.max"),
        ({"sessions": {"max": 65}}, "sessions.max"),
        ({"sessions": {"max": 8.0}}, "sessions.max"),
        ({"sessions": {"max_per_subject": 0}}, "sessions.max_per_subject"),
        ({"sessions": {"max_per_subject": 65}}, "sessions.max_per_subject"),
        ({"sessions": {"max_per_subject": True}}, "sessions.max_per_subject"),
        ({"sessions": {"idle_seconds": 0}}, "sessions.idle_seconds"),
        ({"viewing": {"allow_subjects": "alice"}}, "viewing.allow_subjects"),
        ({"viewing": {"allow_subjects": [""]}}, "viewing.allow_subjects.0"),
        ({"viewing": {"control_subjects": ["a" * 256]}}, "viewing.control_subjects.0"),
        ({"viewing": {"control_subjects": [1]}}, "viewing.control_subjects.0"),
    ],
)
def test_an_invalid_value_is_refused_and_its_field_named(data: object, path: str) -> None:
    assert path in mistake(data)


@pytest.mark.parametrize("entry", ["10.1.0.0/16", "127.0.0.1", "127.0.0.1:8080", "[::1]:8080", "::1", "fc00::/8"])
def test_private_addresses_can_be_exempted(entry: str) -> None:
    policy = load({"open": {"unsafe_allow_addresses": [entry]}})
    assert policy.unsafe_settings() == [f"open.unsafe_allow_addresses: {entry} is reachable"]


@pytest.mark.promise("policy:no-metadata")
@pytest.mark.parametrize(
    "entry",
    [
        *("169.254.169.254", "169.254.169.254:80", "0.0.0.0/0", "168.63.129.16/32", "[fd00:ec2::254]:80", "::/0"),
        *("localhost", "10.0.0.1/8", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:", "fe80::1%eth0", "", "127.1"),
        *("300.0.0.1:80", "::1:8080:zz"),
    ],
)
def test_invalid_exemptions_are_refused(entry: str) -> None:
    assert "open.unsafe_allow_addresses.0" in mistake({"open": {"unsafe_allow_addresses": [entry]}})


def test_a_host_can_have_a_fixed_address() -> None:
    policy = load({"open": {"unsafe_resolve": {"Staging.Example": "[::1]:8080"}}})
    assert policy.open.unsafe_resolve == {"staging.example": "[::1]:8080"}
    assert policy.unsafe_settings() == ["open.unsafe_resolve: staging.example is dialled at [::1]:8080 without DNS"]


@pytest.mark.parametrize(
    "entries",
    [
        {"a.example": "127.0.0.1"},
        {"a.example": "localhost:80"},
        {"a.example": "169.254.169.254:80"},
        {"a.example": "999.0.0.1:80"},
        {"127.0.0.1": "127.0.0.1:80"},
        {"a.example": "127.0.0.1:80", "A.example.": "127.0.0.2:80"},
        {"": "127.0.0.1:80"},
        [],
    ],
)
def test_invalid_fixed_addresses_are_refused(entries: object) -> None:
    assert "open.unsafe_resolve" in mistake({"open": {"unsafe_resolve": entries}})


def test_policies_with_the_same_meaning_have_the_same_digest() -> None:
    one = load({"open": {"allow_hosts": ["EXAMPLE.com"]}, "sessions": {"max": 8}})
    other = load(json.loads('{"sessions": {}, "open": {"allow_hosts": ["example.com"]}}'))
    assert one.digest() == other.digest()
    assert one.digest() != load({}).digest()
    assert len(one.digest()) == 64


@pytest.mark.promise("viewing:policy")
@pytest.mark.parametrize(
    ("section", "subject", "may_watch", "may_control"),
    [
        ({}, "anyone", True, True),
        ({"allow_subjects": []}, "anyone", False, False),
        ({"allow_subjects": ["ann"]}, "ann", True, True),
        ({"allow_subjects": ["ann"]}, "Ann", False, False),
        ({"control_subjects": []}, "ann", True, False),
        ({"control_subjects": ["ann"]}, "ann", True, True),
        ({"control_subjects": ["ann"]}, "bob", True, False),
        ({"allow_subjects": ["bob"], "control_subjects": ["ann"]}, "ann", False, False),
        ({"allow_subjects": ["ann"], "control_subjects": ["ann"]}, "ann", True, True),
    ],
)
def test_subjects_that_may_watch_and_control(section: object, subject: str, may_watch: bool, may_control: bool) -> None:
    viewing = load({"viewing": section}).viewing
    assert viewing.decide(subject, ViewMode.VIEW).allowed is may_watch
    assert viewing.decide(subject, ViewMode.CONTROL).allowed is may_control


@pytest.mark.parametrize(
    ("limits", "tool", "subject", "slots"),
    [
        ({}, "browser-shell", "ann", 8),
        ({}, "run_pytest", "ann", 2),
        ({"concurrent_calls": 20}, "run_playwright", "ann", 2),
        ({"concurrent_calls": 1}, "run_playwright", "ann", 1),
        ({"tools": {"run_pytest": {"concurrent_calls": 6}}}, "run_pytest", "ann", 6),
        ({"tools": {"run_pytest": {"concurrent_calls": 6}}}, "run_playwright", "ann", 2),
        ({"subjects": {"ann": {"concurrent_calls": 5}}}, "run_pytest", "ann", 5),
        ({"subjects": {"ann": {"concurrent_calls": 5}}}, "run_pytest", "bob", 2),
    ],
)
def test_jobs_have_two_slots_unless_the_policy_names_tool_or_subject(
    limits: object, tool: str, subject: str, slots: int
) -> None:
    assert load({"limits": limits}).limits.of(subject, tool).concurrent_calls == slots


def test_an_override_replaces_single_values_of_a_budget() -> None:
    limits = load(
        {"limits": {"tools": {"run_pytest": {"budget": {"max_retries": 1}}}, "budget": {"elapsed_seconds": 7}}}
    ).limits
    budget = limits.of("ann", "run_pytest").budget
    assert (budget.max_retries, budget.elapsed_seconds, budget.window_seconds) == (1, 7, 3600)
    assert limits.of("ann", "browser-shell").budget.max_retries == 10


@pytest.mark.parametrize(
    ("limits", "path"),
    [
        ({"calls_per_minute": 0}, "limits.calls_per_minute"),
        ({"calls_per_day": None}, "limits.calls_per_day"),
        ({"concurrent_calls": "8"}, "limits.concurrent_calls"),
        ({"budget": {"elapsed_seconds": -1}}, "limits.budget.elapsed_seconds"),
        ({"tools": {"run_shell": {}}}, "limits.tools.run_shell"),
        ({"subjects": {"": {}}}, "limits.subjects"),
    ],
)
def test_limits_must_be_set_and_tools_must_exist(limits: object, path: str) -> None:
    assert path in mistake({"limits": limits})


@pytest.mark.promise("jobs:limits-only-narrow")
@pytest.mark.parametrize(
    ("section", "key", "largest", "beyond"),
    [
        ("sandbox", "memory_mib", 1024, 1025),
        ("sandbox", "cpus", 1.0, 1.1),
        ("sandbox", "timeout_seconds", 120, 121),
        ("sandbox", "pids", 256, 257),
        ("sandbox", "memory_mib", 384, 383),
        ("sandbox", "max_running", 16, 17),
    ],
)
def test_a_job_limit_cannot_exceed_its_ceiling(section: str, key: str, largest: float, beyond: float) -> None:
    load({section: {key: largest}})
    assert f"{section}.{key}" in mistake({section: {key: beyond}})


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"tools": {"allowlist": ["run_shell"]}}, "tools.allowlist.0: can never be allowed"),
        ({"tools": {"allowlist": ["browser-shell"]}}, "tools.allowlist.0"),
        ({"tools": {"allowlist": []}}, "tools.allowlist"),
        ({"tools": {"shell": True}}, "tools.shell is an unknown key"),
        ({"playwright": {"pictures": True}}, "playwright.pictures is an unknown key"),
        ({"playwright": {"videos": "yes"}}, "playwright.videos"),
        ({"sandbox": {"network": "host"}}, "sandbox.network is an unknown key"),
        ({"sandbox": {"mounts": []}}, "sandbox.mounts is an unknown key"),
        ({"sandbox": {"engine": "lxc"}}, "sandbox.engine"),
        ({"sandbox": {"workspace_roots": ["/"]}}, "sandbox.workspace_roots.0"),
        ({"sandbox": {"workspace_roots": ["a"]}}, "sandbox.workspace_roots.0"),
        ({"sandbox": {"workspace_roots": ["/a/../b"]}}, "sandbox.workspace_roots.0"),
        ({"sandbox": {"retention": {"max_age_hours": 0}}}, "sandbox.retention.max_age_hours"),
        ({"sandbox": {"retention": {"for_ever": True}}}, "sandbox.retention.for_ever is an unknown key"),
    ],
)
def test_an_invalid_job_section_is_refused_and_its_field_named(document: dict[str, Any], field: str) -> None:
    assert field in mistake(document)


def test_the_default_job_limits_are_those_of_the_specification() -> None:
    limits = load({}).sandbox.limits(120)
    assert limits == ContainerLimits(memory_bytes=1024 * 1024 * 1024, cpus=1.0, timeout_seconds=120)


@pytest.mark.parametrize("memory", [384, 512, 700, 1024])
def test_scratch_and_output_leave_memory_for_programs(memory: int) -> None:
    limits = load({"sandbox": {"memory_mib": memory}}).sandbox.limits(60)
    assert limits.scratch_bytes + limits.output_bytes + 192 * 1024 * 1024 <= limits.memory_bytes
    assert limits.output_bytes >= 64 * 1024 * 1024
    assert limits.timeout_seconds == 60


def test_the_policy_bounds_the_timeout_of_a_job() -> None:
    assert load({"sandbox": {"timeout_seconds": 30}}).sandbox.limits(60).timeout_seconds == 30


def sections(section: type[BaseModel]) -> Iterator[type[BaseModel]]:
    yield section
    for field in section.model_fields.values():
        for part in (field.annotation, *get_args(field.annotation)):
            if isinstance(part, type) and issubclass(part, BaseModel):
                yield from sections(part)


@pytest.mark.parametrize("section", dict.fromkeys(sections(PolicyDocument)), ids=lambda section: section.__name__)
def test_every_key_is_described_for_the_reference(section: type[BaseModel]) -> None:
    assert section.__doc__
    for name, field in section.model_fields.items():
        assert (field.description or "").endswith("."), name


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ({}, 4),
        ({"max": 9}, 4),
        ({"max": 2}, 1),
        ({"max": 1}, 1),
        ({"max": 8, "max_per_subject": None}, 4),
        ({"max": 8, "max_per_subject": 1}, 1),
        ({"max": 8, "max_per_subject": 8}, 8),
    ],
)
def test_one_subject_has_half_of_the_sessions_unless_the_policy_has_a_number(
    section: dict[str, int | None], expected: int
) -> None:
    assert load({"sessions": section}).sessions.max_of_one_subject == expected
