"""JSON-RPC messages: parsing and checking of requests, and the wire form of tools, results and errors."""

from __future__ import annotations

import base64
import re

import mcp_types as types
from mcp.shared.exceptions import MCPError
from starlette.responses import JSONResponse

from browser_shell.core.calls import Attachment, ToolOutcome
from browser_shell.core.errors import BrowserShellError, ErrorCode, UnknownTool
from browser_shell.core.json_values import JsonObject, JsonValue, compact_json, parse_json
from browser_shell.core.ports import ToolDescription

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


def wire_tool(tool: ToolDescription) -> types.Tool:
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=types.ToolAnnotations.model_validate(tool.annotations),
    )


def wire_result(outcome: ToolOutcome) -> JsonObject:
    """Build the result as plain JSON. The SDK validates it against the schema of the client's version.

    Raises: MCPError for a failed call of a tool whose failures are protocol errors.
    """
    if outcome.error is not None and outcome.uses_protocol_errors:
        raise _outcome_error(outcome, outcome.error)
    content: JsonObject = outcome.answer or {
        "session_id": outcome.session_id,
        "exit_code": outcome.exit_code,
        "stdout": outcome.stdout,
        "stderr": outcome.stderr,
    }
    text: JsonObject = {"type": "text", "text": compact_json(content)}
    result: JsonObject = {
        "resultType": "complete",
        "content": [text, *(_wire_attachment(attachment) for attachment in outcome.attachments)],
        "structuredContent": content,
        "isError": outcome.error is not None,
    }
    if outcome.error is not None:
        meta: JsonObject = {"code": outcome.error.number, "name": outcome.error.name, "rule": outcome.rule_id}
        result["_meta"] = meta | _retry_after(outcome)
    return result


def wire_error(error: BrowserShellError) -> MCPError:
    """Build the protocol error of a call that was refused before any tool ran."""
    rule = f" (rule {error.rule_id})" if error.rule_id else ""
    return MCPError(
        code=types.INVALID_PARAMS if isinstance(error, UnknownTool) else error.code.number,
        message=f"{error.code.name}: {error.public_message}{rule}. {error.code.advice}",
        data={"code": error.code.name, "rule": error.rule_id},
    )


def _outcome_error(outcome: ToolOutcome, error: ErrorCode) -> MCPError:
    data: JsonObject = {"code": error.name, "rule": outcome.rule_id}
    if outcome.run_id:
        data["run_id"] = outcome.run_id
    return MCPError(code=error.number, message=outcome.stderr, data=data | _retry_after(outcome))


def _retry_after(outcome: ToolOutcome) -> JsonObject:
    return {} if outcome.retry_after_seconds is None else {"retry_after": outcome.retry_after_seconds}


def _wire_attachment(attachment: Attachment) -> JsonObject:
    data = base64.b64encode(attachment.content).decode()
    if attachment.mime_type.startswith("image/"):
        return {"type": "image", "data": data, "mimeType": attachment.mime_type}
    uri = f"browser-shell://artifact/{attachment.name}"
    return {"type": "resource", "resource": {"uri": uri, "mimeType": attachment.mime_type, "blob": data}}
