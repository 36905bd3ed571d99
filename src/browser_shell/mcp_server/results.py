"""The wire form of tools, results and errors."""

from __future__ import annotations

import base64

import mcp_types as types
from mcp.shared.exceptions import MCPError

from browser_shell.core.calls import Attachment, ToolOutcome
from browser_shell.core.errors import BrowserShellError, ErrorCode, UnknownTool
from browser_shell.core.json_values import JsonObject, compact_json
from browser_shell.core.ports import ToolDescription


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
