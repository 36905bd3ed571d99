"""A client disconnect or a cancel notification stops the call."""

from __future__ import annotations

import contextlib
import json

import anyio
import httpx2
import pytest

from support.fakes import HangingSandbox, RecordingAudit, a_pipeline
from support.loopback_server import serving
from support.wire import (
    BOTH,
    ENVELOPE,
    INITIALIZE,
    LEGACY_VERSION,
    Connect,
    Wire,
    body,
    call_params,
    modern_headers,
)


async def last_record(audit: RecordingAudit) -> str:
    with anyio.fail_after(5):
        await audit.finished.wait()
    return audit.records[-1].error


@pytest.mark.promise("mcp:disconnect-stops-the-work")
async def test_disconnect_stops_the_call(connect: Connect) -> None:
    audit, sandbox = RecordingAudit(), HangingSandbox()
    async with connect(a_pipeline(audit=audit, sandbox=sandbox)) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.post, "tools/call", call_params())
            with anyio.fail_after(5):
                await sandbox.started.wait()
            tasks.cancel_scope.cancel()
        with anyio.fail_after(5):
            await sandbox.stopped.wait()
        assert await last_record(audit) == "CANCELLED"


@pytest.mark.promise("mcp:disconnect-stops-the-work")
@pytest.mark.parametrize(
    ("padding", "more"),
    [
        pytest.param(70_000, "", id="a large body"),
        pytest.param(
            0, "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n", id="offers h2c"
        ),
    ],
)
async def test_disconnect_is_noticed_after_a_large_body_or_an_upgrade_offer(padding: int, more: str) -> None:
    audit, sandbox = RecordingAudit(), HangingSandbox()
    async with serving(a_pipeline(audit=audit, sandbox=sandbox)) as address:
        url = httpx2.URL(address)
        params = {**call_params(), "_meta": {**ENVELOPE, "x": "x" * padding}}
        content = json.dumps(body("tools/call", params)).encode()
        headers = {**modern_headers("tools/call", "browser-shell"), "Content-Length": str(len(content))}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        client = await anyio.connect_tcp(url.host, url.port or 80)
        await client.send(f"POST /mcp HTTP/1.1\r\nHost: {url.netloc.decode()}\r\n{head}{more}\r\n".encode())
        await anyio.sleep(0.05)
        await client.send(content)
        with anyio.fail_after(5):
            await sandbox.started.wait()
        await client.aclose()
        with anyio.fail_after(5):
            await sandbox.stopped.wait()
        assert await last_record(audit) == "CANCELLED"


async def open_session(http: httpx2.AsyncClient) -> dict[str, str]:
    opened = await http.post("/mcp", headers=BOTH, json=body("initialize", INITIALIZE))
    return {**BOTH, "Mcp-Session-Id": opened.headers["mcp-session-id"], "MCP-Protocol-Version": LEGACY_VERSION}


@pytest.mark.promise("mcp:disconnect-stops-the-work")
async def test_disconnect_stops_a_call_of_a_session_and_the_session_stays_open() -> None:
    audit, sandbox = RecordingAudit(), HangingSandbox()
    pipeline = a_pipeline(audit=audit, sandbox=sandbox)
    async with serving(pipeline) as address, httpx2.AsyncClient(base_url=address, timeout=10) as http:
        headers = await open_session(http)
        async with anyio.create_task_group() as tasks:

            async def call() -> None:
                await http.post("/mcp", headers=headers, json=body("tools/call", call_params()))

            tasks.start_soon(call)
            with anyio.fail_after(5):
                await sandbox.started.wait()
            tasks.cancel_scope.cancel()
        with anyio.fail_after(5):
            await sandbox.stopped.wait()
        assert await last_record(audit) == "CANCELLED"
        assert (await http.post("/mcp", headers=headers, json=body("tools/list", request_id=9))).status_code == 200


@pytest.mark.promise("mcp:cancelled-stops-the-work")
async def test_cancel_notification_stops_the_call() -> None:
    audit, sandbox = RecordingAudit(), HangingSandbox()
    pipeline = a_pipeline(audit=audit, sandbox=sandbox)
    async with serving(pipeline) as address, httpx2.AsyncClient(base_url=address, timeout=10) as http:
        headers = await open_session(http)
        async with anyio.create_task_group() as tasks:

            async def call() -> None:
                await http.post("/mcp", headers=headers, json=body("tools/call", call_params(), request_id=7))

            tasks.start_soon(call)
            with anyio.fail_after(5):
                await sandbox.started.wait()
            cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
            assert (await http.post("/mcp", headers=headers, json=cancel)).status_code == 202
            with anyio.fail_after(5):
                await sandbox.stopped.wait()
        assert await last_record(audit) == "CANCELLED"


async def test_stopping_the_server_stops_the_call(era: str) -> None:
    audit, sandbox = RecordingAudit(), HangingSandbox()
    async with httpx2.AsyncClient(timeout=30) as http, anyio.create_task_group() as tasks:
        async with serving(a_pipeline(audit=audit, sandbox=sandbox)) as address:

            async def call() -> None:
                headers, content = Wire(http, era).build_request("tools/call", call_params())
                with contextlib.suppress(httpx2.HTTPError):
                    await http.post(f"{address}/mcp", headers=headers, json=content)

            tasks.start_soon(call)
            with anyio.fail_after(5):
                await sandbox.started.wait()
            started = anyio.current_time()
        assert anyio.current_time() - started < 4
        assert sandbox.stopped.is_set()
        assert await last_record(audit) == "CANCELLED"
