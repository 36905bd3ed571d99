"""Answers a question that the driver repeats twice before every command: which version the browser is.

It asks in order to see that the connection lives. The relay knows that better: when the browser goes, so does the
connection. Two questions less through two programs are a tenth of a short command.
"""

from __future__ import annotations

import re
import struct

_MASKED_TEXT = 0x81
_MASK = 0x80
_LONGEST_QUESTION = 64
"""Of the whole frame; a length below 126 is in its second byte."""
_HEADER_BYTES = 6
_QUESTION = re.compile(rb'\{"id":(\d{1,15}),"method":"Browser\.getVersion"\}')
_ANSWER = re.compile(rb'\{"id":\d{1,15},("result":\{"protocolVersion":.+\})\Z', re.DOTALL)
_SHORT_LENGTH = 126
_LONGEST_ANSWER = 0xFFFF


class KnownVersion:
    """Of one connection: what Chromium itself said on it, the first time that it was asked."""

    def __init__(self) -> None:
        self.waits_for: int | None = None
        """The number of a question whose answer is to be remembered."""
        self._answer = b""

    def number_of(self, data: memoryview) -> int | None:
        """The number of the question, if `data` is this question and nothing else."""
        size = len(data)
        if not _HEADER_BYTES < size <= _LONGEST_QUESTION or data[0] != _MASKED_TEXT:
            return None
        if data[1] != _MASK | (size - _HEADER_BYTES):
            return None
        mask, text = bytes(data[2:_HEADER_BYTES]), bytes(data[_HEADER_BYTES:])
        key = (mask * (len(text) // 4 + 1))[: len(text)]
        question = _QUESTION.fullmatch(
            (int.from_bytes(text, "big") ^ int.from_bytes(key, "big")).to_bytes(len(text), "big")
        )
        return int(question[1]) if question else None

    def answer_to(self, number: int) -> bytes | None:
        """A frame for the driver; None as long as nothing is known, and then the answer is waited for."""
        if not self._answer:
            self.waits_for = number
            return None
        text = b'{"id":%d,%b' % (number, self._answer)
        if len(text) < _SHORT_LENGTH:
            return bytes((_MASKED_TEXT, len(text))) + text
        return struct.pack(">BBH", _MASKED_TEXT, _SHORT_LENGTH, len(text)) + text

    def learn(self, frame: bytes) -> None:
        """Takes the browser's own answer, in its frame."""
        self.waits_for = None
        text = frame[frame.find(b'{"id":') :]
        answer = _ANSWER.match(text)
        if answer and len(text) < _LONGEST_ANSWER:
            self._answer = answer[1]
