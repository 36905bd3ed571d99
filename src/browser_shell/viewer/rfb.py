"""Strict parser of the client's half of RFB 3.8 (RFC 6143 and its extensions).

A view socket is only as safe as this parser is exact. If it and the display disagreed on message boundaries, a key
press could hide inside a harmless message. Unknown messages therefore end the socket, and encodings that change the
length of messages are never requested from the display.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from browser_shell.core.errors import BrowserShellError

VERSION = b"RFB 003.008\n"
SECURITY_NONE = b"\x01"
SHARED = b"\x01"
MAX_ENCODINGS = 256
MAX_CUT_TEXT_BYTES = 1024 * 1024
MAX_FENCE_BYTES = 64

SET_PIXEL_FORMAT, SET_ENCODINGS, UPDATE_REQUEST, KEY, POINTER, CUT_TEXT = 0, 2, 3, 4, 5, 6
CONTINUOUS_UPDATES, FENCE, XVP, SET_DESKTOP_SIZE, QEMU = 150, 248, 250, 251, 255
_QEMU_KEY = 0

_WHEEL_AND_BUTTONS = 0x7F
"""With ExtendedMouseButtons the eighth bit announces one more byte. That encoding is filtered out."""

# Raw, CopyRect, RRE, Hextile, Zlib, Tight, ZRLE, JPEG, H.264, TightPNG; then DesktopSize, LastRect, Cursor, QEMU keys
# and lights, DesktopName, ExtendedDesktopSize, Fence, ContinuousUpdates, and VMware's cursor and lights.
# Left out because they change the client's messages: ExtendedClipboard, ExtendedMouseButtons, xvp, gii.
_ENCODINGS = frozenset(
    {0, 1, 2, 5, 6, 7, 16, 21, 50, -260}
    | {-223, -224, -239, -258, -261, -307, -308, -312, -313, 0x574D5664, 0x574D5668}
)
_LEVELS = (range(-32, -22), range(-256, -246), range(-512, -411), range(-768, -762))
"""Quality and compression levels of JPEG and Tight."""


class RfbRefused(BrowserShellError):
    """The viewer sent an unknown message, so the boundaries of later messages are unknown too."""


class Effect(Enum):
    """Effect of a message on the display."""

    PICTURE = "picture"
    """Changes only the updates for this viewer."""
    INPUT = "input"
    """A key, a button, a wheel."""
    MOTION = "motion"
    """The pointer moved, and no button changed."""
    NEVER = "never"
    """Clipboard, size or power of the display. Never passed on."""


@dataclass(frozen=True, slots=True)
class ClientMessage:
    """One complete message, ready for the display. `content` is empty for `Effect.NEVER`."""

    effect: Effect
    content: bytes


_Sizer: TypeAlias = Callable[[bytearray], int]
"""Returns the size of the message at the start of the buffer, or of its head while the head is incomplete."""


def _fixed(size: int) -> _Sizer:
    return lambda head: size


def _encodings_size(head: bytearray) -> int:
    if len(head) < 4:
        return 4
    (count,) = struct.unpack_from(">H", head, 2)
    if count > MAX_ENCODINGS:
        raise RfbRefused("too many encodings")
    return 4 + 4 * int(count)


def _fence_size(head: bytearray) -> int:
    if len(head) < 9:
        return 9
    if head[8] > MAX_FENCE_BYTES:
        raise RfbRefused("a fence that is too long")
    return 9 + head[8]


def _desktop_size_size(head: bytearray) -> int:
    return 8 + 16 * head[6] if len(head) >= 8 else 8


def _qemu_size(head: bytearray) -> int:
    if len(head) < 2:
        return 2
    if head[1] != _QEMU_KEY:
        raise RfbRefused("an unknown QEMU message")
    return 12


_SIZES: dict[int, _Sizer] = {
    SET_PIXEL_FORMAT: _fixed(20),
    SET_ENCODINGS: _encodings_size,
    UPDATE_REQUEST: _fixed(10),
    KEY: _fixed(8),
    POINTER: _fixed(6),
    CUT_TEXT: _fixed(8),  # The text that follows is skipped, not buffered.
    CONTINUOUS_UPDATES: _fixed(10),
    FENCE: _fence_size,
    XVP: _fixed(4),
    SET_DESKTOP_SIZE: _desktop_size_size,
    QEMU: _qemu_size,
}
_EFFECTS = {
    SET_PIXEL_FORMAT: Effect.PICTURE,
    UPDATE_REQUEST: Effect.PICTURE,
    CONTINUOUS_UPDATES: Effect.PICTURE,
    FENCE: Effect.PICTURE,
    KEY: Effect.INPUT,
    QEMU: Effect.INPUT,
}


class ClientStream:
    """Splits the byte stream of a viewer into messages. Buffers at most one incomplete message."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._skip_bytes = 0
        self._handshake = [VERSION, SECURITY_NONE, SHARED]
        self._buttons = 0

    def feed(self, data: bytes) -> list[ClientMessage]:
        """Return the messages that are complete now. Raises: RfbRefused, after which the stream must be closed."""
        self._buffer += data
        return list(self._messages())

    def _messages(self) -> Iterator[ClientMessage]:
        while self._buffer:
            if self._skip_bytes:
                skipped = min(self._skip_bytes, len(self._buffer))
                del self._buffer[:skipped]
                self._skip_bytes -= skipped
                continue
            message = self._handshake_message() if self._handshake else self._message()
            if message is None:
                return
            yield message

    def _handshake_message(self) -> ClientMessage | None:
        expected = self._handshake[0]
        received = bytes(self._buffer[: len(expected)])
        # The last byte is the shared flag. A viewer may request exclusive access; the display gets "shared" anyway.
        is_shared_flag = len(self._handshake) == 1
        if not is_shared_flag and not expected.startswith(received):
            raise RfbRefused("not RFB 3.8 without a password")
        if len(received) < len(expected):
            return None
        del self._buffer[: len(expected)]
        self._handshake.pop(0)
        return ClientMessage(Effect.PICTURE, expected)

    def _message(self) -> ClientMessage | None:
        kind = self._buffer[0]
        sizer = _SIZES.get(kind)
        if sizer is None:
            raise RfbRefused(f"unknown message type {kind}")
        size = sizer(self._buffer)
        if len(self._buffer) < size:
            return None
        content = bytes(self._buffer[:size])
        del self._buffer[:size]
        return self._classify(kind, content)

    def _classify(self, kind: int, content: bytes) -> ClientMessage:
        if kind == POINTER:
            return self._pointer(content)
        if kind == SET_ENCODINGS:
            return ClientMessage(Effect.PICTURE, _filter_encodings(content))
        if kind == CUT_TEXT:
            self._skip_bytes = _cut_text_bytes(content)
        effect = _EFFECTS.get(kind, Effect.NEVER)
        return ClientMessage(effect, b"" if effect is Effect.NEVER else content)

    def _pointer(self, content: bytes) -> ClientMessage:
        buttons = content[1] & _WHEEL_AND_BUTTONS
        effect = Effect.MOTION if buttons == self._buttons == 0 else Effect.INPUT
        self._buttons = buttons
        return ClientMessage(effect, bytes((POINTER, buttons)) + content[2:])


def _filter_encodings(content: bytes) -> bytes:
    wanted = struct.unpack_from(f">{(len(content) - 4) // 4}i", content, 4)
    allowed = [code for code in wanted if code in _ENCODINGS or any(code in levels for levels in _LEVELS)]
    return struct.pack(f">BxH{len(allowed)}i", SET_ENCODINGS, len(allowed), *allowed)


def _cut_text_bytes(content: bytes) -> int:
    """Return the length of the text that follows. A negative length marks the extended form."""
    (length,) = struct.unpack_from(">i", content, 4)
    if abs(length) > MAX_CUT_TEXT_BYTES:
        raise RfbRefused("a clipboard that is too long")
    return abs(int(length))
