"""Tickets: what they are worth, and for how long."""

from __future__ import annotations

import itertools
import threading

import pytest

from browser_shell.core.access import ViewMode
from browser_shell.core.calls import Principal
from browser_shell.viewer.tickets import MAX_OPEN, MAX_OPEN_OF_ONE, Tickets, ticket_in, without_ticket
from support.fakes import FakeClock

ALICE = Principal(subject="alice")


def tickets(clock: FakeClock | None = None, seconds: int = 30) -> Tickets:
    numbers = map(str, itertools.count(1))
    return Tickets(clock=clock or FakeClock(), new_id=lambda: next(numbers), seconds=seconds)


def issued(office: Tickets, principal: Principal = ALICE, mode: ViewMode = ViewMode.VIEW) -> str:
    made = office.issue(principal, mode)
    assert made is not None
    return made[0]


@pytest.mark.promise("tickets:once")
def test_a_ticket_is_spent_once() -> None:
    office = tickets()
    ticket = issued(office, mode=ViewMode.CONTROL)
    grant = office.spend(ticket)
    assert grant is not None
    assert (grant.subject, grant.mode, grant.ends_at) == ("alice", ViewMode.CONTROL, None)
    assert office.spend(ticket) is None


@pytest.mark.promise("tickets:once")
def test_of_many_at_the_same_time_one_gets_in() -> None:
    office = tickets()
    ticket, start, got = issued(office), threading.Barrier(8), []

    def spend() -> None:
        start.wait()
        got.append(office.spend(ticket))

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([grant for grant in got if grant is not None]) == 1


def test_looking_at_a_ticket_does_not_spend_it() -> None:
    office = tickets()
    ticket = issued(office)
    assert office.is_good(ticket)
    assert office.is_good(ticket)
    assert office.spend(ticket) is not None
    assert not office.is_good(ticket)


@pytest.mark.promise("tickets:short-lived")
def test_a_ticket_ends_with_its_time() -> None:
    clock = FakeClock()
    office = tickets(clock, seconds=5)
    early, late = issued(office), issued(office)
    clock.advance(4.9)
    assert office.spend(early) is not None
    clock.advance(0.1)
    assert not office.is_good(late)
    assert office.spend(late) is None


def test_setting_the_clock_of_the_machine_back_helps_nobody() -> None:
    clock = FakeClock()
    office = tickets(clock, seconds=5)
    ticket = issued(office)
    clock.now, clock.epoch = clock.now + 5, clock.epoch - 1000
    assert office.spend(ticket) is None


def test_a_ticket_never_outlives_the_token_that_made_it() -> None:
    clock = FakeClock()
    office = tickets(clock)
    brief = Principal(subject="alice", expires_at=clock.wall() + 10)
    first, second = issued(office, brief), issued(office, brief)
    grant = office.spend(first)
    assert grant is not None
    assert grant.ends_at == pytest.approx(clock.monotonic() + 10)
    clock.advance(10)
    assert office.spend(second) is None


def test_tickets_cannot_be_guessed_from_each_other() -> None:
    office = tickets()
    made = {issued(office) for _ in range(50)}
    assert len(made) == 50
    assert all(len(ticket) >= 43 for ticket in made)  # 32 bytes in base64
    for ticket in made:
        assert not any(
            office.is_good(other) for other in (ticket.upper() + "x", ticket[:-1], ticket + "A", "", " " + ticket)
        )


@pytest.mark.promise("tickets:bounded")
def test_one_subject_cannot_hoard_tickets() -> None:
    clock = FakeClock()
    office = tickets(clock)
    for _ in range(MAX_OPEN_OF_ONE):
        issued(office)
    assert office.issue(ALICE, ViewMode.VIEW) is None
    assert office.issue(Principal(subject="bob"), ViewMode.VIEW) is not None
    clock.advance(30)
    assert office.issue(ALICE, ViewMode.VIEW) is not None


@pytest.mark.promise("tickets:bounded")
def test_all_together_cannot_either() -> None:
    office = tickets()
    for number in range(MAX_OPEN):
        issued(office, Principal(subject=f"s{number}"))
    assert office.issue(ALICE, ViewMode.VIEW) is None


@pytest.mark.parametrize(
    ("query", "ticket"),
    [
        (b"", None),
        (b"x=1", None),
        (b"ticket=a", "a"),
        (b"ticket=a&ticket=b", "b"),
        (b"ticket=a&x=1", "a"),
        (b"%74icket=a", "a"),
        (b"ticket=", ""),
        (b"ticket", ""),
        (b"ticket=a%0a", "a\n"),
        (b"ticket=%ff", ""),
        (b"x=%3Fticket%3Da", None),
        (b"x=1;ticket=a", None),
        (b"TICKET=a", None),
        (b"tickets=a", None),
        (b"&".join([b"a=b"] * 40), ""),
    ],
)
def test_the_last_ticket_of_a_query_counts(query: bytes, ticket: str | None) -> None:
    assert ticket_in(query) == ticket


def test_what_goes_on_has_no_ticket_in_it() -> None:
    assert without_ticket(b"a=1&ticket=x&b=%20&%74icket=y") == b"a=1&b=+"
