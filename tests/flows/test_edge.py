"""The HTTP edge: which requests get as far as the pipeline."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import anyio
import httpx2
import pytest

from browser_shell.core.calls import Principal
from browser_shell.http.mcp_endpoint import MAX_BODY_BYTES
from browser_shell.testing.fakes import RecordingSandbox, a_pipeline
from browser_shell.testing.live import serving
from support.wire import BOTH, ENVELOPE, INITIALIZE, LEGACY_VERSION, Connect, body, call_params, message, modern_headers

OTHER_PATHS = ["/", "/mcp/", "/mcp/x", "//mcp", "/MCP", "/v1/shell/exec", "/docs", "/%2e%2e/mcp", "/health", "/mcp%00"]


@pytest.mark.promise("gateway:everything-else-is-403")
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS", "PUT"])
async def test_every_other_path_is_forbidden(method: str) -> None:
    async with serving(a_pipeline()) as address, httpx2.AsyncClient() as http:
        for path in OTHER_PATHS:
            response = await http.request(method, address + path, headers=BOTH)
            assert (response.status_code, response.text) == (403, "Forbidden\n"), path
            assert response.headers["content-type"].startswith("text/plain")


async def test_a_websocket_is_forbidden_too() -> None:
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "a" * 24,
    }
    async with serving(a_pipeline()) as address, httpx2.AsyncClient() as http:
        assert (await http.get(f"{address}/websockify", headers=upgrade)).status_code == 403


async def test_nothing_says_what_the_server_is_made_of(connect: Connect) -> None:
    async with connect(a_pipeline()) as client:
        assert "server" not in (await client.post("tools/list")).headers


@pytest.mark.parametrize("accept", ["application/json", "text/html", ""])
async def test_a_get_that_accepts_no_event_stream_is_406(accept: str) -> None:
    async with serving(a_pipeline()) as address, httpx2.AsyncClient() as http:
        assert (await http.get(f"{address}/mcp", headers={"Accept": accept})).status_code == 406


async def test_a_post_that_accepts_no_event_stream_is_406(connect: Connect) -> None:
    async with connect(a_pipeline()) as client:
        headers, content = client.prepared("tools/list")
        response = await client.http.post("/mcp", headers={**headers, "Accept": "application/json"}, json=content)
    assert response.status_code == 406


@pytest.mark.promise("mcp:origin-and-host-checked")
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "evil.example:80"}, 421),
        ({"Host": "localhost.evil.example"}, 421),
        ({"Host": "169.254.169.254"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost.evil.example:80"}, 403),
        ({"Host": "localhost"}, 200),
        ({"Host": "localhost:18080"}, 200),
        ({"Host": "[::1]:8080"}, 200),
        ({"Origin": "http://localhost:6274"}, 200),
    ],
)
async def test_only_this_machine_may_talk_to_a_loopback_server(
    connect: Connect, headers: dict[str, str], status: int
) -> None:
    sandbox = RecordingSandbox()
    async with connect(a_pipeline(sandbox=sandbox)) as client:
        own, content = client.prepared("tools/call", call_params())
        response = await client.http.post("/mcp", headers={**own, **headers}, json=content)
    assert response.status_code == status
    assert len(sandbox.ran) == (1 if status == 200 else 0)


async def test_a_body_that_is_too_large_is_413(connect: Connect) -> None:
    async with connect(a_pipeline()) as client:
        headers, _ = client.prepared("tools/list")
        response = await client.http.post("/mcp", headers=headers, content=b"x" * (MAX_BODY_BYTES + 1))
    assert response.status_code == 413


@pytest.mark.parametrize(
    "content", [b"{", b'{"initialize"', b"[]", b"\xff", b'{"jsonrpc":"2.0","id":1}', b"[" * 100_000]
)
async def test_a_body_that_is_no_request_is_400(connect: Connect, content: bytes) -> None:
    async with connect(a_pipeline()) as client:
        headers, _ = client.prepared("tools/list")
        assert (await client.http.post("/mcp", headers=headers, content=content)).status_code == 400


async def test_another_content_type_is_400(connect: Connect) -> None:
    async with connect(a_pipeline()) as client:
        headers, content = client.prepared("tools/list")
        response = await client.http.post("/mcp", headers={**headers, "Content-Type": "text/plain"}, json=content)
    assert response.status_code == 400


async def test_an_unknown_protocol_version_is_400() -> None:
    async with serving(a_pipeline()) as address, httpx2.AsyncClient() as http:
        headers = {**modern_headers("tools/list"), "MCP-Protocol-Version": "1900-01-01"}
        meta = {**ENVELOPE, "io.modelcontextprotocol/protocolVersion": "1900-01-01"}
        response = await http.post(f"{address}/mcp", headers=headers, json=body("tools/list", {"_meta": meta}))
    assert (response.status_code, response.json()["error"]["code"]) == (400, -32022)


async def test_the_list_may_be_cached_in_the_modern_era() -> None:
    async with serving(a_pipeline()) as address, httpx2.AsyncClient() as http:
        result: dict[str, Any] = {}
        for method in ("tools/list", "server/discover"):
            content = body(method, {"_meta": ENVELOPE})
            result = (await http.post(f"{address}/mcp", headers=modern_headers(method), json=content)).json()["result"]
            assert (result["ttlMs"], result["cacheScope"]) == (300_000, "private")
        assert result["capabilities"] == {"tools": {"listChanged": False}}


async def test_a_handshake_opens_a_session_that_offers_only_tools() -> None:
    async with serving(a_pipeline()) as address, httpx2.AsyncClient() as http:
        response = await http.post(f"{address}/mcp", headers=BOTH, json=body("initialize", INITIALIZE))
        result, session = message(response)["result"], response.headers["mcp-session-id"]
        assert result["protocolVersion"] == LEGACY_VERSION
        assert result["capabilities"] == {"tools": {"listChanged": False}}
        assert result["serverInfo"]["name"] == "browser-shell"
        assert "session_id" in result["instructions"]

        headers = {**BOTH, "Mcp-Session-Id": session, "MCP-Protocol-Version": LEGACY_VERSION}
        tools = message(await http.post(f"{address}/mcp", headers=headers, json=body("tools/list")))["result"]["tools"]
        assert [tool["name"] for tool in tools] == ["browser-shell"]

        assert (await http.delete(f"{address}/mcp", headers=headers)).status_code == 200
        assert (await http.post(f"{address}/mcp", headers=headers, json=body("tools/list"))).status_code == 404


async def test_a_handshake_that_arrives_in_pieces_opens_a_session() -> None:
    whole = json.dumps(body("initialize", INITIALIZE)).encode()

    async def pieces() -> AsyncIterator[bytes]:
        for piece in (whole[:20], whole[20:]):
            yield piece
            await anyio.sleep(0.05)  # long enough for the server to read the first piece alone

    async with serving(a_pipeline()) as address, httpx2.AsyncClient() as http:
        response = await http.post(f"{address}/mcp", headers=BOTH, content=pieces())
    assert "mcp-session-id" in response.headers


async def test_without_a_handshake_no_session_is_made() -> None:
    async with serving(a_pipeline()) as address, httpx2.AsyncClient() as http:
        content = body("tools/call", call_params("fill", "#a", '"initialize"'))
        response = await http.post(f"{address}/mcp", headers=BOTH, json=content)
    assert "mcp-session-id" not in response.headers
    assert message(response)["result"]["structuredContent"]["exit_code"] == 0


@pytest.mark.promise("mcp:calls-belong-to-their-caller")
async def test_a_session_answers_only_the_subject_that_opened_it() -> None:
    sandbox = RecordingSandbox()

    def from_header(scope: object) -> Principal:
        assert isinstance(scope, dict)
        return Principal(subject=dict(scope["headers"])[b"x-subject"].decode())

    async with serving(a_pipeline(sandbox=sandbox), principal_of=from_header) as address, httpx2.AsyncClient() as http:
        opened = await http.post(
            f"{address}/mcp", headers={**BOTH, "X-Subject": "ann"}, json=body("initialize", INITIALIZE)
        )
        session = {**BOTH, "Mcp-Session-Id": opened.headers["mcp-session-id"]}
        content = body("tools/call", call_params())
        bob = await http.post(f"{address}/mcp", headers={**session, "X-Subject": "bob"}, json=content)
        ann = await http.post(f"{address}/mcp", headers={**session, "X-Subject": "ann"}, json=content)
    assert (bob.status_code, ann.status_code) == (404, 200)
    assert [principal.subject for principal, _ in sandbox.ran] == ["ann"]
