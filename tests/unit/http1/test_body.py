"""Where a body ends, and what it contains."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browser_shell.http1.body import LAST_CHUNK, MAX_STRICT_CHUNKS, BodyReader, encode_chunk
from browser_shell.http1.heads import Framing, MessageInvalid


def read_chunked(data: bytes, *, size: int, lenient: bool = False) -> tuple[BodyReader, bytes, bytes]:
    """Feed pieces of `size` bytes. Returns the reader, the content and the bytes after the body."""
    reader, content, unused = BodyReader(Framing.CHUNKED, lenient=lenient), b"", b""
    for at in range(0, len(data), size):
        content += reader.feed(data[at : at + size])
        unused += reader.unused
    return reader, content, unused


@pytest.mark.promise("gateway:no-smuggling")
@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(
    "body",
    [
        b"2;a=b\r\n{}\r\n0\r\n\r\n",
        b"2 \r\n{}\r\n0\r\n\r\n",
        b"2\n{}\r\n0\r\n\r\n",
        b"22\n{}\r\n0\r\n\r\n",
        b"0x2\r\n{}\r\n0\r\n\r\n",
        b"-2\r\n{}\r\n0\r\n\r\n",
        b"+2\r\n{}\r\n0\r\n\r\n",
        b"\r\n{}\r\n0\r\n\r\n",
        b"g\r\n{}\r\n0\r\n\r\n",
        b"000000002\r\n{}\r\n0\r\n\r\n",
        b"fffffffffffffffff\r\n{}",
        b"2\r\n{}\n0\r\n\r\n",
        b"2\r\n{}x\r\n0\r\n\r\n",
        b"1\r\n{}\r\n0\r\n\r\n",
        b"2\r\n{}\r\n0\r\nTrailer: x\r\n\r\n",
        b"2\r\n{}\r\n0\r\n\n",
        b"2\r{}\r\n0\r\n\r\n",
    ],
)
def test_ambiguous_chunks_are_refused(body: bytes, size: int) -> None:
    with pytest.raises(MessageInvalid) as refused:
        read_chunked(body, size=size)
    assert refused.value.status == 400


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_lenient_reader_drops_extensions_and_trailers(size: int) -> None:
    body = b"3 ;ext=1\r\nabc\r\n000000000001\r\nd\r\n0\r\nTrailer: x\r\nOther: y\r\n\r\n"
    reader, content, unused = read_chunked(body + b"next", size=size, lenient=True)
    assert (reader.complete, content, unused) == (True, b"abcd", b"next")


@pytest.mark.parametrize("size", [1, 1000])
@pytest.mark.parametrize(
    "body",
    [
        b"2\r\nokX\r\n0\r\n\r\n",
        b"zz\r\nok\r\n0\r\n\r\n",
        b"-2\r\nok\r\n0\r\n\r\n",
        b"2 2\r\nok\r\n0\r\n\r\n",
        b"2\nok\r\n0\r\n\r\n",
        b"2\r\nok\r\n0\r\nTrailer: x\n\r\n",
        b"2" * 9000,
        b"0\r\nTrailer: " + b"x" * 9000,
    ],
)
def test_lenient_reader_refuses_malformed_chunks(body: bytes, size: int) -> None:
    with pytest.raises(MessageInvalid):
        read_chunked(body, size=size, lenient=True)


def test_too_many_chunks_are_refused_unless_lenient() -> None:
    body = b"1\r\na\r\n" * (MAX_STRICT_CHUNKS + 1)
    with pytest.raises(MessageInvalid) as refused:
        read_chunked(body, size=5000)
    assert refused.value.status == 413
    assert len(read_chunked(body, size=5000, lenient=True)[1]) == MAX_STRICT_CHUNKS + 1


def test_work_for_one_byte_chunks_is_linear() -> None:
    def cpu_seconds(chunks: int) -> float:
        body = b"1\r\na\r\n" * chunks
        start = time.process_time()
        assert len(BodyReader(Framing.CHUNKED, lenient=True).feed(body)) == chunks
        return time.process_time() - start

    # Sixteen times the input may take sixteen times as long. Quadratic work would take 256 times as long.
    small = min(cpu_seconds(4_000) for _ in range(3))
    assert min(cpu_seconds(64_000) for _ in range(3)) < 64 * small


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=8), st.integers(1, 30), st.binary(max_size=20))
def test_encoded_chunks_are_decoded(chunks: list[bytes], size: int, after: bytes) -> None:
    body = b"".join(map(encode_chunk, chunks)) + LAST_CHUNK
    reader, content, unused = read_chunked(body + after, size=size)
    assert (reader.complete, content, unused) == (True, b"".join(chunks), after)


def test_empty_content_makes_no_chunk() -> None:
    assert encode_chunk(b"") == b""


@given(st.integers(0, 50), st.binary(max_size=100))
def test_body_with_a_length_ends_there(length: int, data: bytes) -> None:
    reader = BodyReader(Framing.LENGTH, length)
    assert reader.feed(data) == data[:length]
    assert reader.unused == data[length:]
    assert reader.complete is (len(data) >= length)


def test_request_without_a_body_is_complete_and_its_next_bytes_are_unused() -> None:
    reader = BodyReader(Framing.NONE)
    assert reader.complete
    assert (reader.feed(b"GET"), reader.unused) == (b"", b"GET")


@pytest.mark.parametrize(
    ("framing", "length", "data"),
    [(Framing.LENGTH, 5, b"half"), (Framing.CHUNKED, None, b"4\r\nhalf\r\n"), (Framing.CHUNKED, None, b"9\r\nhalf")],
)
def test_end_of_input_inside_a_body_is_an_error(framing: Framing, length: int | None, data: bytes) -> None:
    reader = BodyReader(framing, length)
    assert reader.feed(data) == b"half"
    with pytest.raises(MessageInvalid):
        reader.end_of_input()


def test_body_until_close_ends_with_the_input() -> None:
    reader = BodyReader(Framing.UNTIL_CLOSE)
    assert reader.feed(b"all") == b"all"
    assert not reader.complete
    reader.end_of_input()
    assert reader.complete
