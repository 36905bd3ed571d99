"""The stdio transport: every way to end, and lines that are not valid messages."""

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
from support.time_limits import within
from support.wire import ENVELOPE, INITIALIZE, body, call_params

EXIT_SECONDS = 2.0
PIPE_BYTES = 64 * 1024
LIST = body("tools/list", {"_meta": ENVELOPE}, request_id=7)


@dataclass(frozen=True)
class Stdio:
    """A server process and the client's end of its input."""

    process: subprocess.Popen[bytes]
    to_server: int

    def send(self, *lines: object) -> None:
        """Write lines; values other than bytes are encoded as JSON."""
        for line in lines:
            text = line if isinstance(line, bytes) else json.dumps(line).encode()
            unsent = text + b"\n"
            while unsent:
                unsent = unsent[os.write(self.to_server, unsent) :]

    def receive(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def has_logged(self, word: str) -> bool:
        """Wait for a log line that contains the word."""
        return any(word.encode() in line for line in self.process.stderr or ())

    def stop(self, number: signal.Signals) -> float:
        """Return the seconds until the process ended."""
        started_at = time.monotonic()
        self.process.send_signal(number)
        assert self.process.wait(20) == 0
        return time.monotonic() - started_at


def a_pipe() -> tuple[int, int]:
    return os.pipe()


def a_socket() -> tuple[int, int]:
    for_server, for_client = socket.socketpair()
    return for_server.detach(), for_client.detach()


def a_terminal() -> tuple[int, int]:
    for_client, for_server = pty.openpty()
    return for_server, for_client


KINDS = [a_pipe, a_socket, a_terminal]


@contextmanager
def a_server(kind: Callable[[], tuple[int, int]] = a_pipe, *, way: str = "stdio") -> Iterator[Stdio]:
    for_server, for_client = kind()
    with ExitStack() as stack:
        stack.callback(os.close, for_client)
        process = stack.enter_context(
            subprocess.Popen([*SERVER_COMMAND, way], stdin=for_server, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        )
        stack.callback(process.kill)
        os.close(for_server)
        yield Stdio(process, for_client)


def responses_to(*lines: object) -> list[Any]:
    """Send lines and return the responses that come before the response to a final `tools/list`."""
    with a_server() as server:
        server.send(*lines, LIST)
        responses = [server.receive()]
        while responses[-1].get("id") != LIST["id"]:
            responses.append(server.receive())
        assert "result" in responses[-1], "the server stopped serving"
        return responses[:-1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("kind", KINDS)
def test_signal_ends_the_server_while_its_input_is_open(
    kind: Callable[[], tuple[int, int]], number: signal.Signals
) -> None:
    with a_server(kind) as server:
        server.send(LIST)
        assert "result" in server.receive()
        assert within(server.stop(number), EXIT_SECONDS)


def test_signal_ends_the_server_in_the_middle_of_a_line() -> None:
    with a_server() as server:
        server.send(LIST)
        server.receive()
        os.write(server.to_server, b'{"jsonrpc"')
        assert within(server.stop(signal.SIGTERM), EXIT_SECONDS)


def test_signal_ends_the_server_while_its_output_is_blocked() -> None:
    with a_server() as server:
        server.send(*[LIST] * 100)
        wait_until(lambda: output_is_blocked(server), seconds=20, what="a full pipe")
        assert within(server.stop(signal.SIGTERM), EXIT_SECONDS)


def output_is_blocked(server: Stdio) -> bool:
    """Whether the pipe is full. A page of a full pipe may be almost half empty: writes of up to 4 KiB are not split."""
    before = unread(server)
    time.sleep(0.3)
    return before > PIPE_BYTES // 2 and unread(server) == before


def unread(server: Stdio) -> int:
    """Return the number of bytes in the output pipe."""
    assert server.process.stdout is not None
    return int.from_bytes(fcntl.ioctl(server.process.stdout, termios.FIONREAD, bytes(4)), sys.byteorder)


@pytest.mark.promise("mcp:disconnect-stops-the-work")
@pytest.mark.parametrize("end", ["signal", "end of input"])
def test_running_call_is_cancelled_when_the_server_ends(end: str) -> None:
    with a_server(way="stdio-hanging") as server:
        server.send(body("tools/call", {**call_params(), "_meta": ENVELOPE}))
        assert server.has_logged("begun")
        if end == "signal":
            server.process.send_signal(signal.SIGTERM)
        else:
            os.dup2(os.open(os.devnull, os.O_WRONLY), server.to_server)
        assert server.has_logged("stopped")
        assert server.process.wait(20) == 0


def test_server_ends_when_the_client_closes_the_output() -> None:
    with a_server() as server:
        server.send(LIST)
        server.receive()
        assert server.process.stdout is not None
        server.process.stdout.close()
        server.send(LIST)
        assert server.process.wait(20) == 0
        assert server.process.stderr is not None
        assert server.process.stderr.read() == b""


@pytest.mark.parametrize("last_end", [b"\n", b""])
def test_regular_file_is_read_to_its_end(tmp_path: Path, last_end: bytes) -> None:
    requests = tmp_path / "requests"
    requests.write_bytes(json.dumps(body("initialize", INITIALIZE)).encode() + last_end)
    with requests.open("rb") as file:
        ended = subprocess.run([*SERVER_COMMAND, "stdio"], stdin=file, capture_output=True, timeout=20, check=True)
    assert json.loads(ended.stdout)["result"]["serverInfo"]["name"] == "browser-shell"


def test_unreadable_input_is_an_end_of_input(tmp_path: Path) -> None:
    with (tmp_path / "input").open("wb") as write_only:
        ended = subprocess.run([*SERVER_COMMAND, "stdio"], stdin=write_only, capture_output=True, timeout=20)
    assert (ended.returncode, ended.stdout) == (0, b"")
    assert b"Traceback" not in ended.stderr


def test_closed_standard_input_is_a_configuration_error() -> None:
    closed = ["sh", "-c", 'exec "$@" <&-', "sh", *SERVER_COMMAND, "stdio"]
    ended = subprocess.run(closed, capture_output=True, timeout=20, check=False)
    assert ended.returncode != 0
    assert b"standard input and output must be open" in ended.stderr


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"not JSON", id="not JSON"),
        pytest.param(b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', id="duplicate key"),
        pytest.param(b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', id="not UTF-8"),
        pytest.param(b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), id="nested too deeply"),
        pytest.param(b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', id="lone surrogate in the id"),
        pytest.param(
            b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping","params":[]}', id="lone surrogate in an invalid message"
        ),
        pytest.param(b'{"jsonrpc":"2.0","id":2,"method":"a\\ud800"}', id="lone surrogate in the method"),
    ],
)
def test_line_that_is_not_json_gets_a_parse_error(line: bytes) -> None:
    (response,) = responses_to(line)
    assert (response["id"], response["error"]["code"]) == (None, -32700)


@pytest.mark.parametrize(
    ("line", "request_id"),
    [
        pytest.param([LIST], None, id="a batch"),
        pytest.param(1, None, id="a number"),
        pytest.param({"hello": "world"}, None, id="another object"),
        pytest.param({"id": 3, "method": "tools/list"}, 3, id="no version"),
        pytest.param({"jsonrpc": "2.0", "id": "x"}, "x", id="no method"),
        pytest.param({"jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": []}, 3, id="a list of parameters"),
        pytest.param({"jsonrpc": "2.0", "id": True, "method": "tools/list"}, None, id="invalid id"),
        pytest.param({"jsonrpc": "2.0", "id": 3, "result": 1}, None, id="invalid response"),
    ],
)
def test_json_that_is_not_a_message_gets_an_invalid_request_error(line: object, request_id: object) -> None:
    (response,) = responses_to(line)
    assert (response["id"], response["error"]["code"]) == (request_id, -32600)


def test_empty_lines_and_notifications_get_no_response() -> None:
    assert responses_to(b"", b" \r", {"jsonrpc": "2.0", "method": "notifications/initialized"}) == []


@pytest.mark.parametrize(("more", "codes"), [(0, []), (1, [-32600]), (3 * MAX_MESSAGE_BYTES, [-32600])])
def test_line_above_the_size_limit_is_refused(more: int, codes: Sequence[int]) -> None:
    note = json.dumps({"jsonrpc": "2.0", "method": "notifications/none", "params": {"text": ""}})
    padding = "x" * (MAX_MESSAGE_BYTES + more - len(note))
    responses = responses_to(note.replace('""', f'"{padding}"').encode())
    assert [(response["id"], response["error"]["code"]) for response in responses] == [(None, code) for code in codes]
