"""Answers the driver ahead of Chromium where the answer can say nothing.

The question still goes to Chromium, before any that follows it. Chromium's own answer comes later, to a question that
the driver no longer waits for, and it passes that over. What goes wrong there goes wrong with the next question too.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from browser_shell.browser.devtools.frames import text_frame

PATIENCE_SECONDS = 0.007
"""Chromium says within it that it has moved the mouse over a page that rests: in 2 to 6 ms, 25 times of 25."""


class Ahead(NamedTuple):
    """What Chromium will say."""

    result: bytes
    browser_has_seconds: float = 0.0
    """For this long it is given the chance to say so itself."""


_NOTHING = Ahead(b"{}")
_NOTHING_SOON = Ahead(b"{}", PATIENCE_SECONDS)
_UNDEFINED = Ahead(b'{"result":{"type":"undefined"}}')
_MOUSE_MOVED = re.compile(rb'"params":\{"type":"mouseMoved",')
_FOCUSED = re.compile(rb'"functionDeclaration":"function\(\) \{ this\.focus\(\); \}"')


def result_ahead(method: bytes, head: bytes, *, under_way: Collection[str]) -> Ahead | None:
    """What Chromium will say to a question that begins with `head`; None where that is not known.

    A command that ended with such a question would be over before its page knows of it, so what may be answered
    depends on all the commands that are under way.
    """
    match method:
        case b"DOM.enable" | b"Accessibility.enable":
            # Before every snapshot, though both are on since the first.
            return _NOTHING
        case b"Input.dispatchMouseEvent":
            # Before every click. Chromium says that it has moved the mouse when it draws the next frame: at once where
            # the page rests, else after up to 16 ms. A button that is pressed before that does not wait for it: the
            # page gets both, in their order. So a dialog that a restless page opens because of the move may no longer
            # keep the press from it, only from being seen before the dialog is answered.
            return _NOTHING_SOON if "hover" not in under_way and _MOUSE_MOVED.search(head) else None
        case b"Runtime.callFunctionOn":
            # The driver goes on with another function of the same element. Not so for keys, which go another way and
            # might be there first.
            return _UNDEFINED if {*under_way} == {"fill"} and _FOCUSED.search(head) else None
        case _:
            return None


def answer_of(number: int, result: bytes, page: bytes) -> bytes:
    """A frame for the driver."""
    return text_frame(b'{"id":%d,"result":%b,"sessionId":"%b"}' % (number, result, page))
