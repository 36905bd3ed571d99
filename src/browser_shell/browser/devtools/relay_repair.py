"""Add the DevTools replies that Chromium leaves out.

Chromium drops requests to a page that closes in the meantime. The driver attaches to every page of the browser, and
would wait 30 s for each of those replies. The relay forwards all bytes unchanged and adds an error reply after the
message that reports the page's end.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator

from browser_shell.browser.devtools.frames import MessageReader, text_frame

_REQUEST_ID = re.compile(rb'\{"id":(\d{1,15}),"method":"[A-Za-z.]{1,64}"')
_REQUEST_SESSION = re.compile(rb'"sessionId":"([0-9A-F]{1,64})"\}\Z')
_REPLY_ID = re.compile(rb'\{"id":(\d{1,15}),')
_DETACHED_SESSION = re.compile(rb'\{"method":"Target\.detachedFromTarget","params":\{"sessionId":"([0-9A-F]{1,64})"')


class RelayRepair:
    """The open requests of one connection. Each direction is used by a thread of its own."""

    def __init__(self) -> None:
        self._requests = MessageReader(handshake_start=b"GET ")
        self._replies = MessageReader(handshake_start=b"HTTP/1.1 101 ")
        self._open: dict[int, bytes] = {}
        """Request id to CDP session, for requests without a reply."""
        self._lock = threading.Lock()

    def note_requests(self, data: memoryview) -> None:
        """Record the requests in `data`. Call it before `data` is sent to the browser."""
        for message in self._requests.read(data):
            request, session = _REQUEST_ID.match(message.head), _REQUEST_SESSION.search(message.tail)
            if request is not None and session is not None:
                with self._lock:
                    self._open[int(request[1])] = session[1]

    def complete_replies(self, data: memoryview) -> Iterator[memoryview | bytes]:
        """Yield `data` unchanged, with missing replies between its messages."""
        sent = 0
        for message in self._replies.read(data):
            if reply := _REPLY_ID.match(message.head):
                with self._lock:
                    self._open.pop(int(reply[1]), None)
            elif detached := _DETACHED_SESSION.match(message.head):
                for request_id in self._take_requests_to(detached[1]):
                    if sent < message.end:
                        yield data[sent : message.end]
                        sent = message.end
                    yield _session_not_found(request_id, detached[1])
        if sent < len(data):
            yield data[sent:]

    def _take_requests_to(self, session: bytes) -> list[int]:
        with self._lock:
            request_ids = [request_id for request_id, target in self._open.items() if target == session]
            for request_id in request_ids:
                del self._open[request_id]
        return request_ids


def _session_not_found(request_id: int, session: bytes) -> bytes:
    """The error that Chromium sends for a request to an unknown CDP session."""
    error = {"code": -32001, "message": "Session with given id not found."}
    text = json.dumps({"id": request_id, "error": error, "sessionId": session.decode("ascii")})
    return text_frame(text.encode("ascii"))
