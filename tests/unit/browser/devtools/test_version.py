"""The driver's question for the version goes to the browser once; nothing else is answered for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browser_shell.browser.devtools.relay_repair import RelayRepair
from browser_shell.browser.devtools.version import KnownVersion
from support.devtools import SWITCHING, UPGRADE, a_passage, frame, question

VERSION = {"protocolVersion": "1.3", "product": "Chrome/156.0", "revision": "@" + "a" * 80, "userAgent": "x" * 60}


def answer(number: int) -> bytes:
    return frame({"id": number, "result": VERSION})


def told(answers: RelayRepair, data: bytes) -> bytes | None:
    known = answers.take_questions(memoryview(data))
    assert known is None or not known.browser_is_asked
    return known.frame if known is not None else None


def passes(answers: RelayRepair, data: bytes) -> bytes:
    return b"".join(bytes(part) for part in answers.complete(memoryview(data)))


def asked_once() -> RelayRepair:
    answers = RelayRepair(under_way=list)
    answers.take_questions(memoryview(UPGRADE))
    passes(answers, SWITCHING)
    assert told(answers, question(1)) is None
    assert passes(answers, answer(1)) == answer(1)
    return answers


def test_the_browsers_own_answer_is_given_again_under_the_new_number() -> None:
    assert told(asked_once(), question(200)) == answer(200)


def test_a_short_answer_is_framed_as_short() -> None:
    known = KnownVersion()
    assert known.answer_to(3) is None
    known.learn(frame({"id": 3, "result": {"protocolVersion": "1.3"}}))
    assert known.answer_to(4) == frame({"id": 4, "result": {"protocolVersion": "1.3"}})


@pytest.mark.parametrize("size", range(60, 130))
def test_an_answer_of_any_length_is_learned(size: int) -> None:
    """Also of one whose length is the number of a brace."""
    known = KnownVersion()
    known.learn(frame({"id": 3, "result": {"protocolVersion": "1" * size}}))
    assert known.answer_to(4) == frame({"id": 4, "result": {"protocolVersion": "1" * size}})


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(question(2, "Browser.getVersions"), id="another method"),
        pytest.param(question(2, sessionId="AB"), id="to a page"),
        pytest.param(question(2, params={}), id="with parameters"),
        pytest.param(question(2) + question(3), id="two at once"),
        pytest.param(question(2)[:-1], id="not all of it"),
        pytest.param(frame({"id": 2, "method": "Browser.getVersion"}, masked=True, fin=False), id="more to come"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_any_other_question_is_the_browsers(other: bytes) -> None:
    assert told(asked_once(), other) is None


def test_the_end_of_another_message_is_not_taken_for_the_question() -> None:
    answers = asked_once()
    text = question(2)
    # A message whose first part ended where these bytes begin.
    answers.take_questions(memoryview(bytes((0x81, 0x80 | (len(text) + 1))) + b"\0\0\0\0" + b"x"))
    assert told(answers, text) is None


@pytest.mark.parametrize(
    "said",
    [
        frame({"id": 1, "error": {"code": -32601, "message": "not found"}}),
        frame({"id": 1, "result": {}}),
        frame({"id": 2, "result": VERSION}),
    ],
)
def test_what_is_no_version_is_not_learned(said: bytes) -> None:
    answers = RelayRepair(under_way=list)
    answers.take_questions(memoryview(UPGRADE))
    passes(answers, SWITCHING)
    told(answers, question(1))
    passes(answers, said)
    assert told(answers, question(5)) is None


@given(st.binary(max_size=80))
def test_no_bytes_break_it(data: bytes) -> None:
    assert told(asked_once(), data) is None


def test_an_answer_is_never_put_into_the_middle_of_a_message() -> None:
    with a_passage() as (driver, browser):
        driver.sendall(question(1))
        assert len(browser.recv(1000)) == len(question(1))
        browser.sendall(answer(1))
        assert driver.recv(1000) == answer(1)
        # Known now, and the browser is in the middle of something else: it is asked again.
        long = frame({"method": "x", "params": "y" * 50})
        browser.sendall(long[:20])
        assert driver.recv(1000) == long[:20]
        driver.sendall(question(2))
        assert len(browser.recv(1000)) == len(question(2))
        browser.sendall(long[20:] + answer(2))
        assert driver.recv(1000) == long[20:] + answer(2)
        driver.sendall(question(3))
        assert driver.recv(1000) == answer(3)
