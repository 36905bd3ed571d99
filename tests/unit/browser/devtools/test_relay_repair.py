"""Requests to a page that closes get an error reply, and all other bytes pass unchanged."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode

from browser_shell.browser.devtools.relay_repair import RelayRepair

UPGRADE = b"GET /devtools/browser/x HTTP/1.1\r\nUpgrade: websocket\r\n\r\n"
SWITCHING = b"HTTP/1.1 101 WebSocket Protocol Handshake\r\nUpgrade: WebSocket\r\n\r\n"

PAGE = "D226508D84CAB05E8C1D601C0B218E5B"
OTHER = "4DBC438D1CA2AAA2F476F62771BF318F"


def frame(text: str, *, masked: bool = False, opcode: Opcode = Opcode.TEXT, fin: bool = True) -> bytes:
    return Frame(opcode, text.encode(), fin).serialize(mask=masked)


def request(number: int, page: str | None = PAGE, *, params: Any = None) -> bytes:
    message = {"id": number, "method": "Page.enable"}
    message |= ({"params": params} if params is not None else {}) | ({"sessionId": page} if page else {})
    return frame(json.dumps(message, separators=(",", ":")), masked=True)


def reply(number: int, page: str = PAGE, *, result: Any = None) -> bytes:
    return frame(json.dumps({"id": number, "result": result or {}, "sessionId": page}, separators=(",", ":")))


def detached(page: str = PAGE) -> bytes:
    params = {"sessionId": page, "targetId": "F24793C56D5A22623B2A2D20241AB3D0"}
    return frame(json.dumps({"method": "Target.detachedFromTarget", "params": params}, separators=(",", ":")))


def not_found(number: int, page: str = PAGE) -> bytes:
    """Ends like Chromium's own answer to a question that names a page which it does not know."""
    return json.dumps(
        {"id": number, "error": {"code": -32001, "message": "Session with given id not found."}, "sessionId": page}
    ).encode()


def pieces_of(stream: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({0, len(stream), *(cut % (len(stream) + 1) for cut in cuts)})
    return [stream[start:end] for start, end in pairwise(places)]


def connection(*requests: bytes) -> RelayRepair:
    repair = RelayRepair()
    repair.note_requests(memoryview(UPGRADE + b"".join(requests)))
    return repair


def forwarded(repair: RelayRepair, *pieces: bytes) -> bytes:
    return b"".join(bytes(part) for piece in pieces for part in repair.complete_replies(memoryview(piece)))


def test_a_request_to_a_closed_page_gets_an_error_reply() -> None:
    repair = connection(request(7), request(8, OTHER), request(9, None), request(10))
    before = SWITCHING + reply(7) + detached()
    got = forwarded(repair, before + reply(8, OTHER))
    # 7 has its answer, 8 went to another page, 9 to none; only 10 is missing.
    assert got.startswith(before)
    assert got.endswith(reply(8, OTHER))
    added = got[len(before) : -len(reply(8, OTHER))]
    assert added.endswith(not_found(10))
    assert len(added) == len(not_found(10)) + 4


def test_each_request_gets_one_reply() -> None:
    repair = connection(request(1))
    forwarded(repair, SWITCHING + detached())
    assert forwarded(repair, detached()) == detached()


def test_nothing_is_added_when_no_reply_is_missing() -> None:
    stream = SWITCHING + reply(1) + detached() + frame('{"method":"Page.loadEventFired"}') + reply(2)
    assert forwarded(connection(request(1), request(2, OTHER)), stream) == stream


@pytest.mark.parametrize("length", [0, 1, 125, 126, 127, 65535, 65536, 200_000])
def test_messages_of_every_length_are_parsed(length: int) -> None:
    repair = connection(request(1, params={"text": "x" * length}), request(2))
    stream = SWITCHING + reply(99, result={"data": "y" * length}) + detached()
    got = forwarded(repair, stream)
    assert got.startswith(stream)
    assert not_found(1) in got
    assert not_found(2) in got


def test_page_text_that_looks_like_the_event_is_not_taken_for_it() -> None:
    """Pages control titles, addresses and logs, but not the start of a message."""
    for text in (
        '{"id":5,"result":{"value":"{\\"method\\":\\"Target.detachedFromTarget\\",\\"params\\":{}}"}}',
        '{"method":"Runtime.consoleAPICalled","params":{"method":"Target.detachedFromTarget","sessionId":"'
        + PAGE
        + '"}}',
    ):
        stream = SWITCHING + frame(text)
        assert forwarded(connection(request(1)), stream) == stream
    in_two = SWITCHING + detached().replace(b"\x81", b"\x01", 1)
    assert forwarded(connection(request(1)), in_two) == in_two
    ping = SWITCHING + frame("x", opcode=Opcode.PING)
    assert forwarded(connection(request(1)), ping) == ping


@pytest.mark.parametrize("first", [b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 404 Not Found\r\n\r\n", b"x" * 70_000, b""])
def test_a_connection_that_is_no_websocket_passes_unchanged(first: bytes) -> None:
    stream = first + detached() + detached()
    assert forwarded(connection(request(1)), stream[:30], stream[30:]) == stream


@given(
    cuts=st.lists(st.integers(min_value=0, max_value=5000), max_size=40),
    request_cuts=st.lists(st.integers(min_value=0, max_value=5000), max_size=40),
    long=st.integers(min_value=0, max_value=300),
)
def test_replies_do_not_depend_on_how_the_stream_is_split(cuts: list[int], request_cuts: list[int], long: int) -> None:
    repair = RelayRepair()
    requests = UPGRADE + request(1, params={"x": "a" * long}) + request(2, OTHER) + request(3)
    for piece in pieces_of(requests, request_cuts):
        repair.note_requests(memoryview(piece))
    before, after = SWITCHING + reply(1, result={"x": "b" * long}) + detached(), reply(2, OTHER) + detached(OTHER)
    got = forwarded(repair, *pieces_of(before + after, cuts))
    assert got.startswith(before)
    assert got.endswith(after)
    assert got[len(before) : -len(after)][4:] == not_found(3)
