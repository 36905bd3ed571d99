"""Calls, live view and refusals through the published port."""

from __future__ import annotations

import http.client
import json

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, ImageContent
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from support.boxes import Box
from support.pages import Site
from support.snapshots import ref_of

FORM = """<!doctype html><title>Form</title>
<form onsubmit="event.preventDefault(); out.textContent = 'Hello ' + who.value">
<label>Name <input id=who></label><button>Greet</button></form><p id=out></p>"""


def ask(box: Box, method: str, path: str, headers: dict[str, str] | None = None, body: str = "") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", box.server.port, timeout=10)
    try:
        connection.request(method, path, body or None, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode("utf-8", "replace")
    finally:
        connection.close()


def ticket(box: Box) -> str:
    status, body = ask(box, "POST", "/tickets", box.server.authorization)
    assert status == 200
    return str(json.loads(body)["ticket"])


def viewer(box: Box, query: str) -> ClientConnection:
    origin = Origin(f"http://127.0.0.1:{box.server.port}")
    address = f"ws://127.0.0.1:{box.server.port}/vnc/websockify{query}"
    return connect(address, origin=origin, max_size=None, compression=None, proxy=None)


async def test_an_sdk_client_drives_a_page_from_open_to_close(box: Box, site: Site) -> None:
    url = site.add("/form", FORM)
    endpoint = f"http://127.0.0.1:{box.server.port}/mcp"
    async with (
        httpx2.AsyncClient(headers=box.server.authorization, timeout=60) as wire,
        Client(streamable_http_client(endpoint, http_client=wire)) as client,
    ):

        async def call(*argv: str) -> CallToolResult:
            result = await client.call_tool("browser-shell", {"session_id": "loop", "argv": list(argv)})
            assert result.is_error is False, (argv, result.structured_content)
            return result

        await call("open", url)
        snapshot = json.loads(str((await call("snapshot", "-i")).structured_content["stdout"]))["snapshot"]
        await call("fill", ref_of(snapshot, "textbox", "Name"), "Ada")
        await call("click", ref_of(snapshot, "button", "Greet"))
        await call("wait", "--text", "Hello Ada")
        picture = (await call("screenshot")).content[1]
        assert isinstance(picture, ImageContent)
        assert len(picture.data) > 1000
        assert json.loads(str((await call("close")).structured_content["stdout"])) == {"closed": True}


def test_the_link_opens_the_viewer_page_and_a_ticket_the_vnc_stream(box: Box) -> None:
    assert f"http://127.0.0.1:{box.server.port}/vnc/#token=" in box.output
    status, page = ask(box, "GET", "/vnc/")
    assert status == 200
    assert "<script" in page
    with viewer(box, f"?ticket={ticket(box)}") as socket:
        assert socket.recv(timeout=5) == b"RFB 003.008\n"


def test_a_ticket_works_once(box: Box) -> None:
    only = ticket(box)
    with viewer(box, f"?ticket={only}") as socket:
        socket.recv(timeout=5)
    with pytest.raises(InvalidStatus) as refused:
        viewer(box, f"?ticket={only}").close()
    assert refused.value.response.status_code == 401


@pytest.mark.parametrize("path", ["/", "/v1/shell/exec", "/v1/ping", "/json/version", "/metrics", "/vnc/../etc/passwd"])
def test_every_other_path_is_forbidden_with_and_without_token(box: Box, path: str) -> None:
    assert ask(box, "GET", path)[0] == 403
    assert ask(box, "GET", path, box.server.authorization)[0] == 403


@pytest.mark.parametrize("path", ["/mcp", "/tickets"])
def test_requests_without_a_valid_token_are_refused(box: Box, path: str) -> None:
    assert ask(box, "POST", path)[0] == 401
    assert ask(box, "POST", path, {"Authorization": "Bearer x.y.z"})[0] == 401


def test_a_foreign_host_name_is_forbidden(box: Box) -> None:
    headers = {"Host": "8091-box.example.com", **box.server.authorization}
    assert ask(box, "POST", "/mcp", headers)[0] == 403
