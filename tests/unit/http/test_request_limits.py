"""Limits on the requests and viewer sockets of one subject."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from browser_shell.http.request_limits import (
    MAX_CONCURRENT_REQUESTS,
    MAX_SOCKETS,
    MAX_SOCKETS_PER_SUBJECT,
    MIN_BURST,
    RequestLimits,
)
from browser_shell.mcp_server.legacy_sessions import MAX_SESSIONS_PER_SUBJECT
from support.fakes import FakeClock


@pytest.mark.promise("limits:one-caller-leaves-room-for-others")
def test_requests_above_the_rate_wait_and_other_subjects_are_admitted() -> None:
    limits = RequestLimits(clock=FakeClock(), requests_per_second=10)
    assert [limits.admit("alice") for _ in range(MIN_BURST)] == [0] * MIN_BURST
    assert limits.admit("alice") == pytest.approx(0.1)
    assert limits.admit("bob") == 0


def test_concurrent_requests_are_limited() -> None:
    limits = RequestLimits(clock=FakeClock(), requests_per_second=1000)
    with ExitStack() as requests:
        for _ in range(MAX_CONCURRENT_REQUESTS):
            assert limits.admit("alice") == 0
            requests.enter_context(limits.open_request("alice"))
        assert limits.admit("alice") > 0
        assert limits.admit("bob") == 0
    assert limits.admit("alice") == 0


@pytest.mark.promise("limits:one-caller-leaves-room-for-others")
def test_sockets_are_limited_per_subject_and_in_total() -> None:
    limits = RequestLimits(clock=FakeClock())
    with ExitStack() as sockets:
        for _ in range(MAX_SOCKETS_PER_SUBJECT):
            assert limits.has_room_for_socket("alice")
            sockets.enter_context(limits.open_socket("alice"))
        assert not limits.has_room_for_socket("alice")
        for number in range(MAX_SOCKETS - MAX_SOCKETS_PER_SUBJECT):
            assert limits.has_room_for_socket(f"s{number}")
            sockets.enter_context(limits.open_socket(f"s{number}"))
        assert not limits.has_room_for_socket("bob")
    assert limits.has_room_for_socket("alice")


def test_each_session_of_the_older_protocol_can_have_two_requests_open() -> None:
    assert MAX_SESSIONS_PER_SUBJECT * 2 == MAX_CONCURRENT_REQUESTS
