"""The MCP server: both protocol eras on one HTTP endpoint. Only this package imports the `mcp` SDK."""

from __future__ import annotations

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
from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send

from browser_shell import __version__
from browser_shell.asgi import disconnect_signal
from browser_shell.core.calls import Principal, ToolCall
from browser_shell.core.errors import CallRefused, UnknownTool
from browser_shell.core.json_values import JsonObject, JsonValue
from browser_shell.core.ports import CallHandler, Clock, NewId, ToolDescription
from browser_shell.core.records import trace_id_of
from browser_shell.mcp_server.json_rpc import (
    MAX_MESSAGE_BYTES,
    error_response,
    is_message,
    parse_message,
    wire_error,
    wire_result,
    wire_tool,
)
from browser_shell.mcp_server.legacy_sessions import MAX_SESSIONS, LegacySessions

SERVER_NAME = "browser-shell"
INSTRUCTIONS = (
    "One tool drives one real browser. Begin with open, then snapshot -i to get refs such as @e1, act on refs, and "
    "take a new snapshot after the page changed. Keep one session_id for one task and end it with close. exit_code 0 "
    "is success; otherwise stderr says what to do."
)
LEGACY_SESSION_IDLE_SECONDS = 30 * 60
LIST_FRESH_MS = 5 * 60 * 1000
MAX_JSON_RESPONSE_SECONDS = 30
"""Longer calls are answered by an event stream, because many proxies drop a silent connection after a minute."""
REQUEST_CANCELLED = -32800
"""As in LSP. The client never sees it: it has disconnected or cancelled."""

_CANCEL_SCOPE = "browser_shell.cancel_scope"
"""Key of the ASGI scope for the cancel scope of the call that the request makes."""

_Context: TypeAlias = ServerRequestContext[Any, Any]


def principal_of(scope: Scope) -> Principal:
    """Return the caller that the gateway authenticated; the local user over standard input."""
    principal: Principal = scope.get("state", {}).get("principal") or Principal(subject="local")
    return principal


def build_server(handler: CallHandler, *, new_id: NewId, instructions: str = INSTRUCTIONS) -> Server[dict[str, Any]]:
    """Build an MCP server that offers the tools of `handler`, and no prompts, resources, logging or completion."""

    async def list_tools(context: _Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[wire_tool(tool) for tool in handler.tools()])

    async def call_tool(context: _Context, params: types.CallToolRequestParams) -> JsonObject:
        scope: Scope = context.request.scope if context.request is not None else {}
        call = ToolCall(
            call_id=new_id(),
            principal=principal_of(scope),
            tool=params.name,
            arguments=params.arguments,
            trace_id=_trace_id(params, scope),
        )
        cancel_scope: anyio.CancelScope = scope.get(_CANCEL_SCOPE) or anyio.CancelScope()

        async def report_progress(done: float, total: float, message: str) -> None:
            # A no-op without a progress token. A client disconnect is handled by the HTTP request.
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                await context.session.report_progress(done, total, message)

        try:
            with cancel_scope:
                return wire_result(await handler.handle(call, report_progress))
        except (UnknownTool, CallRefused) as error:
            raise wire_error(error) from error
        raise MCPError(code=REQUEST_CANCELLED, message="the client disconnected")

    server = Server(
        SERVER_NAME,
        version=__version__,
        instructions=instructions,
        cache_hints={"tools/list": CacheHint(LIST_FRESH_MS), "server/discover": CacheHint(LIST_FRESH_MS)},
        # No tool takes arguments from `Mcp-Param` headers. Without this the SDK runs `tools/list` before every
        # modern `tools/call` to find the schema.
        get_tool_input_schema=lambda name: None,
        on_list_tools=list_tools,
    )
    server.add_request_handler("tools/call", types.CallToolRequestParams, call_tool)
    # The SDK's OpenTelemetry spans are the only middleware; calls are recorded in the audit log.
    server.middleware.clear()
    return server


class McpEndpoint:
    """The ASGI application behind `/mcp`. Serves requests only inside `run()`.

    The gateway passes the whole body in the first message.
    """

    def __init__(self, handler: CallHandler, *, clock: Clock, new_id: NewId, instructions: str = INSTRUCTIONS) -> None:
        server = build_server(handler, new_id=new_id, instructions=instructions)
        # With JSON responses the SDK does not notice a client disconnect.
        self._session_manager = StreamableHTTPSessionManager(
            server,
            json_response=False,
            # Never reached: LegacySessions limits sessions earlier. The SDK also makes a short-lived session for
            # each request without a session id that it then refuses.
            max_sessions=2 * MAX_SESSIONS,
            session_idle_timeout=LEGACY_SESSION_IDLE_SECONDS,
            max_request_body_size=MAX_MESSAGE_BYTES,
        )
        self._legacy_sessions = LegacySessions(self._serve_session, clock=clock)
        self._stream_manager = StreamableHTTPSessionManager(
            server, json_response=False, stateless=True, max_request_body_size=MAX_MESSAGE_BYTES
        )
        # A JSON response saves 0.4 ms a call: no event stream with its two tasks (bench/LOG.md).
        self._json_manager = StreamableHTTPSessionManager(
            server, json_response=True, stateless=True, max_request_body_size=MAX_MESSAGE_BYTES
        )
        self._default_timeouts = {tool.name: _default_timeout(tool) for tool in handler.tools()}

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        async with self._session_manager.run(), self._stream_manager.run(), self._json_manager.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # A call is cancelled when its HTTP request ends. Protocol version 2026-07-28 requires it. 2025-11-25 advises
        # against it because clients may resume a stream, but the streams of this server cannot be resumed.
        cancel_scope = anyio.CancelScope()
        try:
            headers = _with_lowercase_content_type(scope)
            await self._serve({**scope, "headers": headers, _CANCEL_SCOPE: cancel_scope}, receive, send)
        finally:
            cancel_scope.cancel()

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        request: JsonValue = None
        if scope["method"] == "POST":
            first = await receive()
            try:
                request = parse_message(first["body"])
            except ValueError:
                await error_response(400, types.PARSE_ERROR, "Parse error")(scope, receive, send)
                return
            if not is_message(request):
                await error_response(400, types.INVALID_REQUEST, "Invalid Request")(scope, receive, send)
                return
            receive = _replay(first, receive)
        headers = Headers(scope=scope)
        if scope["method"] == "GET" and not _accepts_events(headers):
            message = "Not Acceptable: a GET is answered with an event stream; accept text/event-stream"
            await error_response(406, types.INVALID_REQUEST, message)(scope, receive, send)
            return
        if _needs_session(scope, headers, request):
            await self._legacy_sessions(principal_of(scope).subject, scope, receive, send)
            return
        signal = disconnect_signal(scope)
        if signal is not None and self._fits_json_response(headers, request):
            with signal.on_disconnect(scope[_CANCEL_SCOPE].cancel):
                await self._json_manager.handle_request(scope, receive, send)
        else:
            await self._stream_manager.handle_request(scope, receive, send)

    async def _serve_session(self, subject: str, scope: Scope, receive: Receive, send: Send) -> None:
        await self._session_manager.handle_request({**scope, "user": _owner(subject)}, receive, send)

    def _fits_json_response(self, headers: Mapping[str, str], request: JsonValue) -> bool:
        """Return whether this is a short modern call without progress notifications."""
        if _is_legacy(headers) or "text/event-stream" not in headers.get("accept", ""):
            return False
        match request:
            case {"method": "tools/call", "params": {"name": str(name), "arguments": {**values}, "_meta": {**meta}}}:
                seconds = values.get("timeout_sec", self._default_timeouts.get(name))
                is_short = isinstance(seconds, int) and seconds <= MAX_JSON_RESPONSE_SECONDS
                return is_short and "progressToken" not in meta
        return False


def _is_legacy(headers: Mapping[str, str]) -> bool:
    return headers.get("mcp-protocol-version", HANDSHAKE_PROTOCOL_VERSIONS[0]) in HANDSHAKE_PROTOCOL_VERSIONS


def _accepts_events(headers: Mapping[str, str]) -> bool:
    """Return whether the client names event streams. A wildcard is not enough: a browser would wait for a page."""
    accepted = (entry.partition(";")[0].strip().lower() for entry in headers.get("accept", "").split(","))
    return "text/event-stream" in accepted


def _default_timeout(tool: ToolDescription) -> JsonValue:
    """Return the default of `timeout_sec` in the tool's schema."""
    match tool.input_schema:
        case {"properties": {"timeout_sec": {"default": seconds}}}:
            return seconds
    return None


def _replay(first: Message, receive: Receive) -> Receive:
    pending = [first]

    async def replay() -> Message:
        return pending.pop() if pending else await receive()

    return replay


def _with_lowercase_content_type(scope: Scope) -> list[tuple[bytes, bytes]]:
    """Media types are case-insensitive (RFC 9110 §8.3.1), but the SDK compares them exactly."""
    return [(name, value.lower() if name == b"content-type" else value) for name, value in scope["headers"]]


def _owner(subject: str) -> AuthenticatedUser:
    """Build the SDK's user object. The SDK answers 404 to other subjects than the owner of a session."""
    return AuthenticatedUser(AccessToken(token="", client_id=subject, scopes=[]))


def _needs_session(scope: Scope, headers: Mapping[str, str], request: JsonValue) -> bool:
    """Legacy clients that send `initialize` get a session, so that `notifications/cancelled` finds their call.

    A legacy `tools/list` or `tools/call` without a session is served as a single request.
    """
    if not _is_legacy(headers):
        return False
    if scope["method"] != "POST" or "mcp-session-id" in headers:
        return True
    return isinstance(request, dict) and request.get("method") == "initialize"


def _trace_id(params: types.CallToolRequestParams, scope: Scope) -> str:
    """Return the trace id of the call's `_meta` (SEP-414), or of the HTTP request."""
    own = trace_id_of((params.meta or {}).get("traceparent"))
    return own or (trace_id_of(Headers(scope=scope).get("traceparent")) if "headers" in scope else "")
