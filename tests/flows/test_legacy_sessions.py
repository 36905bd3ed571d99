"""Legacy clients that open sessions and never end them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import httpx2
import pytest

from browser_shell.core.calls import Principal
from browser_shell.http.tokens import AuthFailure
from browser_shell.mcp_server.legacy_sessions import MAX_SESSIONS, MAX_SESSIONS_PER_SUBJECT
from support.fakes import a_pipeline
from support.loopback_server import serving
from support.wire import BOTH, INITIALIZE, LEGACY_VERSION, body


class SubjectFromHeader:
    def identify(self, authorization: str | None) -> Principal | AuthFailure:
        return Principal(subject=authorization or "")


@asynccontextmanager
async def a_client() -> AsyncIterator[httpx2.AsyncClient]:
    limits = httpx2.Limits(max_connections=100)
    async with (
        serving(a_pipeline(), authenticator=SubjectFromHeader()) as address,
        httpx2.AsyncClient(base_url=address, timeout=10, limits=limits) as http,
    ):
        yield http


def session_headers(subject: str, session_id: str) -> dict[str, str]:
    named = {"Authorization": subject, "Mcp-Session-Id": session_id}
    return {**BOTH, **named, "MCP-Protocol-Version": LEGACY_VERSION}


async def initialize(http: httpx2.AsyncClient, subject: str) -> httpx2.Response:
    return await http.post("/mcp", headers={**BOTH, "Authorization": subject}, json=body("initialize", INITIALIZE))


async def list_tools(http: httpx2.AsyncClient, subject: str, session_id: str) -> int:
    headers = session_headers(subject, session_id)
    return (await http.post("/mcp", headers=headers, json=body("tools/list"))).status_code


@pytest.mark.promise("mcp:no-subject-takes-all-sessions")
async def test_subject_that_ends_no_session_blocks_no_other_subject() -> None:
    async with a_client() as http:
        bobs = (await initialize(http, "bob")).headers["mcp-session-id"]
        anns = []
        for _ in range(MAX_SESSIONS + 10):
            response = await initialize(http, "ann")
            assert response.status_code == 200
            anns.append(response.headers["mcp-session-id"])
        assert (await initialize(http, "carol")).status_code == 200
        assert await list_tools(http, "bob", bobs) == 200
        statuses = [await list_tools(http, "ann", session_id) for session_id in anns]
    assert statuses == [404] * (len(anns) - MAX_SESSIONS_PER_SUBJECT) + [200] * MAX_SESSIONS_PER_SUBJECT


async def test_sessions_with_open_streams_are_kept_and_more_are_refused() -> None:
    async with a_client() as http, AsyncExitStack() as streams:
        own = [(await initialize(http, "ann")).headers["mcp-session-id"] for _ in range(MAX_SESSIONS_PER_SUBJECT)]
        for session_id in own:
            headers = session_headers("ann", session_id)
            stream = await streams.enter_async_context(http.stream("GET", "/mcp", headers=headers))
            assert stream.status_code == 200
        refused = await initialize(http, "ann")
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, -32603)
        assert "in use" in refused.json()["error"]["message"]
        assert (await initialize(http, "bob")).status_code == 200
        await http.delete("/mcp", headers=session_headers("ann", own[0]))
        assert (await initialize(http, "ann")).status_code == 200
