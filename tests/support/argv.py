"""Refusals of argv by the grammar."""

from __future__ import annotations

import pytest

from browser_shell.core.errors import ArgumentsInvalid
from browser_shell.policy.commands import parse_command


def refusal(*argv: str) -> ArgumentsInvalid:
    """Return the error with which the grammar refuses an argv."""
    with pytest.raises(ArgumentsInvalid) as caught:
        parse_command(argv)
    return caught.value
