"""MCP clients for subjects with low limits."""

from __future__ import annotations

import base64
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from browser_shell.http.tokens import make_private_key, make_token, public_pem

KEY = make_private_key("EdDSA")
KEY_SETTINGS = {"JWT_PUBLIC_KEY": base64.b64encode(public_pem(KEY)).decode(), "JWT_ALGORITHM": "EdDSA"}
LIMITS = {
    "subjects": {
        "rate": {"calls_per_minute": 4},
        "quota": {"calls_per_day": 4},
        "busy": {"concurrent_calls": 2},
        "stubborn": {"budget": {"max_retries": 3}},
        "slow": {"budget": {"elapsed_seconds": 6, "window_seconds": 600}},
    }
}


@dataclass(frozen=True)
class Answer:
    """The result of one call."""

    exit_code: int
    stdout: str
    stderr: str
    meta: dict[str, Any]

    @property
    def rule(self) -> str:
        return str(self.meta.get("rule", ""))

    @property
    def name(self) -> str:
        return str(self.meta.get("name", ""))


def token_of(subject: str) -> str:
    return make_token(KEY, subject=subject, seconds=3600, now=time.time())


@dataclass(frozen=True)
class Caller:
    """A connected client."""

    client: Client

    async def run(self, *argv: str, session_id: str = "s1") -> Answer:
        result = await self.client.call_tool("browser-shell", {"session_id": session_id, "argv": list(argv)})
        assert result.structured_content is not None
        inner = result.structured_content
        return Answer(inner["exit_code"], inner["stdout"], inner["stderr"], dict(result.meta or {}))


@asynccontextmanager
async def calling(address: str, subject: str) -> AsyncIterator[Caller]:
    """Connect the client of the MCP SDK. `address` has no path."""
    headers = {"Authorization": f"Bearer {token_of(subject)}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(f"{address}/mcp", http_client=http)) as client,
    ):
        yield Caller(client)
