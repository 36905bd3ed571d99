"""The MCP server over standard input and output, for clients that start their servers themselves.

The SDK's stdio transport reads in a thread that ends only when the client writes or exits. Here the event loop reads,
so that nothing can keep the process from ending.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import select
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from threading import Thread
from typing import TypeAlias

import anyio
import mcp_types as types
from anyio import to_thread
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.core.json_values import JsonValue
from browser_shell.core.ports import CallHandler, NewId
from browser_shell.mcp_server.endpoint import INSTRUCTIONS, build_server
from browser_shell.mcp_server.json_rpc import MAX_MESSAGE_BYTES, is_message, parse_message, reply_id

_CHUNK_BYTES = 64 * 1024
_FIRST_FREE_DESCRIPTOR = 3

_ToServer: TypeAlias = MemoryObjectSendStream[SessionMessage | Exception]  # the SDK's signature allows exceptions
_ToClient: TypeAlias = MemoryObjectSendStream[SessionMessage]


async def run_stdio(handler: CallHandler, *, new_id: NewId, instructions: str = INSTRUCTIONS) -> None:
    """Serve one client until end of file, then cancel the calls that still run.

    Standard output belongs to the protocol: other output of the process goes to standard error.
    Raises: ConfigurationInvalid.
    """
    server = build_server(handler, new_id=new_id, instructions=instructions)
    stdin, stdout = _take_standard_streams()
    to_server, requests = anyio.create_memory_object_stream[SessionMessage | Exception]()
    to_client, responses = anyio.create_memory_object_stream[SessionMessage]()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_read_messages, stdin, to_server, to_client.clone())
        tasks.start_soon(_write_messages, stdout, responses, tasks.cancel_scope)
        await server.run(requests, to_client, server.create_initialization_options())


async def _read_messages(file: int, to_server: _ToServer, to_client: _ToClient) -> None:
    """Forward messages to the SDK. Answer invalid ones here: the SDK drops them, and the client would wait."""
    async with to_server, to_client, aclosing(_read_lines(file, max_bytes=MAX_MESSAGE_BYTES)) as lines:
        async for line in lines:
            if line is None:
                await to_client.send(_error(types.INVALID_REQUEST, f"longer than {MAX_MESSAGE_BYTES} bytes"))
            elif line.strip():
                await _forward(line, to_server, to_client)


async def _forward(line: bytes, to_server: _ToServer, to_client: _ToClient) -> None:
    try:
        request = parse_message(line)
    except ValueError:
        await to_client.send(_error(types.PARSE_ERROR, "Parse error"))
        return
    message = _validated(request)
    if message is None:
        await to_client.send(_error(types.INVALID_REQUEST, "Invalid Request", reply_id(request)))
    else:
        await to_server.send(SessionMessage(message))


def _validated(request: JsonValue) -> types.JSONRPCMessage | None:
    if not is_message(request):
        return None
    try:
        return types.jsonrpc_message_adapter.validate_python(request, by_name=False)
    except ValueError:
        return None


def _error(code: int, message: str, request_id: str | int | None = None) -> SessionMessage:
    error = types.ErrorData(code=code, message=message)
    return SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=request_id, error=error))


async def _write_messages(
    file: int, responses: MemoryObjectReceiveStream[SessionMessage], cancel_scope: anyio.CancelScope
) -> None:
    async with responses:
        try:
            async for response in responses:
                await _write(file, encode_line(response.message))
        except OSError:
            # The client closed its end. Its input may stay open, so the server ends here.
            cancel_scope.cancel()


def encode_line(message: types.JSONRPCMessage) -> bytes:
    """Encode a message as one line; a message that cannot be encoded becomes an error response."""
    try:
        text = message.model_dump_json(by_alias=True, exclude_unset=True)
    except ValueError:
        error = types.ErrorData(code=types.INTERNAL_ERROR, message="the answer cannot be written")
        request_id = getattr(message, "id", None)
        text = types.JSONRPCError(jsonrpc="2.0", id=request_id, error=error).model_dump_json(by_alias=True)
    return text.encode() + b"\n"


# Standard streams.


def _take_standard_streams() -> tuple[int, int]:
    """Move standard input and output to new descriptors and return those. Raises: ConfigurationInvalid.

    Descriptors 0 and 1 become /dev/null and standard error until the process ends. Output of plugins and child
    processes therefore never reaches the client.
    """
    if sys.stdin is None or sys.stdout is None:
        raise ConfigurationInvalid("stdio: standard input and output must be open")
    stdin, stdout = (fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE_DESCRIPTOR) for number in (0, 1))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null if sys.stderr is None else 2, 1)
    os.close(null)
    return stdin, stdout


async def _read_lines(file: int, *, max_bytes: int) -> AsyncGenerator[bytes | None, None]:
    """Yield each line without its line end, and None for a line above `max_bytes`, which is not kept."""
    line, is_too_long = bytearray(), False
    while chunk := await _read(file):
        *ends, start = chunk.split(b"\n")
        for end in ends:
            line += end
            yield None if is_too_long or len(line) > max_bytes else bytes(line)
            line, is_too_long = bytearray(), False
        line += start
        if len(line) > max_bytes:
            line, is_too_long = bytearray(), True
    if line or is_too_long:
        yield None if is_too_long else bytes(line)


async def _read(file: int) -> bytes:
    """Return available bytes; b"" at the end of file, after a terminal hang-up or a connection reset."""
    while True:
        try:
            await anyio.wait_readable(file)
        except PermissionError:
            # epoll refuses regular files and /dev/null, which never block.
            with suppress(OSError):
                return await to_thread.run_sync(os.read, file, _CHUNK_BYTES)
            return b""
        try:
            return os.read(file, _CHUNK_BYTES)
        except BlockingIOError:
            continue
        except OSError:
            return b""


async def _write(file: int, data: bytes) -> None:
    """Write all of `data` in a daemon thread. Raises: OSError when the client closed its end.

    Other processes may share the file, so it cannot be made non-blocking. The process does not wait for a daemon thread
    at exit, so a client that stopped reading does not delay it.
    """
    loop = asyncio.get_running_loop()
    written: asyncio.Future[None] = loop.create_future()

    def set_result(error: OSError | None) -> None:
        if written.done():
            return  # Cancelled.
        if error is None:
            written.set_result(None)
        else:
            written.set_exception(error)

    def run() -> None:
        error: OSError | None = None
        try:
            _write_all(file, data)
        except OSError as failure:
            error = failure
        with suppress(RuntimeError):  # The loop is closed.
            loop.call_soon_threadsafe(set_result, error)

    Thread(target=run, name="standard output", daemon=True).start()
    await written


def _write_all(file: int, data: bytes) -> None:
    unsent = memoryview(data)
    while unsent:
        try:
            unsent = unsent[os.write(file, unsent) :]
        except BlockingIOError:  # The client passed a non-blocking file.
            poll = select.poll()
            poll.register(file, select.POLLOUT)
            poll.poll()
