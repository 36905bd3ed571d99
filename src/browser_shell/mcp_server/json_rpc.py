"""What may come in as one message of MCP, whichever way it comes, and the answer to what may not."""

from __future__ import annotations

import re

from browser_shell.core.json_values import JsonObject, JsonValue, compact_json, parse_json

MAX_MESSAGE_BYTES = 4 * 1024 * 1024
MAX_DEPTH = 64

# One that never ends goes to the end, so that no byte is looked at twice: else a body of 30 kB would take seconds.
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)', re.DOTALL)
_BRACKET = re.compile(rb"[][{}]")


def read_json(body: bytes) -> JsonValue:
    """What the SDK would read too, only that it would also read twins, NaN and other encodings. Raises: ValueError."""
    if _is_deep(body):
        raise ValueError("nested too deeply")
    value = parse_json(body.decode("utf-8"))
    if b"\\u" in body:
        compact_json(value).encode("utf-8")  # Halves of characters: nobody could write them down again.
    return value


def _is_deep(body: bytes) -> bool:
    if body.count(b"[") + body.count(b"{") <= MAX_DEPTH:
        return False
    depth = 0
    for bracket in _BRACKET.finditer(_STRING.sub(b"", body)):
        depth += 1 if bracket[0] in b"[{" else -1
        if depth > MAX_DEPTH:
            return True
    return False


def is_message(request: JsonValue) -> bool:
    """Whether it is one JSON-RPC message of MCP. The SDK would say so too, with its version and a link."""
    if not isinstance(request, dict) or request.get("jsonrpc") != "2.0":
        return False
    named = isinstance(request.get("method"), str) or ("method" not in request and request.keys() & {"result", "error"})
    return bool(named) and _is_id(request.get("id", 0)) and isinstance(request.get("params", {}), dict)


def id_to_answer(request: JsonValue) -> str | int | None:
    """Under which its sender waits for an answer to what is no message.

    None for what looks like an answer: its id is one of ours, and may well be that of another request of the sender's.
    """
    if not isinstance(request, dict) or ("method" not in request and request.keys() & {"result", "error"}):
        return None
    number = request.get("id")
    return number if isinstance(number, str | int) and _is_id(number) else None


def error_answer(code: int, message: str) -> JsonObject:
    """An error of JSON-RPC that belongs to no request."""
    return {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}


def _is_id(value: JsonValue) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)
