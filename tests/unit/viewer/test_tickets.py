"""Tickets: single use, lifetime, limits, and their place in a query."""

from __future__ import annotations

import itertools
import threading

import pytest
from starlette.types import Message

from browser_shell.core.access import TicketGrant, ViewMode
from browser_shell.core.calls import Principal
from browser_shell.core.records import RecordKind
from browser_shell.policy.document import ViewingSection
from browser_shell.viewer.tickets import (
    MAX_OPEN,
    MAX_OPEN_PER_SUBJECT,
    TicketEndpoint,
    Tickets,
    ticket_in,
    without_ticket,
)
from support.fakes import FakeClock, FullDiskAudit

ALICE = Principal(subject="alice")


def make_tickets(clock: FakeClock | None = None, seconds: int = 30) -> Tickets:
    numbers = map(str, itertools.count(1))
    return Tickets(clock=clock or FakeClock(), new_id=lambda: next(numbers), seconds=seconds)


def issue(tickets: Tickets, principal: Principal = ALICE, mode: ViewMode = ViewMode.VIEW) -> str:
    issued = tickets.issue(principal, mode)
    assert issued is not None
    return issued[0]


def redeem(tickets: Tickets, ticket: str) -> TicketGrant | None:
    redeemed = tickets.redeem(ticket)
    return redeemed[1] if redeemed else None


@pytest.mark.promise("tickets:once")
def test_ticket_can_be_redeemed_once() -> None:
    tickets = make_tickets()
    ticket = issue(tickets, mode=ViewMode.CONTROL)
    grant = redeem(tickets, ticket)
    assert grant is not None
    assert (grant.subject, grant.mode, grant.ends_at) == ("alice", ViewMode.CONTROL, None)
    assert redeem(tickets, ticket) is None


@pytest.mark.promise("tickets:once")
def test_only_one_of_many_concurrent_attempts_succeeds() -> None:
    tickets = make_tickets()
    ticket, start, grants = issue(tickets), threading.Barrier(8), []

    def attempt() -> None:
        start.wait()
        grants.append(redeem(tickets, ticket))

    threads = [threading.Thread(target=attempt) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([grant for grant in grants if grant is not None]) == 1


def test_validity_check_does_not_use_up_a_ticket() -> None:
    tickets = make_tickets()
    ticket = issue(tickets)
    assert tickets.is_valid(ticket)
    assert tickets.is_valid(ticket)
    assert redeem(tickets, ticket) is not None
    assert not tickets.is_valid(ticket)


@pytest.mark.promise("tickets:short-lived")
def test_ticket_expires() -> None:
    clock = FakeClock()
    tickets = make_tickets(clock, seconds=5)
    early, late = issue(tickets), issue(tickets)
    clock.advance(4.9)
    assert redeem(tickets, early) is not None
    clock.advance(0.1)
    assert not tickets.is_valid(late)
    assert redeem(tickets, late) is None


def test_ticket_expires_even_if_the_wall_clock_is_set_back() -> None:
    clock = FakeClock()
    tickets = make_tickets(clock, seconds=5)
    ticket = issue(tickets)
    clock.now, clock.epoch = clock.now + 5, clock.epoch - 1000
    assert redeem(tickets, ticket) is None


def test_ticket_never_outlives_its_token() -> None:
    clock = FakeClock()
    tickets = make_tickets(clock)
    brief = Principal(subject="alice", expires_at=clock.wall() + 10)
    first, second = issue(tickets, brief), issue(tickets, brief)
    grant = redeem(tickets, first)
    assert grant is not None
    assert grant.ends_at == pytest.approx(clock.monotonic() + 10)
    clock.advance(10)
    assert redeem(tickets, second) is None


def test_tickets_are_long_random_and_compared_exactly() -> None:
    tickets = make_tickets()
    issued = {issue(tickets) for _ in range(50)}
    assert len(issued) == 50
    assert all(len(ticket) >= 43 for ticket in issued)  # 32 bytes in base64
    for ticket in issued:
        assert not any(
            tickets.is_valid(other) for other in (ticket.upper() + "x", ticket[:-1], ticket + "A", "", " " + ticket)
        )


@pytest.mark.promise("tickets:bounded")
def test_open_tickets_are_limited_per_subject() -> None:
    clock = FakeClock()
    tickets = make_tickets(clock)
    for _ in range(MAX_OPEN_PER_SUBJECT):
        issue(tickets)
    assert tickets.issue(ALICE, ViewMode.VIEW) is None
    assert tickets.issue(Principal(subject="bob"), ViewMode.VIEW) is not None
    clock.advance(30)
    assert tickets.issue(ALICE, ViewMode.VIEW) is not None


@pytest.mark.promise("tickets:bounded")
def test_open_tickets_are_limited_in_total() -> None:
    tickets = make_tickets()
    for number in range(MAX_OPEN):
        issue(tickets, Principal(subject=f"s{number}"))
    assert tickets.issue(ALICE, ViewMode.VIEW) is None


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
def test_last_ticket_of_a_query_is_used(query: bytes, ticket: str | None) -> None:
    assert ticket_in(query) == ticket


def test_ticket_is_removed_from_the_query() -> None:
    assert without_ticket(b"a=1&ticket=x&b=%20&%74icket=y") == b"a=1&b=+"


async def test_ticket_without_a_record_is_not_issued_and_not_counted() -> None:
    audit = FullDiskAudit(full_at=RecordKind.TICKET_ISSUED)
    endpoint = TicketEndpoint(tickets=make_tickets(), viewing=ViewingSection(), audit=audit)
    scope = {"type": "http", "method": "POST", "headers": [], "state": {"principal": ALICE}}
    statuses = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b""}

    async def send(message: Message) -> None:
        statuses.append(message.get("status"))

    for _ in range(MAX_OPEN_PER_SUBJECT + 1):
        await endpoint(scope, receive, send)
    assert set(statuses) == {503, None}
