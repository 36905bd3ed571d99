"""Policy files as text, and the messages for mistakes in them."""

from __future__ import annotations

import pytest

from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.policy.loading import load_policy
from support.policies import load, mistake


def test_yaml_and_json_give_the_same_policy() -> None:
    text = "version: 1\nopen:\n  allow_hosts: [example.com]\nsessions: {max: 2}\n"
    assert load_policy(text, source="policy.yaml") == load(
        {"open": {"allow_hosts": ["example.com"]}, "sessions": {"max": 2}}
    )


def test_a_yaml_file_may_begin_with_a_brace() -> None:
    assert load_policy("{sessions: {max: 2}}", source="policy.yml").sessions.max == 2


@pytest.mark.promise("policy:unknown-keys")
@pytest.mark.parametrize(
    ("data", "path", "known"),
    [
        ({"opne": {}}, "opne is an unknown key", "open, browser, commands, output, sessions"),
        ({"open": {"allow_host": []}}, "open.allow_host is an unknown key", "allow_hosts"),
        ({"limits": {"calls": 1}}, "limits.calls is an unknown key", "calls_per_minute, calls_per_day"),
        ({"limits": {"budget": {"elapsed": 1}}}, "limits.budget.elapsed is an unknown key", "elapsed_seconds"),
        ({"limits": {"tools": {"run_pytest": {"rate": 1}}}}, "limits.tools.run_pytest.rate is", "calls_per_minute"),
        ({"limits": {"subjects": {"ann": {"budget": {"x": 1}}}}}, "subjects.ann.budget.x is an", "max_retries"),
        ({"sessions": {"idle": 1}}, "sessions.idle is an unknown key", "idle_seconds"),
    ],
)
def test_the_message_for_an_unknown_key_names_the_known_keys(data: object, path: str, known: str) -> None:
    message = mistake(data)
    assert path in message
    assert known in message


def test_the_message_names_five_mistakes_and_counts_the_rest() -> None:
    assert mistake({f"key{number}": 1 for number in range(40)}).endswith("and 35 more")


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
def test_ambiguous_or_invalid_text_is_refused_and_its_source_named(text: str, source: str) -> None:
    with pytest.raises(ConfigurationInvalid) as caught:
        load_policy(text, source=source)
    assert caught.value.public_message.startswith(source)
