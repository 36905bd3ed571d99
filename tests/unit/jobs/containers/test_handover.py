"""The reader of a container's output trusts no byte of the stream."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browser_shell.core.containers import RefusalReason
from browser_shell.jobs.containers.handover import MAGIC, RECORD, HandoverReader, is_plain_path

END = RECORD.pack(b"E", 0, 0)


def record(kind: bytes, path: bytes, content: bytes = b"", *, size: int | None = None) -> bytes:
    return RECORD.pack(kind, len(path), len(content) if size is None else size) + path + content


def read(
    directory: Path, stream: bytes, *, max_bytes: int = 1000, max_entries: int = 10, step: int = 7
) -> HandoverReader:
    reader = HandoverReader(directory=directory, max_bytes=max_bytes, max_entries=max_entries)
    for start in range(0, len(stream), step):
        reader.feed(stream[start : start + step])
    reader.close()
    return reader


def names(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))


@pytest.mark.parametrize("step", [1, 7, 100_000])
def test_files_and_directories_are_created_with_private_modes(tmp_path: Path, step: int) -> None:
    stream = MAGIC + record(b"D", b"d") + record(b"F", b"d/x", b"hello") + record(b"F", b"empty") + END
    reader = read(tmp_path, stream, step=step)
    assert reader.complete
    assert names(tmp_path) == ["d", "d/x", "empty"]
    assert (tmp_path / "d/x").read_bytes() == b"hello"
    assert stat.S_IMODE((tmp_path / "d/x").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "d").stat().st_mode) == 0o700


@pytest.mark.promise("jobs:handover")
@pytest.mark.parametrize(
    "path",
    [
        b"",
        b"/etc/x",
        b"../x",
        b"d/../../x",
        b"d//x",
        b".",
        b"d/.",
        b"a\nb",
        b"\xff",
        b"a\\b",
        b"\xe2\x80\xae",
        b"n" * 256,
        b"/".join([b"d"] * 33),
    ],
)
def test_an_invalid_path_creates_no_file(tmp_path: Path, path: bytes) -> None:
    directory = tmp_path / "output"
    directory.mkdir()
    reader = read(directory, MAGIC + record(b"D", b"d") + record(b"F", path, b"x") + END)
    assert reader.complete
    assert names(directory) == ["d"]
    assert list(tmp_path.iterdir()) == [directory]
    assert [each.reason for each in reader.refused] == [RefusalReason.BAD_NAME]
    assert not is_plain_path(path)


@pytest.mark.promise("jobs:handover")
def test_a_file_below_a_directory_that_was_not_sent_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    directory = tmp_path / "output"
    directory.mkdir()
    (directory / "link").symlink_to(tmp_path / "elsewhere")
    reader = read(directory, MAGIC + record(b"F", b"link/x", b"x") + END)
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert reader.refused_count == 1


@pytest.mark.promise("jobs:handover")
@pytest.mark.parametrize(
    "stream",
    [
        MAGIC.replace(b"1", b"2") + END,
        MAGIC + record(b"Z", b"x") + END,
        MAGIC + record(b"F", b"x", size=1001) + b"x" * 1001 + END,
        MAGIC + record(b"F", b"x", b"y" * 600) + record(b"F", b"z", b"y" * 600) + END,
        MAGIC + record(b"D", b"x", size=5) + b"hello" + END,
        MAGIC + b"".join(record(b"F", b"%d" % n) for n in range(11)) + END,
        MAGIC + record(b"F", b"x", b"1") + record(b"F", b"x", b"2") + END,
        MAGIC + RECORD.pack(b"F", 65535, 0) + b"x" * 65535 + END,
        MAGIC + END + record(b"F", b"late", b"x"),
        MAGIC + END + END,
    ],
    ids=["magic", "kind", "large", "sum", "sized directory", "many", "twice", "long path", "after the end", "two ends"],
)
def test_an_invalid_stream_is_not_complete(tmp_path: Path, stream: bytes) -> None:
    reader = read(tmp_path, stream)
    assert not reader.complete
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) <= 1000
    assert len(names(tmp_path)) <= 10


def test_a_truncated_stream_is_not_complete(tmp_path: Path) -> None:
    whole = MAGIC + record(b"F", b"x", b"hello") + END
    for length in range(len(whole)):
        directory = tmp_path / str(length)
        directory.mkdir()
        assert not read(directory, whole[:length]).complete


def test_refusals_beyond_the_listed_ones_are_counted(tmp_path: Path) -> None:
    reader = read(tmp_path, MAGIC + record(b"L", b"link\xff") * 300 + END, max_entries=1000)
    assert (len(reader.refused), reader.refused_count) == (100, 300)
    assert reader.refused[0].path.isascii()


def test_the_end_record_carries_flags(tmp_path: Path) -> None:
    reader = read(tmp_path, MAGIC + record(b"E", b"full out-of-memory"))
    assert (reader.complete, reader.full, reader.out_of_memory) == (True, True, True)


@given(st.binary(max_size=400))
def test_no_input_breaks_the_reader(data: bytes) -> None:
    reader = HandoverReader(directory=Path("/nonexistent/never"), max_bytes=0, max_entries=0)
    reader.feed(MAGIC + data)
    reader.close()
    assert not reader.complete or data.startswith(b"E")
