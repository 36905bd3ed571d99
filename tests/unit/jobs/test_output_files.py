"""Collecting hostile output follows no link, blocks on no pipe and is bounded."""

from __future__ import annotations

import hashlib
import os
import socket
from pathlib import Path

import pytest

from browser_shell.jobs import output_files
from browser_shell.jobs.output_files import collect


def reasons(directory: Path) -> dict[str, str]:
    return {entry.path: entry.reason for entry in collect(directory).refused}


def test_plain_files_are_listed_with_size_hash_and_type(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.png").write_bytes(b"png")
    (tmp_path / "ä b.txt").write_bytes(b"")
    collected = collect(tmp_path)
    assert [(file.path, file.size, file.mime) for file in collected.files] == [
        ("a/b.png", 3, "image/png"),
        ("ä b.txt", 0, "text/plain"),
    ]
    assert collected.files[0].sha256 == hashlib.sha256(b"png").hexdigest()
    assert not collected.cut


def test_a_missing_directory_is_empty(tmp_path: Path) -> None:
    assert collect(tmp_path / "not there").files == []


@pytest.mark.promise("evidence:follows-nothing")
def test_links_are_refused_and_never_followed(tmp_path: Path) -> None:
    output, secret = tmp_path / "output", tmp_path / "secret"
    output.mkdir()
    secret.mkdir()
    (secret / "key").write_text("s3cret")
    (output / "absolute").symlink_to(secret / "key")
    (output / "relative").symlink_to("../secret/key")
    (output / "directory").symlink_to(secret)
    (output / "loop").symlink_to("loop")
    (output / "real").write_text("real")
    (output / "twin").hardlink_to(output / "real")
    collected = collect(output)
    assert collected.files == []
    assert set(reasons(output)) == {"absolute", "relative", "directory", "loop", "real", "twin"}


def test_an_output_directory_that_is_a_link_is_not_entered(tmp_path: Path) -> None:
    (tmp_path / "output").symlink_to("/etc")
    with pytest.raises(NotADirectoryError):
        collect(tmp_path / "output")


@pytest.mark.promise("evidence:waits-for-nothing")
def test_pipes_sockets_and_devices_are_refused_without_blocking(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        if os.geteuid() == 0:
            os.mknod(tmp_path / "device", 0o600 | 0o020000, os.makedev(1, 3))
        refused = set(reasons(tmp_path))
    assert refused >= {"pipe", "socket"}
    assert collect(tmp_path).files == []


@pytest.mark.parametrize("name", [b"\xff\xfe", b"a\nb", b"a\x1b[31m", b"a\\b", "\u202e".encode()])
def test_names_with_unprintable_characters_are_refused(tmp_path: Path, name: bytes) -> None:
    (tmp_path / os.fsdecode(name)).write_bytes(b"x")
    collected = collect(tmp_path)
    assert collected.files == []
    assert len(collected.refused) == 1
    assert collected.refused[0].path.isprintable()


def test_more_entries_than_the_maximum_are_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_files, "MAX_ENTRIES", 10)
    for number in range(25):
        (tmp_path / f"{number}").touch()
    collected = collect(tmp_path)
    assert (len(collected.files), collected.cut) == (10, True)


def test_a_deep_tree_is_cut(tmp_path: Path) -> None:
    path = tmp_path
    for _ in range(output_files.MAX_DEPTH + 5):
        path = path / "d"
    path.mkdir(parents=True)
    (path / "f").touch()
    assert [entry.reason for entry in collect(tmp_path).refused] == ["too deep, or too long a path"]


def test_sparse_and_large_files_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(output_files.MAX_FILE_BYTES + 1)
    assert reasons(tmp_path) == {"sparse": "too large"}
    monkeypatch.setattr(output_files, "MAX_TOTAL_BYTES", 5)
    (tmp_path / "sparse").unlink()
    (tmp_path / "a").write_bytes(b"123")
    (tmp_path / "b").write_bytes(b"123")
    assert reasons(tmp_path) == {"b": "too large"}
