from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browser_shell.viewer.rfb import (
    MAX_CUT_TEXT_BYTES,
    MAX_ENCODINGS,
    ClientMessage,
    ClientStream,
    Effect,
    RfbRefused,
)

HANDSHAKE = b"RFB 003.008\n" + b"\x01" + b"\x01"
TIGHT, EXTENDED_MOUSE, EXTENDED_CLIPBOARD, XVP_ENCODING, GII = 7, -316, 0xC0A1E5CE - 2**32, -309, -305


def key(symbol: int = 0x61, *, down: bool = True) -> bytes:
    return struct.pack(">BBxxI", 4, down, symbol)


def pointer(buttons: int, x: int = 10, y: int = 20) -> bytes:
    return struct.pack(">BBHH", 5, buttons, x, y)


def qemu_key() -> bytes:
    return struct.pack(">BBHII", 255, 0, 1, 0x61, 30)


def cut_text(text: bytes, *, extended: bool = False) -> bytes:
    return struct.pack(">Bxxxi", 6, -len(text) if extended else len(text)) + text


def encodings(*codes: int) -> bytes:
    return struct.pack(f">BxH{len(codes)}i", 2, len(codes), *codes)


def desktop_size(screens: int = 1) -> bytes:
    return struct.pack(">BxHHBx", 251, 800, 600, screens) + bytes(16 * screens)


def fence(payload: bytes = b"abc") -> bytes:
    return struct.pack(">BxxxIB", 248, 1, len(payload)) + payload


PIXEL_FORMAT = b"\x00\x00\x00\x00" + struct.pack(">BBBBHHHBBBxxx", 32, 24, 0, 1, 255, 255, 255, 0, 8, 16)
UPDATE_REQUEST = struct.pack(">BBHHHH", 3, 1, 0, 0, 1280, 1024)
CONTINUOUS = struct.pack(">BBHHHH", 150, 1, 0, 0, 1280, 1024)
XVP = struct.pack(">BxBB", 250, 1, 2)


def a_stream() -> ClientStream:
    stream = ClientStream()
    stream.feed(HANDSHAKE)
    return stream


def read(data: bytes) -> list[ClientMessage]:
    return a_stream().feed(data)


@pytest.mark.parametrize(
    ("message", "effect"),
    [
        (PIXEL_FORMAT, Effect.PICTURE),
        (encodings(TIGHT), Effect.PICTURE),
        (UPDATE_REQUEST, Effect.PICTURE),
        (CONTINUOUS, Effect.PICTURE),
        (fence(), Effect.PICTURE),
        (key(), Effect.INPUT),
        (key(down=False), Effect.INPUT),
        (qemu_key(), Effect.INPUT),
        (pointer(1), Effect.INPUT),
        (pointer(8), Effect.INPUT),  # the wheel
        (pointer(0), Effect.MOTION),
    ],
)
def test_message_is_classified_and_unchanged(message: bytes, effect: Effect) -> None:
    assert read(message) == [ClientMessage(effect, message)]


@pytest.mark.promise("view:no-clipboard")
@pytest.mark.parametrize(
    "message",
    [
        cut_text(b"secret"),
        cut_text(b""),
        cut_text(b"\x01\x00\x00\x01" + b"z" * 40, extended=True),
        desktop_size(),
        desktop_size(3),
        XVP,
    ],
)
def test_clipboard_size_and_power_messages_are_dropped_and_the_next_message_is_parsed(message: bytes) -> None:
    first, second = read(message + key())
    assert first == ClientMessage(Effect.NEVER, b"")
    assert second == ClientMessage(Effect.INPUT, key())


@pytest.mark.promise("view:strict-reader")
@pytest.mark.parametrize("kind", sorted(set(range(256)) - {0, 2, 3, 4, 5, 6, 150, 248, 250, 251, 255}))
def test_unknown_message_type_ends_the_stream(kind: int) -> None:
    with pytest.raises(RfbRefused):
        read(bytes([kind]))


@pytest.mark.parametrize(
    "message",
    [
        b"\xff\x01",  # QEMU audio, of variable length
        encodings(*[0] * (MAX_ENCODINGS + 1))[:4],
        fence(b"x" * 65)[:9],
        struct.pack(">Bxxxi", 6, MAX_CUT_TEXT_BYTES + 1),
        struct.pack(">Bxxxi", 6, -MAX_CUT_TEXT_BYTES - 1),
        struct.pack(">Bxxxi", 6, -(2**31)),
    ],
)
def test_oversized_or_unknown_message_is_refused_before_it_is_buffered(message: bytes) -> None:
    with pytest.raises(RfbRefused):
        read(message)


@pytest.mark.parametrize(
    "handshake",
    [
        b"RFB 003.003\n",
        b"RFB 003.007\n",
        b"GET / HTTP/1",
        b"RFB 003.008\n\x02",  # VNC authentication
        b"RFB 003.008\n\x10",  # Tight
    ],
)
def test_other_versions_and_security_types_are_refused(handshake: bytes) -> None:
    with pytest.raises(RfbRefused):
        ClientStream().feed(handshake)


@pytest.mark.parametrize("flag", [b"\x00", b"\x01", b"\xff"])
def test_request_for_exclusive_access_becomes_shared_access(flag: bytes) -> None:
    messages = ClientStream().feed(HANDSHAKE[:-1] + flag)
    assert b"".join(message.content for message in messages) == HANDSHAKE


@pytest.mark.promise("view:strict-reader")
def test_encodings_that_change_client_messages_are_filtered_out() -> None:
    (message,) = read(encodings(TIGHT, EXTENDED_MOUSE, EXTENDED_CLIPBOARD, XVP_ENCODING, GII, -26, 424242))
    assert message.content == encodings(TIGHT, -26)


def test_bit_for_extended_mouse_buttons_is_cleared() -> None:
    (first, second) = read(pointer(0x81) + key())
    assert first.content == pointer(0x01)
    assert second.content == key()


def test_button_release_is_input_and_later_movement_is_motion() -> None:
    effects = [message.effect for message in read(pointer(1) + pointer(1, 30) + pointer(0, 30) + pointer(0, 40))]
    assert effects == [Effect.INPUT, Effect.INPUT, Effect.INPUT, Effect.MOTION]


any_message = st.one_of(
    st.just(PIXEL_FORMAT),
    st.just(UPDATE_REQUEST),
    st.just(CONTINUOUS),
    st.just(XVP),
    st.just(qemu_key()),
    st.builds(key, st.integers(0, 2**32 - 1), down=st.booleans()),
    st.builds(pointer, st.integers(0, 255), st.integers(0, 65535), st.integers(0, 65535)),
    st.builds(cut_text, st.binary(max_size=300), extended=st.booleans()),
    st.lists(st.integers(-(2**31), 2**31 - 1), max_size=40).map(lambda codes: encodings(*codes)),
    st.builds(desktop_size, st.integers(0, 4)),
    st.builds(fence, st.binary(max_size=64)),
)


def feed_all(chunks: Sequence[bytes]) -> tuple[list[ClientMessage], bool]:
    """Return the messages before a refusal, and whether there was one."""
    stream, messages = ClientStream(), list[ClientMessage]()
    for chunk in chunks:
        try:
            messages += stream.feed(chunk)
        except RfbRefused:
            return messages, True
    return messages, False


def split(data: bytes, places: Sequence[int]) -> list[bytes]:
    marks = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in pairwise(marks)]


@given(st.lists(any_message, max_size=30), st.lists(st.integers(0, 10**6), max_size=60))
def test_chunk_boundaries_do_not_matter(messages: list[bytes], places: list[int]) -> None:
    data = HANDSHAKE + b"".join(messages)
    expected, refused = feed_all([data])
    assert not refused
    assert len(expected) == 3 + len(messages)
    assert feed_all(split(data, places)) == (expected, False)
    assert feed_all([data[place : place + 1] for place in range(len(data))]) == (expected, False)


@given(st.binary(max_size=400), st.lists(st.integers(0, 10**6), max_size=30))
def test_arbitrary_bytes_are_parsed_the_same_way_in_any_chunks(noise: bytes, places: list[int]) -> None:
    data = HANDSHAKE + noise
    by_byte = feed_all([data[place : place + 1] for place in range(len(data))])
    pieces = feed_all(split(data, places))
    assert pieces[1] == by_byte[1]
    # A refusal also drops the earlier messages of its chunk, so fewer messages may pass, but never different ones.
    assert by_byte[0][: len(pieces[0])] == pieces[0]
    assert pieces[1] or pieces[0] == by_byte[0]


@given(st.lists(any_message, max_size=30))
def test_passed_messages_parse_to_the_same_messages_again(messages: list[bytes]) -> None:
    """The display must see the same message boundaries as this parser."""
    passed = [message for message in read(b"".join(messages)) if message.effect is not Effect.NEVER]
    again = read(b"".join(message.content for message in passed))
    assert again == passed
