"""Replies of the driver's daemon, well-formed or not."""

from __future__ import annotations

import pytest

from browser_shell.browser.driver.reply import parse_reply


@pytest.mark.parametrize("line", [b"", b"nonsense", b"[", b"\xff", b"[]", b"3", b"[" * 100_000 + b"]" * 100_000])
def test_a_line_that_is_no_reply_is_a_failure_with_a_code(line: bytes) -> None:
    reply = parse_reply(line)
    assert (reply.success, reply.code) == (False, "unreadable")
    assert reply.error


@pytest.mark.parametrize(
    ("line", "success"),
    [
        (b'{"success":true,"data":1}', True),
        (b'{"success":1,"data":1}', False),
        (b'{"success":"true"}', False),
        (b'{"success":true,"data":{"confirmation_required":true}}', False),
        (b'{"success":false,"error":"no"}', False),
        (b"{}", False),
    ],
)
def test_success_is_true_and_nothing_else(line: bytes, success: bool) -> None:
    reply = parse_reply(line)
    assert reply.success is success
    assert bool(reply.error) is not success


def test_code_error_warning_and_data_are_kept() -> None:
    reply = parse_reply(b'{"success":false,"data":{"x":1},"error":"gone","code":"tab_gone","warning":"w"}')
    assert (reply.data, reply.error, reply.code, reply.warning) == ({"x": 1}, "gone", "tab_gone", "w")
