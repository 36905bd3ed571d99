"""What a policy file may say, and what it is told when it is wrong."""

from __future__ import annotations

import json

import pytest

from browser_shell.core.access import ViewMode
from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.policy.document import PolicyDocument
from browser_shell.policy.loading import load_policy, policy_from

SPEC_EXAMPLE = """
{"open": {"allow_schemes": ["http", "https"], "allow_about_blank": true,
          "allow_hosts": ["example.com"], "allow_host_suffixes": [".example.com"]}}
"""


def load(data: object) -> PolicyDocument:
    return policy_from(data, source="test.json")


def mistake(data: object) -> str:
    with pytest.raises(ConfigurationInvalid) as caught:
        load(data)
    assert caught.value.rule_id == "policy.invalid"
    assert caught.value.public_message.startswith("test.json: ")
    return caught.value.public_message


def test_the_example_of_the_specification_is_valid() -> None:
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


def test_yaml_says_the_same_as_json() -> None:
    text = "version: 1\nopen:\n  allow_hosts: [example.com]\nsessions: {max: 2}\n"
    assert load_policy(text, source="policy.yaml") == load(
        {"open": {"allow_hosts": ["example.com"]}, "sessions": {"max": 2}}
    )


def test_braces_in_a_yaml_file_are_yaml() -> None:
    assert load_policy("{sessions: {max: 2}}", source="policy.yml").sessions.max == 2


@pytest.mark.promise("policy:unknown-keys")
@pytest.mark.parametrize(
    ("data", "path", "known"),
    [
        ({"opne": {}}, "opne is an unknown key", "open, commands, output, sessions"),
        ({"open": {"allow_host": []}}, "open.allow_host is an unknown key", "allow_hosts"),
        ({"limits": {"calls": 1}}, "limits.calls is an unknown key", "calls_per_minute, calls_per_day"),
        ({"limits": {"budget": {"elapsed": 1}}}, "limits.budget.elapsed is an unknown key", "elapsed_seconds"),
        ({"limits": {"tools": {"run_pytest": {"rate": 1}}}}, "limits.tools.run_pytest.rate is", "calls_per_minute"),
        ({"limits": {"subjects": {"ann": {"budget": {"x": 1}}}}}, "subjects.ann.budget.x is an", "max_retries"),
        ({"sessions": {"idle": 1}}, "sessions.idle is an unknown key", "idle_seconds"),
    ],
)
def test_an_unknown_key_is_an_error_that_names_it_and_the_known_ones(data: object, path: str, known: str) -> None:
    message = mistake(data)
    assert path in message
    assert known in message


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
        ({"open": {"allow_ports": []}}, "open.allow_ports"),
        ({"open": {"allow_ports": [0]}}, "open.allow_ports"),
        ({"open": {"allow_ports": [22]}}, "open.allow_ports"),
        ({"open": {"allow_ports": [True]}}, "open.allow_ports"),
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
        ({"sessions": {"idle_seconds": 0}}, "sessions.idle_seconds"),
        ({"viewing": {"allow_subjects": "alice"}}, "viewing.allow_subjects"),
        ({"viewing": {"allow_subjects": [""]}}, "viewing.allow_subjects.0"),
        ({"viewing": {"control_subjects": ["a" * 256]}}, "viewing.control_subjects.0"),
        ({"viewing": {"control_subjects": [1]}}, "viewing.control_subjects.0"),
    ],
)
def test_a_wrong_value_is_an_error_that_names_its_field(data: object, path: str) -> None:
    assert path in mistake(data)


def test_many_mistakes_are_not_all_told() -> None:
    assert mistake({f"key{number}": 1 for number in range(40)}).endswith("and 35 more")


@pytest.mark.parametrize(
    ("entry", "canonical"),
    [
        ("EXAMPLE.COM", "example.com"),
        ("münchen.example", "xn--mnchen-3ya.example"),
        ("faß.example", "xn--fa-hia.example"),
        ("example.com.", "example.com"),
        ("foo_bar.example", "foo_bar.example"),
    ],
)
def test_host_entries_are_brought_to_their_canonical_form(entry: str, canonical: str) -> None:
    policy = load({"open": {"allow_hosts": [entry], "allow_host_suffixes": [entry, "." + entry]}})
    assert policy.open.allow_hosts == (canonical,)
    assert policy.open.allow_host_suffixes == ("." + canonical, "." + canonical)


@pytest.mark.parametrize(
    "entry",
    [
        *("", ".", "..", "https://example.com", "example.com:443", "example.com/", "*.example.com", "*", "127.0.0.1"),
        *("0x7f.1", "[::1]", "::1", "user@example.com", "exa mple.com", "a..b", "a" * 64 + ".com", "a." * 127 + "com"),
        *("example.com?", "a,b", "exa\tmple.com", "%65xample.com", "\u2488.example"),
    ],
)
@pytest.mark.parametrize("field", ["allow_hosts", "allow_host_suffixes"])
def test_what_is_no_host_name_is_an_error_that_names_the_entry(field: str, entry: str) -> None:
    assert f"open.{field}.0" in mistake({"open": {field: [entry]}})


@pytest.mark.parametrize("entry", ["10.1.0.0/16", "127.0.0.1", "127.0.0.1:8080", "[::1]:8080", "::1", "fc00::/8"])
def test_addresses_for_development_can_be_exempted(entry: str) -> None:
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
def test_wrong_or_forbidden_exemptions_are_errors(entry: str) -> None:
    assert "open.unsafe_allow_addresses.0" in mistake({"open": {"unsafe_allow_addresses": [entry]}})


def test_a_host_can_be_sent_to_an_address() -> None:
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
def test_wrong_ways_to_send_a_host_are_errors(entries: object) -> None:
    assert "open.unsafe_resolve" in mistake({"open": {"unsafe_resolve": entries}})


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ('{"open": {}, "open": {}}', "p.json"),
        ('{"sessions": {"max": 1, "max": 2}}', "p.json"),
        ("open: {}\nopen: {}\n", "p.yaml"),
        ("sessions:\n  max: 1\n  max: 2\n", "p.yaml"),
        ('{"sessions": {"max": NaN}}', "p.json"),
        ('{"sessions": {"max": 1e999}}', "p.json"),
        ("{", "p.json"),
        ("[" * 100_000, "p.yaml"),
        ('{"a":' * 100_000, "p.json"),
        ("a: [", "p.yaml"),
        ("", "p.yaml"),
        ("sessions: 2020-01-01", "p.yaml"),
        ("sessions: {max: .nan}", "p.yaml"),
        ("!!python/object:os.system {}", "p.yaml"),
    ],
)
def test_text_with_two_meanings_or_none_is_an_error_that_names_the_source(text: str, source: str) -> None:
    with pytest.raises(ConfigurationInvalid) as caught:
        load_policy(text, source=source)
    assert caught.value.public_message.startswith(source)


def test_the_digest_is_of_the_meaning_and_not_of_the_text() -> None:
    one = load({"open": {"allow_hosts": ["EXAMPLE.com"]}, "sessions": {"max": 8}})
    other = load(json.loads('{"sessions": {}, "open": {"allow_hosts": ["example.com"]}}'))
    assert one.digest() == other.digest()
    assert one.digest() != load({}).digest()
    assert len(one.digest()) == 64


@pytest.mark.promise("viewing:policy")
@pytest.mark.parametrize(
    ("section", "subject", "watches", "touches"),
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
def test_who_may_watch_and_who_may_touch(section: object, subject: str, watches: bool, touches: bool) -> None:
    viewing = load({"viewing": section}).viewing
    assert viewing.decide(subject, ViewMode.VIEW).allowed is watches
    assert viewing.decide(subject, ViewMode.CONTROL).allowed is touches


@pytest.mark.parametrize(
    ("limits", "tool", "subject", "places"),
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
def test_jobs_have_few_places_unless_somebody_says_otherwise(
    limits: object, tool: str, subject: str, places: int
) -> None:
    assert policy_from({"limits": limits}, source="test").limits.of(subject, tool).concurrent_calls == places


def test_a_budget_is_overridden_value_by_value() -> None:
    limits = policy_from(
        {"limits": {"tools": {"run_pytest": {"budget": {"max_retries": 1}}}, "budget": {"elapsed_seconds": 7}}},
        source="test",
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
def test_no_limit_can_be_absent_and_no_tool_made_up(limits: object, path: str) -> None:
    assert path in mistake({"limits": limits})
