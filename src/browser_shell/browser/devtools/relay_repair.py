"""Answers the driver's questions that Chromium no longer answers: those to a page that has gone in the meantime.

Chromium drops them, and the driver, which attaches to every page of the browser, would wait half a minute for each.
What passes is read, never changed: an answer is only ever added between two messages of Chromium. So are those that
are known before Chromium gives them.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple, TypeAlias

from browser_shell.browser.devtools.ahead import answer_of, result_ahead
from browser_shell.browser.devtools.frames import Message, MessageReader, text_frame, whole_message
from browser_shell.browser.devtools.version import QUESTION as VERSION_QUESTION
from browser_shell.browser.devtools.version import KnownVersion

_QUESTION = re.compile(rb'\{"id":(\d{1,15}),"method":"([A-Za-z.]{1,64})"')
_TO_PAGE = re.compile(rb'"sessionId":"([0-9A-F]{1,64})"\}\Z')
_ANSWER = re.compile(rb'\{"id":(\d{1,15}),')
_PAGE_GONE = re.compile(rb'\{"method":"Target\.detachedFromTarget","params":\{"sessionId":"([0-9A-F]{1,64})"')


UnderWay: TypeAlias = Callable[[], Collection[str]]
"""Tells the commands that all the drivers are busy with. Called in any thread."""


class KnownAnswer(NamedTuple):
    """That may be handed to the driver between two messages."""

    number: int
    frame: bytes
    browser_is_asked: bool
    """Whether the question goes to the browser all the same."""
    browser_has_seconds: float = 0.0
    """For which it is given the chance to answer first."""


class RelayRepair:
    """Of one connection of the driver. Each direction has a thread of its own."""

    def __init__(self, *, under_way: UnderWay) -> None:
        self._under_way = under_way
        self._from_driver = MessageReader(begins_with=b"GET ")
        self._from_browser = MessageReader(begins_with=b"HTTP/1.1 101 ")
        self._open: dict[int, bytes] = {}
        """The questions that wait for an answer, and the page that each was sent to."""
        self._lock = threading.Lock()
        self._version = KnownVersion()
        self._awaited = (0, threading.Event())
        """The last question that the browser has some time for, and whether its answer came."""

    def take_questions(self, data: memoryview) -> KnownAnswer | None:
        """To be called before `data` is handed to the browser.

        Returns the answer, if `data` is one whole question, and the browser has answered it before or has nothing to
        say to it.
        """
        question = whole_message(data) if self._from_driver.between_messages else None
        if question is not None:
            return self._take(question)
        for question in self._from_driver.read(data):
            self._take(question)
        return None

    def _take(self, question: Message) -> KnownAnswer | None:
        begins = _QUESTION.match(question.head)
        if begins is None:
            return None
        number, page = int(begins[1]), _TO_PAGE.search(question.tail)
        if page is None:
            version = self._version.answer_to(number) if VERSION_QUESTION.fullmatch(question.head) else None
            return KnownAnswer(number, version, browser_is_asked=False) if version is not None else None
        ahead = result_ahead(begins[2], question.head, under_way=self._under_way())
        if ahead is not None and ahead.browser_has_seconds:
            self._awaited = (number, threading.Event())
        with self._lock:
            self._open[number] = page[1]
        if ahead is None:
            return None
        frame = answer_of(number, ahead.result, page[1])
        return KnownAnswer(number, frame, browser_is_asked=True, browser_has_seconds=ahead.browser_has_seconds)

    def came_in_time(self, known: KnownAnswer) -> bool:
        """Whether the browser answers by itself within the time that it has. In the driver's thread."""
        number, came = self._awaited
        return number == known.number and came.wait(known.browser_has_seconds)

    @property
    def between_messages(self) -> bool:
        """Whether what the driver got so far ends with a message."""
        return self._from_browser.between_messages

    def complete(self, data: memoryview) -> Iterator[memoryview | bytes]:
        """What the driver has to get: `data` as it is, and between its messages the answers that are missing."""
        sent = 0
        begins: int | None = 0 if self._from_browser.between_messages else None
        for message in self._from_browser.read(data):
            if answer := _ANSWER.match(message.head):
                with self._lock:
                    self._open.pop(int(answer[1]), None)
                number, came = self._awaited
                if int(answer[1]) == number:
                    came.set()
                if begins is not None and int(answer[1]) == self._version.waits_for:
                    self._version.learn(bytes(data[begins : message.end]))
            elif (gone := _PAGE_GONE.match(message.head)) and (missing := self._take_questions_to(gone[1])):
                yield data[sent : message.end]
                sent = message.end
                awaited, came = self._awaited
                if awaited in missing:
                    came.set()  # This is its answer.
                for number in missing:
                    yield _refusal(number, gone[1])
            begins = message.end
        if sent < len(data):
            yield data[sent:]

    def _take_questions_to(self, page: bytes) -> list[int]:
        with self._lock:
            numbers = [number for number, asked in self._open.items() if asked == page]
            for number in numbers:
                del self._open[number]
        return numbers


def _refusal(number: int, page: bytes) -> bytes:
    """In Chromium's own words for a question to a page that it does not know."""
    error = {"code": -32001, "message": "Session with given id not found."}
    text = json.dumps({"id": number, "error": error, "sessionId": page.decode("ascii")}).encode("ascii")
    return text_frame(text)
