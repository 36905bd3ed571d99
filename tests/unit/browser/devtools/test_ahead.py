"""The driver need not wait for Chromium where Chromium has nothing to say, and never where the page must know first."""

from __future__ import annotations

import json
from socket import socket

import pytest

from browser_shell.browser.devtools.ahead import Ahead
from support.devtools import a_passage, frame, question

PAGE = "D226508D84CAB05E8C1D601C0B218E5B"
MOVED = {"type": "mouseMoved", "x": 36.3828125, "y": 164.375}
PRESSED = {"button": "left", "buttons": 1, "clickCount": 1, "type": "mousePressed", "x": 1, "y": 2}
DRAGGED = {"button": "left", "buttons": 1, "type": "mouseMoved", "x": 1, "y": 2}
FOCUS = {
    "awaitPromise": False,
    "functionDeclaration": "function() { this.focus(); }",
    "objectId": "2753647434815966828.7.1",
    "returnByValue": True,
}
CLEAR = {**FOCUS, "functionDeclaration": "function() { this.value = 'function() { this.focus(); }'; }"}
NOTHING: dict[str, object] = {}
UNDEFINED = {"result": {"type": "undefined"}}


def asked(number: int, method: str, params: object = None) -> bytes:
    more = {"params": params} if params is not None else {}
    return question(number, method, **more, sessionId=PAGE)


def reply(number: int, result: object) -> bytes:
    return frame({"id": number, "result": result, "sessionId": PAGE})


def is_silent(end: socket) -> bool:
    end.settimeout(0.1)
    try:
        return not end.recv(1000)
    except TimeoutError:
        return True
    finally:
        end.settimeout(5)


@pytest.mark.parametrize(
    ("method", "params", "under_way", "result"),
    [
        ("DOM.enable", None, ["snapshot"], NOTHING),
        ("Accessibility.enable", None, ["snapshot"], NOTHING),
        ("Input.dispatchMouseEvent", MOVED, ["click"], NOTHING),
        ("Input.dispatchMouseEvent", MOVED, ["click", "dblclick", "wait"], NOTHING),
        ("Runtime.callFunctionOn", FOCUS, ["fill"], UNDEFINED),
        ("Runtime.callFunctionOn", FOCUS, ["fill", "fill"], UNDEFINED),
    ],
)
@pytest.mark.parametrize("number", [1, 987_654_321])
def test_the_driver_is_told_at_once_and_chromium_is_asked_all_the_same(
    method: str, params: object, under_way: list[str], result: object, number: int
) -> None:
    with a_passage(under_way) as (driver, browser):
        text = asked(number, method, params)
        driver.sendall(text)
        assert driver.recv(1000) == reply(number, result)
        assert browser.recv(1000) == text
        # Chromium's own answer passes like everything that it says.
        browser.sendall(reply(number, result))
        assert driver.recv(1000) == reply(number, result)


def test_chromium_may_say_itself_that_it_has_moved_the_mouse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("browser_shell.browser.devtools.ahead._NOTHING_SOON", Ahead(b"{}", 5.0))
    with a_passage(["click"]) as (driver, browser):
        for number in (7, 8):
            driver.sendall(asked(number, "Input.dispatchMouseEvent", MOVED))
            browser.recv(1000)
            assert is_silent(driver)
            browser.sendall(reply(number, NOTHING))
            assert driver.recv(1000) == reply(number, NOTHING)
        driver.sendall(asked(9, "DOM.enable"))
        assert driver.recv(1000) == reply(9, NOTHING)


@pytest.mark.promise("browser:a-command-is-over-when-its-page-knows")
@pytest.mark.parametrize(
    ("method", "params", "under_way"),
    [
        pytest.param("Input.dispatchMouseEvent", MOVED, ["hover"], id="nothing follows a hover"),
        pytest.param("Input.dispatchMouseEvent", MOVED, ["click", "hover"], id="a hover of another session"),
        pytest.param("Input.dispatchMouseEvent", PRESSED, ["click"], id="a button"),
        pytest.param("Input.dispatchMouseEvent", DRAGGED, ["click"], id="a button held while moving"),
        pytest.param("Runtime.callFunctionOn", FOCUS, ["focus"], id="nothing follows a focus"),
        pytest.param("Runtime.callFunctionOn", FOCUS, ["fill", "focus", "keyboard"], id="keys of another session"),
        pytest.param("Runtime.callFunctionOn", FOCUS, [], id="nobody knows what is under way"),
        pytest.param("Runtime.callFunctionOn", CLEAR, ["fill"], id="another function that quotes it"),
        pytest.param("Runtime.evaluate", {"expression": json.dumps(MOVED)}, ["click"], id="a text that quotes it"),
        pytest.param("DOM.enabled", None, ["snapshot"], id="another method"),
        pytest.param("Page.enable", None, ["open"], id="another domain"),
    ],
)
def test_any_other_answer_is_waited_for(method: str, params: object, under_way: list[str]) -> None:
    with a_passage(under_way) as (driver, browser):
        text = asked(5, method, params)
        driver.sendall(text)
        assert browser.recv(1000) == text
        assert is_silent(driver)
        browser.sendall(reply(5, NOTHING))
        assert driver.recv(1000) == reply(5, NOTHING)


def test_a_question_to_no_page_is_chromiums() -> None:
    with a_passage(["snapshot"]) as (driver, browser):
        text = question(5, "DOM.enable")
        driver.sendall(text)
        assert browser.recv(1000) == text
        assert is_silent(driver)


def test_no_answer_is_put_into_the_middle_of_a_message() -> None:
    with a_passage(["snapshot"]) as (driver, browser):
        long = frame({"method": "x", "params": "y" * 50})
        browser.sendall(long[:20])
        assert driver.recv(1000) == long[:20]
        driver.sendall(asked(2, "DOM.enable"))
        assert len(browser.recv(1000)) == len(asked(2, "DOM.enable"))
        browser.sendall(long[20:] + reply(2, NOTHING))
        assert driver.recv(1000) == long[20:] + reply(2, NOTHING)


GONE = frame({"method": "Target.detachedFromTarget", "params": {"sessionId": PAGE, "targetId": "T"}})


def gone_and_refused(driver: socket) -> bool:
    received = driver.recv(1000)
    while len(received) <= len(GONE):  # The refusal may come on its own.
        received += driver.recv(1000)
    return received.startswith(GONE) and b"Session with given id not found" in received


def test_a_page_that_goes_away_after_such_an_answer_does_no_harm() -> None:
    with a_passage(["click"]) as (driver, browser):
        driver.sendall(asked(2, "Input.dispatchMouseEvent", MOVED))
        assert driver.recv(1000) == reply(2, NOTHING)
        browser.recv(1000)
        browser.sendall(GONE)
        assert gone_and_refused(driver)
        driver.sendall(asked(3, "DOM.enable"))
        assert driver.recv(1000) == reply(3, NOTHING)


def test_a_page_that_goes_away_before_such_an_answer_is_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("browser_shell.browser.devtools.ahead._NOTHING_SOON", Ahead(b"{}", 5.0))
    with a_passage(["click"]) as (driver, browser):
        driver.sendall(asked(2, "Input.dispatchMouseEvent", MOVED))
        browser.recv(1000)
        browser.sendall(GONE)
        assert gone_and_refused(driver)
        driver.sendall(asked(3, "DOM.enable"))
        assert driver.recv(1000) == reply(3, NOTHING)
