"""Which HTTP requests reach the pipeline."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator
from typing import Any

import anyio
import httpx2
import pytest

from browser_shell.core.calls import Principal
from browser_shell.http.tokens import AuthFailure
from browser_shell.mcp_server.json_rpc import MAX_MESSAGE_BYTES
from support.fakes import RecordingSandbox, a_pipeline
from support.loopback_server import serving
from support.wire import BOTH, ENVELOPE, INITIALIZE, LEGACY_VERSION, Connect, body, call_params, message, modern_headers

OTHER_PATHS = ["/", "/mcp/", "/mcp/x", "//mcp", "/MCP", "/v1/shell/exec", "/docs", "/%2e%2e/mcp", "/health", "/mcp%00"]


@pytest.mark.promise("gateway:everything-else-is-403")
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS", "PUT"])
async def test_other_paths_are_forbidden(method: str) -> None:
    async with serving(a_pipeline()) as address, httpx2.AsyncClient() as http:
        for path in OTHER_PATHS:
            response = await http.request(method, address + path, headers=BOTH)
            assert (response.status_code, response.text) == (403, "Forbidden\n"), path
            assert response.headers["content-type"].startswith("text/plain")


async def test_websocket_is_forbidden_without_a_viewer() -> None:
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "a" * 24,
    }
    async with serving(a_pipeline()) as address, httpx2.AsyncClient() as http:
        assert (await http.get(f"{address}/websockify", headers=upgrade)).status_code == 403


async def test_response_does_not_name_the_server_software(connect: Connect) -> None:
    async with connect(a_pipeline()) as client:
        assert "server" not in (await client.post("tools/list")).headers


@pytest.mark.parametrize(
    "accept", ["application/json", "text/html,application/xml;q=0.9,*/*;q=0.8", "*/*", "text/*", ""]
)
@pytest.mark.parametrize("version", [{}, {"MCP-Protocol-Version": "2026-07-28"}, {"Mcp-Session-Id": "none"}])
async def test_get_without_event_stream_in_accept_is_406(accept: str, version: dict[str, str]) -> None:
    async with serving(a_pipeline()) as address, httpx2.AsyncClient() as http:
        response = await http.get(f"{address}/mcp", headers={"Accept": accept, **version})
    assert response.status_code == 406
    assert "Not Acceptable" in response.json()["error"]["message"]
    assert "mcp-session-id" not in response.headers


async def test_post_without_event_stream_in_accept_is_406(connect: Connect) -> None:
    async with connect(a_pipeline()) as client:
        headers, content = client.build_request("tools/list")
        response = await client.http.post("/mcp", headers={**headers, "Accept": "application/json"}, json=content)
    assert response.status_code == 406


@pytest.mark.promise("mcp:origin-and-host-checked")
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Host": "evil.example:80"}, 403),
        ({"Host": "localhost.evil.example"}, 403),
        ({"Host": "169.254.169.254"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost.evil.example:80"}, 403),
        ({"Host": "localhost"}, 200),
        ({"Host": "localhost:18080"}, 200),
        ({"Host": "[::1]:8080"}, 200),
        ({"Origin": "http://localhost:6274"}, 403),
        ({"Origin": "http://localhost:18080", "Host": "localhost:18080"}, 200),
    ],
)
async def test_loopback_server_checks_host_and_origin(connect: Connect, headers: dict[str, str], status: int) -> None:
    sandbox = RecordingSandbox()
    async with connect(a_pipeline(sandbox=sandbox)) as client:
        own, content = client.build_request("tools/call", call_params())
        response = await client.http.post("/mcp", headers={**own, **headers}, json=content)
    assert response.status_code == status
    assert len(sandbox.ran) == (1 if status == 200 else 0)


async def test_too_large_body_is_413(connect: Connect) -> None:
    async with connect(a_pipeline()) as client:
        headers, _ = client.build_request("tools/list")
        response = await client.http.post("/mcp", headers=headers, content=b"x" * (MAX_MESSAGE_BYTES + 1))
    assert response.status_code == 413


@pytest.mark.parametrize(
    "content", [b"{", b'{"initialize"', b"[]", b"\xff", b'{"jsonrpc":"2.0","id":1}', b"[" * 100_000]
)
async def test_body_that_is_not_a_request_is_400(connect: Connect, content: bytes) -> None:
    async with connect(a_pipeline()) as client:
        headers, _ = client.build_request("tools/list")
        assert (await client.http.post("/mcp", headers=headers, content=content)).status_code == 400


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("text/plain", 415),
        ("application/json-patch+json", 415),
        ("application/jsonp", 415),
        ("application/json; charset=utf-16", 415),
        ("application/json; charset=utf-8", 200),
        ("APPLICATION/JSON", 200),
    ],
)
async def test_content_type_must_be_json(connect: Connect, kind: str, status: int) -> None:
    async with connect(a_pipeline()) as client:
        headers, content = client.build_request("tools/list")
        response = await client.http.post("/mcp", headers={**headers, "Content-Type": kind}, json=content)
    assert response.status_code == status


async def test_compressed_body_is_refused(connect: Connect) -> None:
    async with connect(a_pipeline()) as client:
        headers, _ = client.build_request("tools/list")
        bomb = gzip.compress(bytes(8 * 1024 * 1024))
        response = await client.http.post("/mcp", headers={**headers, "Content-Encoding": "gzip"}, content=bomb)
    assert response.status_code == 415


@pytest.mark.parametrize(
    "content",
    [
        b'{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/list"}',
        b'{"jsonrpc":"2.0","id":NaN,"method":"tools/list"}',
        b'{"jsonrpc":"2.0","id":null,"method":"tools/list"}',
        b'{"jsonrpc":"2.0","id":true,"method":"tools/list"}',
        b'{"jsonrpc":"2.0","id":{},"method":"tools/list"}',
        b'{"jsonrpc":"1.0","id":1,"method":"tools/list"}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[1]}',
        b'[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":' + b"[" * 64 + b"]" * 64 + b"}}",
        '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'.encode("utf-16"),
        b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
    ],
)
async def test_ambiguous_json_is_refused(connect: Connect, content: bytes) -> None:
    async with connect(a_pipeline()) as client:
        headers, _ = client.build_request("tools/list")
        response = await client.http.post("/mcp", headers=headers, content=content)
    assert response.status_code == 400
    assert not any(word in response.text for word in ("pydantic", "http", "Traceback"))


async def test_brackets_inside_a_string_do_not_count_as_nesting() -> None:
    sandbox = RecordingSandbox()
    async with serving(a_pipeline(sandbox=sandbox)) as address, httpx2.AsyncClient() as http:
        content = body("tools/call", call_params("fill", "#a", '\\"' + "[" * 500))
        await http.post(f"{address}/mcp", headers=BOTH, json=content)
    assert sandbox.ran[0][1].operands[1] == '\\"' + "[" * 500


async def test_unknown_protocol_version_is_400() -> None:
    async with serving(a_pipeline()) as address, httpx2.AsyncClient() as http:
        headers = {**modern_headers("tools/list"), "MCP-Protocol-Version": "1900-01-01"}
        meta = {**ENVELOPE, "io.modelcontextprotocol/protocolVersion": "1900-01-01"}
        response = await http.post(f"{address}/mcp", headers=headers, json=body("tools/list", {"_meta": meta}))
    assert (response.status_code, response.json()["error"]["code"]) == (400, -32022)


async def test_tool_list_may_be_cached_in_the_modern_protocol() -> None:
    async with serving(a_pipeline()) as address, httpx2.AsyncClient() as http:
        result: dict[str, Any] = {}
        for method in ("tools/list", "server/discover"):
            content = body(method, {"_meta": ENVELOPE})
            result = (await http.post(f"{address}/mcp", headers=modern_headers(method), json=content)).json()["result"]
            assert (result["ttlMs"], result["cacheScope"]) == (300_000, "private")
        assert result["capabilities"] == {"tools": {"listChanged": False}}


async def test_initialize_opens_a_session_that_offers_only_tools() -> None:
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


async def test_initialize_in_two_segments_opens_a_session() -> None:
    whole = json.dumps(body("initialize", INITIALIZE)).encode()

    async def pieces() -> AsyncIterator[bytes]:
        for piece in (whole[:20], whole[20:]):
            yield piece
            await anyio.sleep(0.05)  # long enough for the server to read the first piece alone

    async with serving(a_pipeline()) as address, httpx2.AsyncClient() as http:
        response = await http.post(f"{address}/mcp", headers=BOTH, content=pieces())
    assert "mcp-session-id" in response.headers


async def test_call_without_initialize_opens_no_session() -> None:
    async with serving(a_pipeline()) as address, httpx2.AsyncClient() as http:
        content = body("tools/call", call_params("fill", "#a", '"initialize"'))
        response = await http.post(f"{address}/mcp", headers=BOTH, json=content)
    assert "mcp-session-id" not in response.headers
    assert message(response)["result"]["structuredContent"]["exit_code"] == 0


@pytest.mark.promise("mcp:calls-belong-to-their-caller")
async def test_session_serves_only_the_subject_that_opened_it() -> None:
    sandbox = RecordingSandbox()

    class SubjectFromHeader:
        def identify(self, authorization: str | None) -> Principal | AuthFailure:
            return Principal(subject=authorization or "")

    async with (
        serving(a_pipeline(sandbox=sandbox), authenticator=SubjectFromHeader()) as address,
        httpx2.AsyncClient() as http,
    ):
        opened = await http.post(
            f"{address}/mcp", headers={**BOTH, "Authorization": "ann"}, json=body("initialize", INITIALIZE)
        )
        session = {**BOTH, "Mcp-Session-Id": opened.headers["mcp-session-id"]}
        content = body("tools/call", call_params())
        bob = await http.post(f"{address}/mcp", headers={**session, "Authorization": "bob"}, json=content)
        ann = await http.post(f"{address}/mcp", headers={**session, "Authorization": "ann"}, json=content)
    assert (bob.status_code, ann.status_code) == (404, 200)
    assert [principal.subject for principal, _ in sandbox.ran] == ["ann"]
