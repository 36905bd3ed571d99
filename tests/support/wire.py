"""JSON-RPC over HTTP without a client library."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import httpx2

from browser_shell.core.ports import CallHandler

BOTH = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
MODERN_VERSION = "2026-07-28"
LEGACY_VERSION = "2025-11-25"
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": MODERN_VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
}


def modern_headers(method: str, name: str | None = None) -> dict[str, str]:
    tool = {"Mcp-Name": name} if name else {}
    return {**BOTH, "MCP-Protocol-Version": MODERN_VERSION, "Mcp-Method": method, **tool}


def body(method: str, params: dict[str, Any] | None = None, *, request_id: int = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params or {}}


def call_params(*argv: str, tool: str = "browser-shell", session_id: str = "s1") -> dict[str, Any]:
    return {"name": tool, "arguments": {"session_id": session_id, "argv": list(argv or ("snapshot",))}}


def message(response: httpx2.Response) -> dict[str, Any]:
    """Return the JSON-RPC message of a response, whether JSON or an event stream."""
    text = response.text
    if response.headers.get("content-type", "").startswith("text/event-stream"):
        text = next(line.removeprefix("data:") for line in text.splitlines() if line.startswith("data:"))
    content = json.loads(text)
    assert isinstance(content, dict)
    return content


class Wire:
    """A client of one protocol era."""

    def __init__(self, http: httpx2.AsyncClient, era: str) -> None:
        self.http, self.era = http, era

    async def request(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        return message(await self.post(method, params))

    async def post(self, method: str, params: dict[str, Any] | None = None) -> httpx2.Response:
        headers, content = self.build_request(method, params)
        return await self.http.post("/mcp", headers=headers, json=content)

    def build_request(self, method: str, params: dict[str, Any] | None = None) -> tuple[dict[str, str], dict[str, Any]]:
        params = dict(params or {})
        if self.era == "legacy":
            return BOTH, body(method, params)
        return modern_headers(method, params.get("name")), body(method, {**params, "_meta": ENVELOPE})


Connect = Callable[[CallHandler], AbstractAsyncContextManager[Wire]]

INITIALIZE = {
    "protocolVersion": LEGACY_VERSION,
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
