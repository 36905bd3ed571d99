"""The SDK's own clients over HTTP and over standard input and output."""

from __future__ import annotations

import json
import subprocess

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import ImageContent, TextContent

from support.fakes import a_pipeline
from support.loopback_server import SERVER_COMMAND, serving
from support.wire import ENVELOPE, body, call_params

STDIO = StdioServerParameters(command=SERVER_COMMAND[0], args=[*SERVER_COMMAND[1:], "stdio"])
ARGUMENTS = {"session_id": "s1", "argv": ["get", "title"]}
MODES = ["legacy", "2026-07-28", "auto"]


async def use(client: Client) -> None:
    assert [tool.name for tool in (await client.list_tools()).tools] == ["browser-shell"]
    result = await client.call_tool("browser-shell", ARGUMENTS)
    assert result.is_error is False
    assert isinstance(result.content[0], TextContent)
    assert json.loads(result.content[0].text) == result.structured_content
    assert result.structured_content["stdout"] == '{"ok":true}\n'


@pytest.mark.parametrize("mode", MODES)
async def test_sdk_client_over_http(mode: str) -> None:
    async with serving(a_pipeline()) as address, Client(f"{address}/mcp", mode=mode) as client:
        await use(client)


@pytest.mark.parametrize("mode", MODES)
async def test_sdk_client_over_stdio(mode: str) -> None:
    async with Client(stdio_client(STDIO), mode=mode) as client:
        await use(client)
        picture = (await client.call_tool("browser-shell", {"session_id": "s1", "argv": ["screenshot"]})).content[1]
        assert isinstance(picture, ImageContent)


def stdio_process() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [STDIO.command, *STDIO.args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def test_stdio_server_exits_cleanly_at_end_of_input() -> None:
    out, err = stdio_process().communicate(b"", timeout=20)
    assert (out, err) == (b"", b"")


def test_standard_output_carries_only_the_protocol() -> None:
    with stdio_process() as process:
        assert process.stdin is not None
        assert process.stdout is not None
        lines = [
            b"not JSON",
            json.dumps(body("tools/call", {**call_params("nonsense"), "_meta": ENVELOPE})).encode(),
        ]
        process.stdin.write(b"\n".join(lines) + b"\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["error"]["code"] == -32700
        response = json.loads(process.stdout.readline())
        process.stdin.close()
        assert process.stdout.read() == b""
        assert process.wait(timeout=20) == 0
    assert response["result"]["structuredContent"]["exit_code"] != 0


async def test_listener_is_closed_after_the_server_ends() -> None:
    async with serving(a_pipeline()) as address:
        pass
    async with httpx2.AsyncClient() as http:
        with pytest.raises(httpx2.ConnectError):
            await http.get(address)
