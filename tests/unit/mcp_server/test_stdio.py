"""What `browser-shell stdio` writes: one line for each message, whatever is in it."""

from __future__ import annotations

import json

import mcp_types as types

from browser_shell.mcp_server.stdio import line_of


def test_a_message_is_one_line() -> None:
    line = line_of(types.JSONRPCResponse(jsonrpc="2.0", id=7, result={"text": "a\nb\u2028c"}))
    assert line.count(b"\n") == 1
    assert json.loads(line) == {"jsonrpc": "2.0", "id": 7, "result": {"text": "a\nb\u2028c"}}


def test_an_answer_that_cannot_be_written_is_an_error_to_its_own_request_and_ends_nothing() -> None:
    half_a_character = "\ud800"
    line = line_of(types.JSONRPCResponse(jsonrpc="2.0", id=7, result={"text": half_a_character}))
    told = json.loads(line)
    assert (told["id"], told["error"]["code"]) == (7, types.INTERNAL_ERROR)
    assert "result" not in told
