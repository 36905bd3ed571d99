from __future__ import annotations

import re

from browser_shell.browser.proxy_addresses import ProxyAddresses
from browser_shell.core.access import Activity
from browser_shell.core.decisions import Denial, Requester
from browser_shell.server.browser_server import denial_activity

ALICE, BOB = Requester(subject="alice", session_id="s1"), Requester(subject="bob", session_id="s1")


def test_each_session_has_its_own_address_until_it_is_released() -> None:
    addresses = ProxyAddresses(port=3128)
    hers, his = addresses.take(ALICE), addresses.take(BOB)
    assert (addresses.requester_at(hers), addresses.requester_at(his)) == (ALICE, BOB)
    addresses.release(hers)
    assert (addresses.requester_at(hers), addresses.requester_at(his)) == (None, BOB)
    addresses.release(hers)


def test_an_address_is_not_reused_soon() -> None:
    addresses = ProxyAddresses(port=3128)
    taken = []
    for _ in range(70_000):
        taken.append(addresses.take(ALICE))
        addresses.release(taken[-1])
    assert len(set(taken)) == len(taken)
    assert all(re.fullmatch(r"127\.[12]\.\d+\.\d+", address) for address in taken)


def test_the_browsers_own_address_belongs_to_no_session() -> None:
    addresses = ProxyAddresses(port=3128)
    for _ in range(300):
        assert addresses.take(ALICE) != "127.0.0.1"
    assert addresses.requester_at("127.0.0.1") is None


def test_a_denied_connection_is_shown_to_viewers_of_its_subject() -> None:
    denial = Denial(
        requester=Requester(subject="alice", session_id="s1"),
        at=5.0,
        host="10.0.0.7",
        port=80,
        rule_id="address.private",
        reason="10.0.0.7 is a private address",
    )
    assert denial_activity(denial, at=1_800_000_000.0) == Activity(
        at=1_800_000_000.0,
        subject="alice",
        session_id="s1",
        what="blocked",
        result="POLICY_BLOCKED",
        detail="10.0.0.7:80 (address.private)",
    )
