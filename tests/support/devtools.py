"""Both ends of the relay between the driver and Chromium's DevTools."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from socket import socket, socketpair

from websockets.frames import Frame, Opcode

from browser_shell.browser.devtools.relay import _RelayConnection
from browser_shell.browser.devtools.relay_repair import RelayRepair

UPGRADE = b"GET /devtools/browser/x HTTP/1.1\r\nUpgrade: websocket\r\n\r\n"
SWITCHING = b"HTTP/1.1 101 WebSocket Protocol Handshake\r\nUpgrade: WebSocket\r\n\r\n"


def frame(message: object, *, masked: bool = False, fin: bool = True) -> bytes:
    text = json.dumps(message, separators=(",", ":")).encode()
    return Frame(Opcode.TEXT, text, fin).serialize(mask=masked)


def question(number: int, method: str = "Browser.getVersion", **more: object) -> bytes:
    return frame({"id": number, "method": method, **more}, masked=True)


def _until_broken(work: Callable[[], None]) -> None:
    with suppress(OSError):
        work()


@contextmanager
def a_passage(under_way: Collection[str] = ()) -> Iterator[tuple[socket, socket]]:
    """The driver's end and the browser's, after the handshake."""
    driver, driver_side = socketpair()
    browser, browser_side = socketpair()
    passage = _RelayConnection(driver_side, browser_side, RelayRepair(under_way=lambda: under_way))
    threads = [threading.Thread(target=_until_broken, args=[work]) for work in (passage.ask, passage.answer)]
    for thread in threads:
        thread.start()
    for end in (driver, browser):
        end.settimeout(5)
    try:
        driver.sendall(UPGRADE)
        assert browser.recv(1000) == UPGRADE
        browser.sendall(SWITCHING)
        assert driver.recv(1000) == SWITCHING
        yield driver, browser
    finally:
        for end in (driver, browser):
            end.close()
        for thread in threads:
            thread.join(5)
        for end in (driver_side, browser_side):
            end.close()
