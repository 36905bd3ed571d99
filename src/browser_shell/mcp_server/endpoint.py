"""The MCP server: both protocol eras on one endpoint, and the words of the wire for what the pipeline decided.

Only this module and `stdio.py` know the `mcp` SDK.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeAlias

import anyio
import mcp_types as types
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.responses import JSONResponse
from starlette.types import Message, Receive, Scope, Send

from browser_shell import __version__
from browser_shell.asgi.disconnect import departure_of
from browser_shell.asgi.request_headers import request_headers
from browser_shell.core.calls import Principal, ToolCall
from browser_shell.core.errors import BrowserShellError, CallRefused, ErrorCode, UnknownTool
from browser_shell.core.json_values import JsonObject, JsonValue, compact_json
from browser_shell.core.ports import CallHandler, Clock, NewId, ToolDescription
from browser_shell.core.records import trace_id_of
from browser_shell.core.results import Attachment, ToolOutcome
from browser_shell.mcp_server.json_rpc import MAX_MESSAGE_BYTES, error_answer, is_message, read_json
from browser_shell.mcp_server.legacy_sessions import MAX_SESSIONS, LegacySessions

SERVER_NAME = "browser-shell"
INSTRUCTIONS = (
    "One tool drives one real browser. Begin with open, then snapshot -i to get refs such as @e1, act on refs, and "
    "take a new snapshot after the page changed. Keep one session_id for one task and end it with close. exit_code 0 "
    "is success; otherwise stderr says what to do."
)
LEGACY_SESSION_IDLE_SECONDS = 30 * 60
LIST_FRESH_MS = 5 * 60 * 1000
BRIEF_SECONDS = 30
"""Proxies give up on a silent connection after a minute or so."""
REQUEST_CANCELLED = -32800
"""As in LSP. Nobody reads it: the client has gone, or has cancelled."""

_WORK = "browser_shell.work"
"""Key of the ASGI scope under which one HTTP exchange keeps the cancel scope of what is done for it."""

_Context: TypeAlias = ServerRequestContext[Any, Any]  # the SDK's own context is generic over what we do not use


def principal_of(scope: Scope) -> Principal:
    """Whom the gateway named; over standard input there is no gateway, and one user."""
    principal: Principal = scope.get("state", {}).get("principal") or Principal(subject="local")
    return principal


def build_server(handler: CallHandler, *, new_id: NewId, instructions: str = INSTRUCTIONS) -> Server[dict[str, Any]]:
    """An MCP server with the tools of `handler` and nothing else: no prompts, resources, logging or completion."""

    async def list_tools(context: _Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_wire_tool(tool) for tool in handler.tools()])

    async def call_tool(context: _Context, params: types.CallToolRequestParams) -> JsonObject:
        scope: Scope = context.request.scope if context.request is not None else {}
        call = ToolCall(
            call_id=new_id(),
            principal=principal_of(scope),
            tool=params.name,
            arguments=params.arguments,
            trace_id=_trace_id(params, scope),
        )
        work: anyio.CancelScope = scope.get(_WORK) or anyio.CancelScope()

        async def tell(done: float, total: float, message: str) -> None:
            # Does nothing for a caller that gave no progress token. That one has gone is noticed by the exchange.
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                await context.session.report_progress(done, total, message)

        try:
            with work:
                return _wire_result(await handler.handle(call, tell))
        except UnknownTool as error:
            raise MCPError(code=types.INVALID_PARAMS, message=_in_words(error), data=_error_data(error)) from error
        except CallRefused as error:
            raise MCPError(code=error.code.number, message=_in_words(error), data=_error_data(error)) from error
        raise MCPError(code=REQUEST_CANCELLED, message="the client has gone")

    server = Server(
        SERVER_NAME,
        version=__version__,
        instructions=instructions,
        cache_hints={"tools/list": CacheHint(LIST_FRESH_MS), "server/discover": CacheHint(LIST_FRESH_MS)},
        # No tool takes arguments from `Mcp-Param` headers. Without this the SDK would run `tools/list` before every
        # modern `tools/call` in order to find that out.
        get_tool_input_schema=_takes_no_headers,
        on_list_tools=list_tools,
    )
    server.add_request_handler("tools/call", types.CallToolRequestParams, call_tool)
    # Only the SDK's OpenTelemetry spans are in it; our evidence is the audit log.
    server.middleware.clear()
    return server


def _takes_no_headers(name: str) -> None:
    """A schema in which the SDK would look for arguments that come as headers: none."""


class McpEndpoint:
    """The ASGI application behind `/mcp`. Serve requests only inside `run()`.

    The gateway stands before it: a body comes whole, in the first message.
    """

    def __init__(self, handler: CallHandler, *, clock: Clock, new_id: NewId, instructions: str = INSTRUCTIONS) -> None:
        server = build_server(handler, new_id=new_id, instructions=instructions)
        # JSON responses would keep the SDK from noticing that a modern client has gone.
        self._keeper = StreamableHTTPSessionManager(
            server,
            json_response=False,
            # Never reached. The SDK makes a session also for a request that names none, and then refuses it; of these
            # there are no more than connections.
            max_sessions=2 * MAX_SESSIONS,
            session_idle_timeout=LEGACY_SESSION_IDLE_SECONDS,
            max_request_body_size=MAX_MESSAGE_BYTES,
        )
        self._sessions = LegacySessions(self._serve_session, clock=clock)
        self._single_calls = StreamableHTTPSessionManager(
            server, json_response=False, stateless=True, max_request_body_size=MAX_MESSAGE_BYTES
        )
        # A stream costs each call two tasks and half a dozen turns of the event loop.
        self._brief_calls = StreamableHTTPSessionManager(
            server, json_response=True, stateless=True, max_request_body_size=MAX_MESSAGE_BYTES
        )
        self._usual_seconds = {tool.name: _usual_seconds(tool) for tool in handler.tools()}

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        async with self._keeper.run(), self._single_calls.run(), self._brief_calls.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Whatever ends the exchange ends the work for it. 2026-07-28 demands it. 2025-11-25 advises against it for the
        # sake of clients that resume a stream; this server has no resumable streams, so nobody could read the result.
        work = anyio.CancelScope()
        try:
            await self._serve({**scope, "headers": _plain_headers(scope), _WORK: work}, receive, send)
        finally:
            work.cancel()

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        request: JsonValue = None
        if scope["method"] == "POST":
            opening = await receive()
            try:
                request = read_json(opening["body"])
            except ValueError:
                await JSONResponse(error_answer(types.PARSE_ERROR, "Parse error"), 400)(scope, receive, send)
                return
            if not is_message(request):
                await JSONResponse(error_answer(types.INVALID_REQUEST, "Invalid Request"), 400)(scope, receive, send)
                return
            receive = _with_opening(opening, receive)
        headers = request_headers(scope)
        if scope["method"] == "GET" and not _wants_events(headers):
            words = "Not Acceptable: a GET is answered with an event stream; accept text/event-stream"
            await JSONResponse(error_answer(types.INVALID_REQUEST, words), 406)(scope, receive, send)
            return
        if _belongs_to_a_session(scope, headers, request):
            await self._sessions(principal_of(scope).subject, scope, receive, send)
            return
        departure = departure_of(scope)
        if departure is not None and self._is_brief(headers, request):
            with departure.calls(scope[_WORK].cancel):
                await self._brief_calls.handle_request(scope, receive, send)
        else:
            await self._single_calls.handle_request(scope, receive, send)

    async def _serve_session(self, subject: str, scope: Scope, receive: Receive, send: Send) -> None:
        await self._keeper.handle_request({**scope, "user": _owner(subject)}, receive, send)

    def _is_brief(self, headers: Mapping[str, str], request: JsonValue) -> bool:
        """Whether one JSON answer will do: a call of the modern era that nobody follows, and that no proxy on the way
        would take for dead before it ends.
        """
        older = headers.get("mcp-protocol-version", HANDSHAKE_PROTOCOL_VERSIONS[0]) in HANDSHAKE_PROTOCOL_VERSIONS
        if older or "text/event-stream" not in headers.get("accept", ""):
            return False
        match request:
            case {"method": "tools/call", "params": {"name": str(name), "arguments": {**given}, "_meta": {**meta}}}:
                seconds = given.get("timeout_sec", self._usual_seconds.get(name))
                return "progressToken" not in meta and isinstance(seconds, int) and seconds <= BRIEF_SECONDS
        return False


def _wants_events(headers: Mapping[str, str]) -> bool:
    """Whether events are named. Browsers accept anything, and would wait for ever for a page."""
    named = (entry.partition(";")[0].strip().lower() for entry in headers.get("accept", "").split(","))
    return "text/event-stream" in named


def _usual_seconds(tool: ToolDescription) -> JsonValue:
    """How long a call takes at most if it does not say so itself, as the tool's schema has it."""
    match tool.input_schema:
        case {"properties": {"timeout_sec": {"default": seconds}}}:
            return seconds
    return None


def _with_opening(opening: Message, receive: Receive) -> Receive:
    kept = [opening]

    async def replay() -> Message:
        return kept.pop() if kept else await receive()

    return replay


def _plain_headers(scope: Scope) -> list[tuple[bytes, bytes]]:
    """The SDK compares the type of the body letter by letter, and types know no case."""
    return [(name, value.lower() if name == b"content-type" else value) for name, value in scope["headers"]]


def _owner(subject: str) -> AuthenticatedUser:
    """In the SDK's form, so that a session answers 404 to everyone but the subject that opened it."""
    return AuthenticatedUser(AccessToken(token="", client_id=subject, scopes=[]))


def _belongs_to_a_session(scope: Scope, headers: Mapping[str, str], request: JsonValue) -> bool:
    """Clients of the older era that shake hands get a session, so that their `notifications/cancelled` finds the call.

    A single `tools/list` or `tools/call` without a handshake is served on its own.
    """
    if headers.get("mcp-protocol-version", HANDSHAKE_PROTOCOL_VERSIONS[0]) not in HANDSHAKE_PROTOCOL_VERSIONS:
        return False
    if scope["method"] != "POST" or "mcp-session-id" in headers:
        return True
    return isinstance(request, dict) and request.get("method") == "initialize"


def _trace_id(params: types.CallToolRequestParams, scope: Scope) -> str:
    """Of the call's own `_meta`, as SEP-414 has it, else of the HTTP request that brought it."""
    own = trace_id_of((params.meta or {}).get("traceparent"))
    return own or (trace_id_of(request_headers(scope).get("traceparent")) if "headers" in scope else "")


def _wire_tool(tool: ToolDescription) -> types.Tool:
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=types.ToolAnnotations.model_validate(tool.annotations),
    )


def _wire_result(outcome: ToolOutcome) -> JsonObject:
    """Not as the SDK's models: it holds whatever a handler returns against the schema of the client's version anyway.

    Raises: MCPError for a tool whose failures are errors of the protocol.
    """
    if outcome.error is not None and outcome.fails_by_protocol:
        raise MCPError(code=outcome.error.number, message=outcome.stderr, data=_outcome_data(outcome, outcome.error))
    answer: JsonObject = outcome.answer or {
        "session_id": outcome.session_id,
        "exit_code": outcome.exit_code,
        "stdout": outcome.stdout,
        "stderr": outcome.stderr,
    }
    text: JsonObject = {"type": "text", "text": compact_json(answer)}
    result: JsonObject = {
        "resultType": "complete",
        "content": [text, *(_wire_attachment(attachment) for attachment in outcome.attachments)],
        "structuredContent": answer,
        "isError": outcome.error is not None,
    }
    meta = _meta(outcome)
    return result if meta is None else {**result, "_meta": meta}


def _outcome_data(outcome: ToolOutcome, error: ErrorCode) -> JsonObject:
    data: JsonObject = {"code": error.name, "rule": outcome.rule_id}
    if outcome.run_id:
        data["run_id"] = outcome.run_id
    if outcome.retry_after_seconds is not None:
        data["retry_after"] = outcome.retry_after_seconds
    return data


def _meta(outcome: ToolOutcome) -> JsonObject | None:
    if outcome.error is None:
        return None
    meta: JsonObject = {"code": outcome.error.number, "name": outcome.error.name, "rule": outcome.rule_id}
    if outcome.retry_after_seconds is not None:
        meta["retry_after"] = outcome.retry_after_seconds
    return meta


def _wire_attachment(attachment: Attachment) -> JsonObject:
    data = base64.b64encode(attachment.content).decode()
    if attachment.mime_type.startswith("image/"):
        return {"type": "image", "data": data, "mimeType": attachment.mime_type}
    uri = f"browser-shell://artifact/{attachment.name}"
    return {"type": "resource", "resource": {"uri": uri, "mimeType": attachment.mime_type, "blob": data}}


def _in_words(error: BrowserShellError) -> str:
    rule = f" (rule {error.rule_id})" if error.rule_id else ""
    return f"{error.code.name}: {error.public_message}{rule}. {error.code.advice}"


def _error_data(error: BrowserShellError) -> JsonObject:
    return {"code": error.code.name, "rule": error.rule_id}
