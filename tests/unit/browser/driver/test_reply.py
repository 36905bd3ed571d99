"""Whatever the driver prints, reading it is never an accident."""

from __future__ import annotations

import pytest

from browser_shell.browser.driver.reply import read_reply
from browser_shell.process.conversation import ProcessOutput


@pytest.mark.parametrize("printed", [b"", b"nonsense", b"[", b"\xff", b"[]", b"3", b"[" * 100_000 + b"]" * 100_000])
def test_what_cannot_be_understood_is_a_failure_that_says_so(printed: bytes) -> None:
    reply = read_reply(ProcessOutput(exit_code=0, stdout=printed, stderr=b"why\nmore", truncated=False))
    assert (reply.success, reply.code) == (False, "unreadable")
    assert reply.error


def test_only_the_drivers_own_yes_is_a_success() -> None:
    for exit_code, printed, success in (
        (0, b'[{"success":true,"result":1}]', True),
        (1, b'[{"success":true,"result":1}]', False),
        (0, b'[{"success":1,"result":1}]', False),
        (0, b'[{"success":true,"result":{"confirmation_required":true}}]', False),
        (0, b'[{"success":true},{"success":false,"error":"no"}]', False),
    ):
        assert (
            read_reply(ProcessOutput(exit_code=exit_code, stdout=printed, stderr=b"", truncated=False)).success
            is success
        )
