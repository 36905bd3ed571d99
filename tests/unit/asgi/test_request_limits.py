"""How much one caller may ask."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from browser_shell.asgi.request_limits import (
    LEAST_BURST,
    MAX_REMEMBERED,
    MAX_REQUESTS_AT_ONCE,
    MAX_SOCKETS,
    MAX_SOCKETS_OF_ONE,
    RequestLimits,
)
from support.fakes import FakeClock


@pytest.mark.promise("limits:one-caller-leaves-room-for-others")
def test_a_flood_is_slowed_down_and_others_are_served() -> None:
    clock = FakeClock()
    traffic = RequestLimits(clock=clock, requests_per_second=10)
    assert [traffic.admit("alice") for _ in range(LEAST_BURST)] == [0] * LEAST_BURST
    assert traffic.admit("alice") == pytest.approx(0.1)
    assert traffic.admit("bob") == 0
    clock.advance(0.2)
    assert [traffic.admit("alice") > 0 for _ in range(3)] == [False, False, True]


def test_rest_earns_a_burst_and_no_more() -> None:
    clock = FakeClock()
    traffic = RequestLimits(clock=clock, requests_per_second=10)
    clock.advance(1_000_000)
    assert sum(traffic.admit("alice") == 0 for _ in range(LEAST_BURST * 2)) == LEAST_BURST


def test_open_requests_are_bounded_too() -> None:
    traffic = RequestLimits(clock=FakeClock(), requests_per_second=1000)
    with ExitStack() as held:
        for _ in range(MAX_REQUESTS_AT_ONCE):
            assert traffic.admit("alice") == 0
            held.enter_context(traffic.request_of("alice"))
        assert traffic.admit("alice") > 0
        assert traffic.admit("bob") == 0
    assert traffic.admit("alice") == 0


@pytest.mark.promise("limits:one-caller-leaves-room-for-others")
def test_sockets_are_bounded_for_one_and_for_all() -> None:
    traffic = RequestLimits(clock=FakeClock())
    with ExitStack() as held:
        for number in range(MAX_SOCKETS_OF_ONE):
            assert traffic.has_room_for_socket("alice"), number
            held.enter_context(traffic.socket_of("alice"))
        assert not traffic.has_room_for_socket("alice")
        for number in range(MAX_SOCKETS - MAX_SOCKETS_OF_ONE):
            assert traffic.has_room_for_socket(f"s{number}")
            held.enter_context(traffic.socket_of(f"s{number}"))
        assert not traffic.has_room_for_socket("bob")
    assert traffic.has_room_for_socket("alice")


def test_subjects_that_come_and_go_are_forgotten() -> None:
    traffic = RequestLimits(clock=FakeClock())
    for number in range(MAX_REMEMBERED + 10):
        traffic.admit(f"s{number}")
    assert len(traffic._allowances) == MAX_REMEMBERED
