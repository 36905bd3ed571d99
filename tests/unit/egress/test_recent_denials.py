from __future__ import annotations

from browser_shell.core.egress import Denial, Requester
from browser_shell.egress.recent_denials import RecentDenials

ALICE, BOB = Requester(subject="alice", session_id="s1"), Requester(subject="bob", session_id="s1")


def a_denial(requester: Requester = ALICE, at: float = 1.0, host: str = "x.example") -> Denial:
    return Denial(requester=requester, at=at, host=host, port=80, rule_id="r", reason="no")


def test_a_session_sees_its_own_refusals_from_a_moment_on_oldest_first() -> None:
    book = RecentDenials()
    for at in (1.0, 2.0, 3.0):
        book.add(a_denial(at=at))
    book.add(a_denial(BOB, at=2.0, host="bobs.example"))
    assert [denial.at for denial in book.since(ALICE, 2.0)] == [2.0, 3.0]
    assert [denial.host for denial in book.since(BOB, 0)] == ["bobs.example"]
    assert book.since(Requester(subject="alice", session_id="s2"), 0) == []


def test_a_page_that_is_refused_all_the_time_does_not_push_out_another_sessions_refusal() -> None:
    book = RecentDenials()
    book.add(a_denial(BOB))
    for number in range(10_000):
        book.add(a_denial(at=number))
    assert len(book.since(BOB, 0)) == 1
    kept = book.since(ALICE, 0)
    assert len(kept) <= 1000
    assert kept[-1].at == 9999


def test_sessions_that_are_long_gone_are_forgotten() -> None:
    book = RecentDenials()
    for number in range(10_000):
        book.add(a_denial(Requester(subject="alice", session_id=str(number))))
    remembered = sum(bool(book.since(Requester(subject="alice", session_id=str(n)), 0)) for n in range(10_000))
    assert 64 <= remembered <= 1000
    assert book.since(Requester(subject="alice", session_id="9999"), 0)
