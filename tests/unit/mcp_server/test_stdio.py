"""Encoding of messages as lines."""

from __future__ import annotations

import json

import mcp_types as types

from browser_shell.mcp_server.stdio import encode_line


def test_message_is_one_line() -> None:
    line = encode_line(types.JSONRPCResponse(jsonrpc="2.0", id=7, result={"text": "a\nb\u2028c"}))
    assert line.count(b"\n") == 1
    assert json.loads(line) == {"jsonrpc": "2.0", "id": 7, "result": {"text": "a\nb\u2028c"}}


def test_message_that_cannot_be_encoded_becomes_an_error_response() -> None:
    lone_surrogate = "\ud800"
    line = encode_line(types.JSONRPCResponse(jsonrpc="2.0", id=7, result={"text": lone_surrogate}))
    response = json.loads(line)
    assert (response["id"], response["error"]["code"]) == (7, types.INTERNAL_ERROR)
    assert "result" not in response
