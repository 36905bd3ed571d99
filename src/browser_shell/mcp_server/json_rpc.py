"""Parsing and checking of one JSON-RPC message, for HTTP and stdio."""

from __future__ import annotations

import re

from starlette.responses import JSONResponse

from browser_shell.core.json_values import JsonObject, JsonValue, compact_json, parse_json

MAX_MESSAGE_BYTES = 4 * 1024 * 1024
MAX_DEPTH = 64

# An unterminated string matches to the end, so that no byte is scanned twice. Otherwise 30 kB would take seconds.
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)', re.DOTALL)
_BRACKET = re.compile(rb"[][{}]")


def parse_message(body: bytes) -> JsonValue:
    """Parse JSON more strictly than the SDK, which also accepts duplicate keys, NaN and other encodings.

    Raises: ValueError.
    """
    if _is_too_deep(body):
        raise ValueError("nested too deeply")
    value = parse_json(body.decode("utf-8"))
    if b"\\u" in body:
        compact_json(value).encode("utf-8")  # Raises for lone surrogates, which cannot be encoded again.
    return value


def _is_too_deep(body: bytes) -> bool:
    if body.count(b"[") + body.count(b"{") <= MAX_DEPTH:
        return False
    depth = 0
    for bracket in _BRACKET.finditer(_STRING.sub(b"", body)):
        depth += 1 if bracket[0] in b"[{" else -1
        if depth > MAX_DEPTH:
            return True
    return False


def is_message(request: JsonValue) -> bool:
    """Return whether this is a JSON-RPC message of MCP. The SDK's own error would name its version and a link."""
    if not isinstance(request, dict) or request.get("jsonrpc") != "2.0":
        return False
    has_kind = isinstance(request.get("method"), str) or _is_response(request)
    return has_kind and _is_id(request.get("id", 0)) and isinstance(request.get("params", {}), dict)


def reply_id(request: JsonValue) -> str | int | None:
    """Return the id for the error response to an invalid message.

    None for a response: its id is one of this server's ids, and may equal the id of another request of the client.
    """
    if not isinstance(request, dict) or _is_response(request):
        return None
    request_id = request.get("id")
    return request_id if isinstance(request_id, str | int) and _is_id(request_id) else None


def error_response(status: int, code: int, message: str) -> JSONResponse:
    """Build an HTTP response with a JSON-RPC error that belongs to no request."""
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}, status)


def _is_response(message: JsonObject) -> bool:
    return "method" not in message and bool(message.keys() & {"result", "error"})


def _is_id(value: JsonValue) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)
