"""What a viewer says to the display: a strict reader of the client's half of RFB 3.8 (RFC 6143 and its extensions).

A view socket is only as safe as this reader is exact: were it and the display to disagree on where one message ends
and the next begins, a key press could hide inside a harmless message. Hence what is not listed here ends the socket,
and the display is never told of an encoding that would change the length of a message.
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
"""The eighth bit announces one more byte once both sides speak ExtendedMouseButtons. The display never hears of it."""

# Raw, CopyRect, RRE, Hextile, Zlib, Tight, ZRLE, JPEG, H.264, TightPNG; then DesktopSize, LastRect, Cursor, QEMU keys
# and lights, DesktopName, ExtendedDesktopSize, Fence, ContinuousUpdates, and VMware's cursor and lights. Not here, as
# they would change what may follow: ExtendedClipboard, ExtendedMouseButtons, xvp, gii.
_ENCODINGS = frozenset(
    {0, 1, 2, 5, 6, 7, 16, 21, 50, -260}
    | {-223, -224, -239, -258, -261, -307, -308, -312, -313, 0x574D5664, 0x574D5668}
)
_LEVELS = (range(-32, -22), range(-256, -246), range(-512, -411), range(-768, -762))
"""Quality and compression of JPEG and Tight."""


class RfbRefused(BrowserShellError):
    """The viewer said something that this reader does not know, so nothing after it can be understood."""


class Effect(Enum):
    """What a message would do to the display."""

    PICTURE = "picture"
    """Concerns only what this viewer is sent."""
    INPUT = "input"
    """A key, a button, a wheel."""
    MOTION = "motion"
    """The pointer moved, and no button changed."""
    NEVER = "never"
    """Clipboard, size and power of the display: nobody's to change through a viewer."""


@dataclass(frozen=True, slots=True)
class ClientMessage:
    """One whole message, ready for the display. The bytes of a message that is never passed on are not kept."""

    effect: Effect
    content: bytes


@dataclass(frozen=True, slots=True)
class _Size:
    """Known bytes of a message: either all of it, or only as much as must be read to know more."""

    bytes: int
    whole: bool


_Sizer: TypeAlias = Callable[[bytearray], _Size]


def _fixed(size: int) -> _Sizer:
    return lambda head: _Size(size, whole=True)


def _size_of_encodings(head: bytearray) -> _Size:
    if len(head) < 4:
        return _Size(4, whole=False)
    (count,) = struct.unpack_from(">H", head, 2)
    if count > MAX_ENCODINGS:
        raise RfbRefused("too many encodings")
    return _Size(4 + 4 * count, whole=True)


def _size_of_fence(head: bytearray) -> _Size:
    if len(head) < 9:
        return _Size(9, whole=False)
    if head[8] > MAX_FENCE_BYTES:
        raise RfbRefused("a fence that is too long")
    return _Size(9 + head[8], whole=True)


def _size_of_desktop_size(head: bytearray) -> _Size:
    return _Size(8 + 16 * head[6], whole=True) if len(head) >= 8 else _Size(8, whole=False)


def _size_of_qemu(head: bytearray) -> _Size:
    if len(head) < 2:
        return _Size(2, whole=False)
    if head[1] != _QEMU_KEY:
        raise RfbRefused("an unknown message of QEMU's")
    return _Size(12, whole=True)


_SIZES: dict[int, _Sizer] = {
    SET_PIXEL_FORMAT: _fixed(20),
    SET_ENCODINGS: _size_of_encodings,
    UPDATE_REQUEST: _fixed(10),
    KEY: _fixed(8),
    POINTER: _fixed(6),
    CUT_TEXT: _fixed(8),  # Its text is skipped, not collected.
    CONTINUOUS_UPDATES: _fixed(10),
    FENCE: _size_of_fence,
    XVP: _fixed(4),
    SET_DESKTOP_SIZE: _size_of_desktop_size,
    QEMU: _size_of_qemu,
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
    """Cuts what a viewer sends into messages, however the network cut it. At most one message is held back."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._skip_bytes = 0
        self._handshake = [VERSION, SECURITY_NONE, SHARED]
        self._buttons = 0

    def feed(self, data: bytes) -> list[ClientMessage]:
        """Every message that is whole now. Raises: RfbRefused, and the stream is of no further use."""
        self._held += data
        return list(self._messages())

    def _messages(self) -> Iterator[ClientMessage]:
        while self._held:
            if self._skip_bytes:
                skipped = min(self._skip_bytes, len(self._held))
                del self._held[:skipped]
                self._skip_bytes -= skipped
                continue
            message = self._greeting() if self._handshake else self._message()
            if message is None:
                return
            yield message

    def _greeting(self) -> ClientMessage | None:
        expected = self._handshake[0]
        given = bytes(self._held[: len(expected)])
        # A viewer may ask to be the only one; the display is told that it shares.
        final = len(self._handshake) == 1
        if not final and not expected.startswith(given):
            raise RfbRefused("not a viewer that speaks RFB 3.8 without a password")
        if len(given) < len(expected):
            return None
        del self._held[: len(expected)]
        self._handshake.pop(0)
        return ClientMessage(Effect.PICTURE, expected)

    def _message(self) -> ClientMessage | None:
        kind = self._held[0]
        sizer = _SIZES.get(kind)
        if sizer is None:
            raise RfbRefused(f"unknown message type {kind}")
        size = sizer(self._held)
        if not size.whole or len(self._held) < size.bytes:
            return None
        content = bytes(self._held[: size.bytes])
        del self._held[: size.bytes]
        return self._understood(kind, content)

    def _understood(self, kind: int, content: bytes) -> ClientMessage:
        if kind == POINTER:
            return self._pointer(content)
        if kind == SET_ENCODINGS:
            return ClientMessage(Effect.PICTURE, _known_encodings(content))
        if kind == CUT_TEXT:
            self._skip_bytes = _cut_text_bytes(content)
        effect = _EFFECTS.get(kind, Effect.NEVER)
        return ClientMessage(effect, b"" if effect is Effect.NEVER else content)

    def _pointer(self, content: bytes) -> ClientMessage:
        buttons = content[1] & _WHEEL_AND_BUTTONS
        effect = Effect.MOTION if buttons == self._buttons == 0 else Effect.INPUT
        self._buttons = buttons
        return ClientMessage(effect, bytes((POINTER, buttons)) + content[2:])


def _known_encodings(content: bytes) -> bytes:
    wanted = struct.unpack_from(f">{(len(content) - 4) // 4}i", content, 4)
    known = [code for code in wanted if code in _ENCODINGS or any(code in levels for levels in _LEVELS)]
    return struct.pack(f">BxH{len(known)}i", SET_ENCODINGS, len(known), *known)


def _cut_text_bytes(content: bytes) -> int:
    """A negative length marks the extended form; its size is the same number without the sign."""
    (length,) = struct.unpack_from(">i", content, 4)
    if abs(length) > MAX_CUT_TEXT_BYTES:
        raise RfbRefused("a clipboard that is too long")
    return abs(int(length))
