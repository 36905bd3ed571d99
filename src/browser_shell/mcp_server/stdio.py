"""The same MCP server over standard input and output, for clients that start their servers themselves."""

from __future__ import annotations

from contextlib import aclosing
from typing import TypeAlias

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from browser_shell.core.json_values import JsonValue
from browser_shell.core.ports import CallHandler, NewId
from browser_shell.mcp_server.endpoint import INSTRUCTIONS, build_server
from browser_shell.mcp_server.json_rpc import MAX_MESSAGE_BYTES, id_to_answer, is_message, read_json
from browser_shell.mcp_server.standard_streams import read_lines, take_standard_streams, write

_ToServer: TypeAlias = MemoryObjectSendStream[SessionMessage | Exception]  # the exceptions are the SDK's, not ours


async def run_stdio(handler: CallHandler, *, new_id: NewId, instructions: str = INSTRUCTIONS) -> None:
    """Serve one client until its end of file; calls that are still running are then cancelled.

    Standard output belongs to the protocol: whatever else is printed there goes to standard error.
    Raises: ConfigurationInvalid.
    """
    server = build_server(handler, new_id=new_id, instructions=instructions)
    wire = take_standard_streams()
    to_server, requests = anyio.create_memory_object_stream[SessionMessage | Exception]()
    answers, to_client = anyio.create_memory_object_stream[SessionMessage]()
    async with anyio.create_task_group() as both_ways:
        both_ways.start_soon(_take_in, wire.incoming, to_server, answers.clone())
        both_ways.start_soon(_give_out, wire.outgoing, to_client, both_ways.cancel_scope)
        await server.run(requests, answers, server.create_initialization_options())


async def _take_in(file: int, to_server: _ToServer, answers: MemoryObjectSendStream[SessionMessage]) -> None:
    """Hands on what is a message. What is none is answered here: the SDK drops it, and its sender would wait."""
    async with to_server, answers, aclosing(read_lines(file, max_bytes=MAX_MESSAGE_BYTES)) as lines:
        async for line in lines:
            if line is None:
                await answers.send(_refusal(types.INVALID_REQUEST, f"longer than {MAX_MESSAGE_BYTES} bytes"))
            elif line.strip():
                await _hand_on(line, to_server, answers)


async def _hand_on(line: bytes, to_server: _ToServer, answers: MemoryObjectSendStream[SessionMessage]) -> None:
    try:
        request = read_json(line)
    except ValueError:
        await answers.send(_refusal(types.PARSE_ERROR, "Parse error"))
        return
    message = _message(request)
    if message is None:
        await answers.send(_refusal(types.INVALID_REQUEST, "Invalid Request", id_to_answer(request)))
    else:
        await to_server.send(SessionMessage(message))


def _message(request: JsonValue) -> types.JSONRPCMessage | None:
    if not is_message(request):
        return None
    try:
        return types.jsonrpc_message_adapter.validate_python(request, by_name=False)
    except ValueError:
        return None


def _refusal(code: int, message: str, request_id: str | int | None = None) -> SessionMessage:
    error = types.ErrorData(code=code, message=message)
    return SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=request_id, error=error))


def line_of(message: types.JSONRPCMessage) -> bytes:
    try:
        text = message.model_dump_json(by_alias=True, exclude_unset=True)
    except ValueError:
        # One answer that cannot be written is no reason to end all others.
        error = types.ErrorData(code=types.INTERNAL_ERROR, message="the answer cannot be written")
        number = getattr(message, "id", None)
        text = types.JSONRPCError(jsonrpc="2.0", id=number, error=error).model_dump_json(by_alias=True)
    return text.encode() + b"\n"


async def _give_out(
    file: int, to_client: MemoryObjectReceiveStream[SessionMessage], all_ways: anyio.CancelScope
) -> None:
    async with to_client:
        try:
            async for answer in to_client:
                await write(file, line_of(answer.message))
        except OSError:
            # Nobody reads any more. That is an end like that of the input, which may stay open.
            all_ways.cancel()
