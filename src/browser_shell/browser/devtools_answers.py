"""Answers the driver's questions that Chromium no longer answers: those to a page that has gone in the meantime.

Chromium drops them, and the driver, which attaches to every page of the browser, would wait half a minute for each.
What passes is read, never changed: an answer is only ever added between two messages of Chromium.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator

from browser_shell.browser.devtools_version import KnownVersion
from browser_shell.browser.websocket_messages import MessageReader, text_frame

_QUESTION = re.compile(rb'\{"id":(\d{1,15}),')
_TO_PAGE = re.compile(rb'"sessionId":"([0-9A-F]{1,64})"\}\Z')
_ANSWER = re.compile(rb'\{"id":(\d{1,15}),')
_PAGE_GONE = re.compile(rb'\{"method":"Target\.detachedFromTarget","params":\{"sessionId":"([0-9A-F]{1,64})"')


class MissingAnswers:
    """Of one connection of the driver. Each direction has a thread of its own."""

    def __init__(self) -> None:
        self._from_driver = MessageReader(begins_with=b"GET ")
        self._from_browser = MessageReader(begins_with=b"HTTP/1.1 101 ")
        self._open: dict[int, bytes] = {}
        """The questions that wait for an answer, and the page that each was sent to."""
        self._lock = threading.Lock()
        self._version = KnownVersion()

    def known(self, data: memoryview) -> bytes | None:
        """The answer to `data`, if that is one whole question to which the browser has given its answer before.

        It may be handed to the driver only between two messages.
        """
        number = self._version.number_of(data) if self._from_driver.between_messages else None
        return self._version.answer_to(number) if number is not None else None

    @property
    def between_messages(self) -> bool:
        """Whether what the driver got so far ends with a message."""
        return self._from_browser.between_messages

    def note_questions(self, data: memoryview) -> None:
        """To be called before `data` is handed to the browser."""
        for message in self._from_driver.read(data):
            question, page = _QUESTION.match(message.head), _TO_PAGE.search(message.tail)
            if question and page:
                with self._lock:
                    self._open[int(question[1])] = page[1]

    def complete(self, data: memoryview) -> Iterator[memoryview | bytes]:
        """What the driver has to get: `data` as it is, and between its messages the answers that are missing."""
        sent = 0
        begins: int | None = 0 if self._from_browser.between_messages else None
        for message in self._from_browser.read(data):
            if answer := _ANSWER.match(message.head):
                with self._lock:
                    self._open.pop(int(answer[1]), None)
                if begins is not None and int(answer[1]) == self._version.waits_for:
                    self._version.learn(bytes(data[begins : message.end]))
            elif (gone := _PAGE_GONE.match(message.head)) and (missing := self._take_questions_to(gone[1])):
                yield data[sent : message.end]
                sent = message.end
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
