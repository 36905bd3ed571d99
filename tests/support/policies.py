"""Policies for tests."""

from __future__ import annotations

import pytest

from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.policy.document import PolicyDocument
from browser_shell.policy.loading import policy_from


def load(data: object) -> PolicyDocument:
    return policy_from(data, source="test.json")


def mistake(data: object) -> str:
    """Return the message with which an invalid policy is refused."""
    with pytest.raises(ConfigurationInvalid) as caught:
        load(data)
    assert caught.value.rule_id == "policy.invalid"
    assert caught.value.public_message.startswith("test.json: ")
    return caught.value.public_message
