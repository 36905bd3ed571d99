"""What Chromium forgets to answer when a page goes away is answered for it, and nothing else is touched."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode

from browser_shell.browser.devtools.relay_repair import RelayRepair
from support.devtools import SWITCHING, UPGRADE

PAGE = "D226508D84CAB05E8C1D601C0B218E5B"
OTHER = "4DBC438D1CA2AAA2F476F62771BF318F"


def frame(text: str, *, masked: bool = False, opcode: Opcode = Opcode.TEXT, fin: bool = True) -> bytes:
    return Frame(opcode, text.encode(), fin).serialize(mask=masked)


def question(number: int, page: str | None = PAGE, *, params: Any = None) -> bytes:
    message = {"id": number, "method": "Page.enable"}
    message |= ({"params": params} if params is not None else {}) | ({"sessionId": page} if page else {})
    return frame(json.dumps(message, separators=(",", ":")), masked=True)


def answer(number: int, page: str = PAGE, *, result: Any = None) -> bytes:
    return frame(json.dumps({"id": number, "result": result or {}, "sessionId": page}, separators=(",", ":")))


def gone(page: str = PAGE) -> bytes:
    params = {"sessionId": page, "targetId": "F24793C56D5A22623B2A2D20241AB3D0"}
    return frame(json.dumps({"method": "Target.detachedFromTarget", "params": params}, separators=(",", ":")))


def refusal(number: int, page: str = PAGE) -> bytes:
    """Ends like Chromium's own answer to a question that names a page which it does not know."""
    return json.dumps(
        {"id": number, "error": {"code": -32001, "message": "Session with given id not found."}, "sessionId": page}
    ).encode()


def pieces_of(stream: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({0, len(stream), *(cut % (len(stream) + 1) for cut in cuts)})
    return [stream[start:end] for start, end in pairwise(places)]


def connection(*questions: bytes) -> RelayRepair:
    answers = RelayRepair(under_way=list)
    answers.take_questions(memoryview(UPGRADE + b"".join(questions)))
    return answers


def handed_on(answers: RelayRepair, *pieces: bytes) -> bytes:
    return b"".join(bytes(part) for piece in pieces for part in answers.complete(memoryview(piece)))


def test_a_question_to_a_page_that_went_away_is_answered() -> None:
    answers = connection(question(7), question(8, OTHER), question(9, None), question(10))
    before = SWITCHING + answer(7) + gone()
    got = handed_on(answers, before + answer(8, OTHER))
    # 7 has its answer, 8 went to another page, 9 to none; only 10 is missing.
    assert got.startswith(before)
    assert got.endswith(answer(8, OTHER))
    added = got[len(before) : -len(answer(8, OTHER))]
    assert added.endswith(refusal(10))
    assert len(added) == len(refusal(10)) + 4


def test_each_question_is_answered_once() -> None:
    answers = connection(question(1))
    handed_on(answers, SWITCHING + gone())
    assert handed_on(answers, gone()) == gone()


def test_nothing_is_added_when_nothing_is_missing() -> None:
    stream = SWITCHING + answer(1) + gone() + frame('{"method":"Page.loadEventFired"}') + answer(2)
    assert handed_on(connection(question(1), question(2, OTHER)), stream) == stream


@pytest.mark.parametrize("length", [0, 1, 125, 126, 127, 65535, 65536, 200_000])
def test_messages_of_every_length_are_stepped_over(length: int) -> None:
    answers = connection(question(1, params={"text": "x" * length}), question(2))
    stream = SWITCHING + answer(99, result={"data": "y" * length}) + gone()
    got = handed_on(answers, stream)
    assert got.startswith(stream)
    assert refusal(1) in got
    assert refusal(2) in got


def test_a_message_that_speaks_of_a_page_which_went_away_is_not_taken_for_the_event() -> None:
    """Pages choose what is in titles, addresses and logs; the beginning of a message is Chromium's own."""
    for text in (
        '{"id":5,"result":{"value":"{\\"method\\":\\"Target.detachedFromTarget\\",\\"params\\":{}}"}}',
        '{"method":"Runtime.consoleAPICalled","params":{"method":"Target.detachedFromTarget","sessionId":"'
        + PAGE
        + '"}}',
    ):
        stream = SWITCHING + frame(text)
        assert handed_on(connection(question(1)), stream) == stream
    in_two = SWITCHING + gone().replace(b"\x81", b"\x01", 1)
    assert handed_on(connection(question(1)), in_two) == in_two
    ping = SWITCHING + frame("x", opcode=Opcode.PING)
    assert handed_on(connection(question(1)), ping) == ping


@pytest.mark.parametrize("first", [b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 404 Not Found\r\n\r\n", b"x" * 70_000, b""])
def test_what_is_not_a_websocket_passes_as_it_is(first: bytes) -> None:
    stream = first + gone() + gone()
    assert handed_on(connection(question(1)), stream[:30], stream[30:]) == stream


@given(
    cuts=st.lists(st.integers(min_value=0, max_value=5000), max_size=40),
    asked_cuts=st.lists(st.integers(min_value=0, max_value=5000), max_size=40),
    long=st.integers(min_value=0, max_value=300),
)
def test_it_does_not_matter_how_the_stream_is_cut(cuts: list[int], asked_cuts: list[int], long: int) -> None:
    answers = RelayRepair(under_way=list)
    asked = UPGRADE + question(1, params={"x": "a" * long}) + question(2, OTHER) + question(3)
    for piece in pieces_of(asked, asked_cuts):
        answers.take_questions(memoryview(piece))
    before, after = SWITCHING + answer(1, result={"x": "b" * long}) + gone(), answer(2, OTHER) + gone(OTHER)
    got = handed_on(answers, *pieces_of(before + after, cuts))
    assert got.startswith(before)
    assert got.endswith(after)
    assert got[len(before) : -len(after)][4:] == refusal(3)
