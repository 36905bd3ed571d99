"""Standard input and output as the wire: every way of ending, and lines that are no messages."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import socket
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from browser_shell.mcp_server.json_rpc import MAX_DEPTH, MAX_MESSAGE_BYTES
from support.loopback_server import SERVER_COMMAND
from support.pages import wait_until
from support.patience import within
from support.wire import ENVELOPE, INITIALIZE, body, call_params

SERVER = SERVER_COMMAND
ENDS_WITHIN_SECONDS = 2.0
PIPE_BYTES = 64 * 1024
LIST = body("tools/list", {"_meta": ENVELOPE}, request_id=7)


@dataclass(frozen=True)
class Stdio:
    """A server, and what its client holds: an end of its input that stays open, and one of its output."""

    process: subprocess.Popen[bytes]
    to_server: int

    def say(self, *lines: object) -> None:
        """Anything but bytes is written as JSON."""
        for line in lines:
            text = line if isinstance(line, bytes) else json.dumps(line).encode()
            unsent = text + b"\n"
            while unsent:
                unsent = unsent[os.write(self.to_server, unsent) :]

    def answer(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def said(self, word: str) -> bool:
        """Waits for a line of the log that has the word in it."""
        return any(word.encode() in line for line in self.process.stderr or ())

    def stop(self, number: signal.Signals) -> float:
        """Returns how long it took to end."""
        began = time.monotonic()
        self.process.send_signal(number)
        assert self.process.wait(20) == 0
        return time.monotonic() - began


def a_pipe() -> tuple[int, int]:
    return os.pipe()


def a_socket() -> tuple[int, int]:
    theirs, ours = socket.socketpair()
    return theirs.detach(), ours.detach()


def a_terminal() -> tuple[int, int]:
    ours, theirs = pty.openpty()
    return theirs, ours


KINDS = [a_pipe, a_socket, a_terminal]


@contextmanager
def a_server(kind: Callable[[], tuple[int, int]] = a_pipe, *, way: str = "stdio") -> Iterator[Stdio]:
    theirs, ours = kind()
    with ExitStack() as held:
        held.callback(os.close, ours)
        process = held.enter_context(
            subprocess.Popen([*SERVER, way], stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        )
        held.callback(process.kill)
        os.close(theirs)
        yield Stdio(process, ours)


def asked(*lines: object) -> list[Any]:
    """The answers to lines, of which the last must be a message that is answered after all others."""
    with a_server() as server:
        server.say(*lines, LIST)
        answers = [server.answer()]
        while answers[-1].get("id") != LIST["id"]:
            answers.append(server.answer())
        assert "result" in answers[-1], "it goes on serving"
        return answers[:-1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("kind", KINDS)
def test_a_signal_ends_it_while_its_input_stays_open(
    kind: Callable[[], tuple[int, int]], number: signal.Signals
) -> None:
    with a_server(kind) as server:
        server.say(LIST)
        assert "result" in server.answer()
        assert within(server.stop(number), ENDS_WITHIN_SECONDS)


def test_a_signal_ends_it_in_the_middle_of_a_line() -> None:
    with a_server() as server:
        server.say(LIST)
        server.answer()
        os.write(server.to_server, b'{"jsonrpc"')
        assert within(server.stop(signal.SIGTERM), ENDS_WITHIN_SECONDS)


def test_a_signal_ends_it_while_its_client_reads_nothing() -> None:
    with a_server() as server:
        server.say(*[LIST] * 100)
        wait_until(lambda: unread(server) > PIPE_BYTES - 4096, seconds=20, what="an answer that finds no room")
        assert within(server.stop(signal.SIGTERM), ENDS_WITHIN_SECONDS)


def unread(server: Stdio) -> int:
    """Bytes of answers that lie in the pipe."""
    assert server.process.stdout is not None
    return int.from_bytes(fcntl.ioctl(server.process.stdout, termios.FIONREAD, bytes(4)), sys.byteorder)


@pytest.mark.promise("mcp:disconnect-stops-the-work")
@pytest.mark.parametrize("end", ["signal", "end of input"])
def test_calls_under_way_are_stopped(end: str) -> None:
    with a_server(way="stdio-hanging") as server:
        server.say(body("tools/call", {**call_params(), "_meta": ENVELOPE}))
        assert server.said("begun")
        if end == "signal":
            server.process.send_signal(signal.SIGTERM)
        else:
            os.dup2(os.open(os.devnull, os.O_WRONLY), server.to_server)
        assert server.said("stopped")
        assert server.process.wait(20) == 0


def test_a_client_that_closes_the_output_ends_it() -> None:
    with a_server() as server:
        server.say(LIST)
        server.answer()
        assert server.process.stdout is not None
        server.process.stdout.close()
        server.say(LIST)
        assert server.process.wait(20) == 0
        assert server.process.stderr is not None
        assert server.process.stderr.read() == b""


@pytest.mark.parametrize("last_end", [b"\n", b""])
def test_a_plain_file_is_read_to_its_end(tmp_path: Path, last_end: bytes) -> None:
    requests = tmp_path / "requests"
    requests.write_bytes(json.dumps(body("initialize", INITIALIZE)).encode() + last_end)
    with requests.open("rb") as file:
        ended = subprocess.run([*SERVER, "stdio"], stdin=file, capture_output=True, timeout=20, check=True)
    assert json.loads(ended.stdout)["result"]["serverInfo"]["name"] == "browser-shell"


def test_a_file_that_cannot_be_read_is_an_end_of_input(tmp_path: Path) -> None:
    with (tmp_path / "input").open("wb") as only_for_writing:
        ended = subprocess.run([*SERVER, "stdio"], stdin=only_for_writing, capture_output=True, timeout=20)
    assert (ended.returncode, ended.stdout) == (0, b"")
    assert b"Traceback" not in ended.stderr


def test_without_an_input_it_says_so() -> None:
    closed = ["sh", "-c", 'exec "$@" <&-', "sh", *SERVER, "stdio"]
    ended = subprocess.run(closed, capture_output=True, timeout=20, check=False)
    assert ended.returncode != 0
    assert b"standard input and output must be open" in ended.stderr


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"this is no JSON", id="no JSON"),
        pytest.param(b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', id="an id twice"),
        pytest.param(b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', id="no UTF-8"),
        pytest.param(b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), id="nested too deeply"),
        pytest.param(b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', id="half a character as an id"),
        pytest.param(
            b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping","params":[]}', id="half a character, no message"
        ),
        pytest.param(b'{"jsonrpc":"2.0","id":2,"method":"a\\ud800"}', id="half a character as a method"),
    ],
)
def test_a_line_that_is_no_json_is_answered(line: bytes) -> None:
    (answer,) = asked(line)
    assert (answer["id"], answer["error"]["code"]) == (None, -32700)


@pytest.mark.parametrize(
    ("line", "request_id"),
    [
        pytest.param([LIST], None, id="a batch"),
        pytest.param(1, None, id="a number"),
        pytest.param({"hello": "world"}, None, id="another object"),
        pytest.param({"id": 3, "method": "tools/list"}, 3, id="no version"),
        pytest.param({"jsonrpc": "2.0", "id": "x"}, "x", id="no method"),
        pytest.param({"jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": []}, 3, id="a list of parameters"),
        pytest.param({"jsonrpc": "2.0", "id": True, "method": "tools/list"}, None, id="an id that is none"),
        pytest.param({"jsonrpc": "2.0", "id": 3, "result": 1}, None, id="an answer that is none"),
    ],
)
def test_json_that_is_no_message_is_answered(line: object, request_id: object) -> None:
    (answer,) = asked(line)
    assert (answer["id"], answer["error"]["code"]) == (request_id, -32600)


def test_empty_lines_and_notifications_need_no_answer() -> None:
    assert asked(b"", b" \r", {"jsonrpc": "2.0", "method": "notifications/initialized"}) == []


@pytest.mark.parametrize(("more", "codes"), [(0, []), (1, [-32600]), (3 * MAX_MESSAGE_BYTES, [-32600])])
def test_a_line_may_be_as_long_as_a_body_and_no_longer(more: int, codes: Sequence[int]) -> None:
    note = json.dumps({"jsonrpc": "2.0", "method": "notifications/none", "params": {"text": ""}})
    padding = "x" * (MAX_MESSAGE_BYTES + more - len(note))
    answers = asked(note.replace('""', f'"{padding}"').encode())
    assert [(answer["id"], answer["error"]["code"]) for answer in answers] == [(None, code) for code in codes]
