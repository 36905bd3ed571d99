"""Which requests pass the gateway, and with which credential."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import httpx2
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin

from browser_shell.asgi import SECURITY_HEADERS
from browser_shell.core.calls import Principal
from browser_shell.core.records import RecordKind
from browser_shell.http.gateway import (
    MAX_CONCURRENT_REQUESTS,
    MAX_SOCKETS,
    MAX_SOCKETS_PER_SUBJECT,
    MIN_BURST,
    GatewaySettings,
    RequestLimits,
)
from browser_shell.http.routes import parse_trusted_hosts
from browser_shell.http.server import MAX_SOCKET_MESSAGE_BYTES
from browser_shell.http.tokens import NoAuth, TokenAuthenticator, make_private_key, make_token
from browser_shell.mcp_server.legacy_sessions import MAX_SESSIONS_PER_SUBJECT
from browser_shell.policy.document import ViewingSection
from support.fakes import FakeClock, FullDiskAudit, RecordingAudit, RecordingSandbox, a_pipeline
from support.live_view import stub_viewer
from support.loopback_server import NO_RATE_LIMIT, serving
from support.wire import BOTH, INITIALIZE, body, call_params

KEY = make_private_key("EdDSA")
CONSOLE = "https://console.example.com"
SETTINGS = replace(NO_RATE_LIMIT, trusted_hosts=parse_trusted_hosts(listen="127.0.0.1", origins=[CONSOLE]))
EVERY_PATH = ["/mcp", "/tickets", "/vnc/", "/vnc/missing", "/elsewhere"]


def bearer(subject: str = "alice", seconds: float = 300) -> dict[str, str]:
    token = make_token(KEY, subject=subject, seconds=seconds, now=FakeClock().wall())
    return {"Authorization": f"Bearer {token}"}


class Box:
    """A running server with its client, audit log and sandbox."""

    def __init__(
        self, address: str, http: httpx2.AsyncClient, audit: RecordingAudit, sandbox: RecordingSandbox
    ) -> None:
        self.address, self.http, self.audit, self.sandbox = address, http, audit, sandbox

    async def make_ticket(self, subject: str = "alice", **fields: str) -> str:
        response = await self.http.post("/tickets", headers=bearer(subject), json=fields)
        assert response.status_code == 200, response.text
        return str(response.json()["ticket"])

    def open_socket(self, path: str, *, origin: str | None = CONSOLE, headers: dict[str, str] | None = None) -> connect:
        address = self.address.replace("http", "ws") + path
        return connect(
            address, origin=Origin(origin) if origin is not None else None, additional_headers=headers, compression=None
        )

    async def socket_status(self, path: str, **more: Any) -> int:
        try:
            async with self.open_socket(path, **more) as socket:
                assert isinstance(socket, ClientConnection)
                return 101
        except InvalidStatus as refused:
            return refused.response.status_code


@asynccontextmanager
async def a_box(
    *,
    settings: GatewaySettings = SETTINGS,
    audit: RecordingAudit | None = None,
    clock: FakeClock | None = None,
    without_tokens: bool = False,
) -> AsyncIterator[Box]:
    clock, audit, sandbox = clock or FakeClock(), audit or RecordingAudit(), RecordingSandbox()
    authenticator = NoAuth() if without_tokens else TokenAuthenticator(key=KEY.public_key(), clock=clock)
    async with (
        serving(
            a_pipeline(sandbox=sandbox),
            authenticator=authenticator,
            settings=settings,
            viewer=stub_viewer,
            audit=audit,
            clock=clock,
        ) as address,
        httpx2.AsyncClient(base_url=address, timeout=10) as http,
    ):
        yield Box(address, http, audit, sandbox)


@pytest.mark.promise("gateway:security-headers")
@pytest.mark.parametrize("path", EVERY_PATH)
async def test_every_response_has_the_security_headers(path: str) -> None:
    async with a_box() as box:
        for response in (await box.http.get(path), await box.http.post(path, headers={**BOTH, **bearer()}, json={})):
            assert {name: response.headers[name] for name in SECURITY_HEADERS} == SECURITY_HEADERS
            assert not {"server", "x-powered-by"} & set(response.headers)


@pytest.mark.promise("tokens:needed")
async def test_call_without_a_token_is_refused() -> None:
    async with a_box() as box:
        for headers in ({}, {"Authorization": "Bearer x"}, {"Cookie": bearer()["Authorization"]}):
            response = await box.http.post("/mcp", headers={**BOTH, **headers}, json=body("tools/call", call_params()))
            assert response.status_code == 401
            assert response.headers["www-authenticate"].startswith('Bearer realm="browser-shell"')
            assert ("invalid_token" in response.headers["www-authenticate"]) is ("Authorization" in headers)
        assert box.sandbox.ran == []


@pytest.mark.promise("tokens:needed")
@pytest.mark.parametrize("name", ["access_token", "token", "jwt", "authorization", "api_key"])
async def test_token_in_the_query_is_ignored(name: str) -> None:
    async with a_box() as box:
        token = bearer()["Authorization"].removeprefix("Bearer ")
        response = await box.http.post(f"/mcp?{name}={token}", headers=BOTH, json=body("tools/list"))
        assert response.status_code == 401


async def test_subject_of_the_token_is_the_caller() -> None:
    async with a_box() as box:
        await box.http.post("/mcp", headers={**BOTH, **bearer("bob")}, json=body("tools/call", call_params()))
        assert box.sandbox.ran[0][0] == Principal(subject="bob", expires_at=FakeClock().wall() + 300)


@pytest.mark.promise("gateway:everything-else-is-403")
async def test_unknown_path_is_forbidden_with_and_without_a_token() -> None:
    async with a_box() as box:
        for headers in ({}, bearer(), {"Authorization": "x"}):
            for path in ("/", "/elsewhere", "/mcp/", "/vnc/.x"):
                response = await box.http.get(path, headers=headers)
                assert (response.status_code, response.text) == (403, "Forbidden\n")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/mcp"),
        ("OPTIONS", "/mcp"),
        ("HEAD", "/mcp"),
        ("GET", "/tickets"),
        ("HEAD", "/tickets"),
        ("POST", "/vnc/"),
    ],
)
async def test_other_methods_are_forbidden(method: str, path: str) -> None:
    async with a_box() as box:
        assert (await box.http.request(method, path, headers=bearer())).status_code == 403


async def test_viewer_paths_do_not_exist_without_a_viewer() -> None:
    async with serving(a_pipeline()) as address, httpx2.AsyncClient(base_url=address) as http:
        for path in ("/vnc", "/vnc/", "/websockify"):
            assert (await http.get(path)).status_code == 403
        with pytest.raises(InvalidStatus, match="403"):
            await connect(address.replace("http", "ws") + "/websockify")


# Pages of other origins


async def test_page_of_a_listed_origin_may_send_requests_and_read_responses() -> None:
    async with a_box() as box:
        request_headers = {"Origin": CONSOLE, "Access-Control-Request-Method": "POST"}
        preflight = await box.http.options("/tickets", headers=request_headers)
        assert preflight.status_code == 204
        assert preflight.headers["access-control-allow-origin"] == CONSOLE
        assert "Authorization" in preflight.headers["access-control-allow-headers"]
        response = await box.http.post("/tickets", headers={**bearer(), "Origin": CONSOLE})
        assert (response.status_code, response.headers["access-control-allow-origin"]) == (200, CONSOLE)
        assert response.headers["vary"] == "Origin"


@pytest.mark.promise("mcp:origin-and-host-checked")
@pytest.mark.parametrize("origin", ["null", "https://evil.test", "http://console.example.com", ""])
@pytest.mark.parametrize("path", ["/mcp", "/tickets", "/vnc/"])
async def test_pages_of_other_origins_are_refused(origin: str, path: str) -> None:
    async with a_box() as box:
        for method in ("OPTIONS", "POST", "GET"):
            headers = {**bearer(), "Origin": origin, "Access-Control-Request-Method": "POST"}
            response = await box.http.request(method, path, headers=headers)
            assert response.status_code == 403
            assert not [name for name in response.headers if name.startswith("access-control")]


# Tickets


async def test_caller_with_a_token_gets_a_ticket() -> None:
    async with a_box() as box:
        response = await box.http.post("/tickets", headers=bearer())
        assert response.json()["expires_in"] == 30
        assert response.headers["cache-control"] == "no-store"
        (record,) = box.audit.records
        assert (record.kind, record.subject, record.subcommand) == (RecordKind.TICKET_ISSUED, "alice", "view")
        assert response.json()["ticket"] not in repr(record)


async def test_server_without_tokens_still_issues_tickets() -> None:
    async with a_box(without_tokens=True) as box:
        response = await box.http.post("/tickets")
        assert (response.status_code, set(response.json())) == (200, {"ticket", "expires_in"})
        assert await box.socket_status("/websockify") == 101


@pytest.mark.parametrize(
    "content",
    [
        b"null",
        b"[]",
        b'"view"',
        b'{"mode":"admin"}',
        b'{"mode":null}',
        b'{"mode":["view"]}',
        b'{"Mode":"view"}',
        b'{"mode":"view","x":1}',
        b'{"mode":"view","mode":"view"}',
        b"{",
        b"\xff",
        b" ",
    ],
)
async def test_malformed_ticket_request_is_refused(content: bytes) -> None:
    async with a_box() as box:
        headers = {**bearer(), "Content-Type": "application/json"}
        assert (await box.http.post("/tickets", headers=headers, content=content)).status_code == 400
        assert box.audit.records == []


async def test_too_large_ticket_request_is_refused() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(5):
            yield b" " * 1024

    async with a_box() as box:
        headers = {**bearer(), "Content-Type": "application/json"}
        assert (await box.http.post("/tickets", headers=headers, content=b" " * 4097)).status_code == 413
        assert (await box.http.post("/tickets", headers=headers, content=pieces())).status_code == 413


@pytest.mark.promise("tickets:for-sockets-only")
async def test_ticket_is_valid_for_a_viewer_socket_only() -> None:
    async with a_box() as box:
        ticket = await box.make_ticket()
        for headers in ({}, bearer()):
            mcp = await box.http.post(f"/mcp?ticket={ticket}", headers={**BOTH, **headers}, json=body("tools/list"))
            more = await box.http.post(f"/tickets?ticket={ticket}", headers=headers)
            assert (mcp.status_code, more.status_code) == (401, 401)
        as_token = {"Authorization": f"Bearer {ticket}"}
        assert (await box.http.post("/mcp", headers={**BOTH, **as_token}, json=body("tools/list"))).status_code == 401
        assert await box.socket_status(f"/vnc?ticket={ticket}") == 101


@pytest.mark.parametrize("path", ["/vnc", "/websockify", "/vnc/websockify"])
async def test_ticket_opens_a_socket_with_its_mode(path: str) -> None:
    async with a_box() as box:
        ticket = await box.make_ticket("bob", mode="control")
        async with box.open_socket(f"{path}?a=1&ticket={ticket}") as socket:
            assert await socket.recv() == "bob control a=1"
        assert [record.kind for record in box.audit.records] == [RecordKind.TICKET_ISSUED, RecordKind.TICKET_SPENT]
        assert len({record.call_id for record in box.audit.records}) == 1
        assert ticket not in repr(box.audit.records)


@pytest.mark.promise("tickets:once")
async def test_ticket_opens_one_socket_only() -> None:
    async with a_box() as box:
        ticket, statuses = await box.make_ticket(), list[int]()

        async def open_one() -> None:
            statuses.append(await box.socket_status(f"/websockify?ticket={ticket}"))

        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(open_one)
        assert sorted(statuses) == [101] + [401] * 7


@pytest.mark.promise("tickets:beat-tokens")
async def test_ticket_takes_precedence_over_a_token_and_the_last_ticket_counts() -> None:
    async with a_box() as box:
        first, second = await box.make_ticket("alice"), await box.make_ticket("bob")
        assert await box.socket_status("/websockify?ticket=bad", headers=bearer()) == 401
        assert await box.socket_status(f"/websockify?ticket={first}&ticket=bad", headers=bearer()) == 401
        assert await box.socket_status("/websockify?ticket=", headers=bearer()) == 401
        async with box.open_socket(f"/websockify?ticket={first}&ticket={second}", headers=bearer("carol")) as socket:
            assert str(await socket.recv()).startswith("bob view")


async def test_token_opens_a_view_socket() -> None:
    async with a_box() as box:
        async with box.open_socket("/websockify", origin=None, headers=bearer()) as socket:
            assert await socket.recv() == "alice view "
        assert await box.socket_status("/websockify") == 401
        assert await box.socket_status("/websockify", headers={"Authorization": "Bearer x"}) == 401


@pytest.mark.parametrize("path", ["/vnc", "/websockify", "/vnc/websockify"])
@pytest.mark.parametrize(
    "wrong",
    [
        {"Upgrade": "h2c"},
        {"Upgrade": "websocket, h2c"},
        {"Sec-WebSocket-Version": "8"},
        {"Sec-WebSocket-Key": "short"},
        {"Connection": "keep-alive"},
    ],
)
async def test_incomplete_handshake_is_refused(path: str, wrong: dict[str, str]) -> None:
    handshake = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    async with a_box() as box:
        assert (await box.http.get(path, headers={**handshake, **bearer(), **wrong})).status_code == 426


@pytest.mark.parametrize("path", ["/mcp", "/tickets", "/vnc/", "/vnc/index.html", "/elsewhere"])
async def test_other_paths_accept_no_socket(path: str) -> None:
    async with a_box() as box:
        assert await box.socket_status(path, headers=bearer()) in (403, 406, 426)


@pytest.mark.promise("viewer:origin-checked")
async def test_ticket_from_another_origin_is_refused_and_stays_valid() -> None:
    async with a_box() as box:
        ticket = await box.make_ticket()
        for origin in ("https://evil.test", "null", "http://console.example.com", None):
            assert await box.socket_status(f"/websockify?ticket={ticket}", origin=origin) == 403
        assert await box.socket_status(f"/websockify?ticket={ticket}", origin=box.address) == 101


async def test_page_does_not_spend_its_ticket_and_refuses_an_invalid_one() -> None:
    async with a_box() as box:
        ticket = await box.make_ticket()
        page = f"/vnc/index.html?ticket={ticket}&path=websockify%3Fticket%3D{ticket}"
        assert (await box.http.get(page)).status_code == 200
        assert await box.socket_status(f"/websockify?ticket={ticket}") == 101
        assert (await box.http.get(page)).status_code == 401
        assert (await box.http.get("/vnc/index.html")).status_code == 200


@pytest.mark.promise("viewing:policy")
async def test_policy_decides_which_subjects_may_view_and_control() -> None:
    viewing = ViewingSection(allow_subjects=("alice", "bob"), control_subjects=("bob", "carol"))
    async with a_box(settings=replace(SETTINGS, viewing=viewing)) as box:
        answers = {
            (subject, mode): (await box.http.post("/tickets", headers=bearer(subject), json={"mode": mode})).status_code
            for subject in ("alice", "bob", "carol")
            for mode in ("view", "control")
        }
        assert [key for key, status in answers.items() if status == 200] == [
            ("alice", "view"),
            ("bob", "view"),
            ("bob", "control"),
        ]
        refused = [record for record in box.audit.records if record.kind is RecordKind.POLICY_BLOCKED]
        assert [(r.subject, r.rule_id) for r in refused] == [
            ("alice", "viewing.control"),
            ("carol", "viewing.subject"),
            ("carol", "viewing.subject"),
        ]
        assert await box.socket_status("/websockify", headers=bearer("carol")) == 403
        assert await box.socket_status("/websockify", headers=bearer("alice")) == 101


@pytest.mark.promise("audit:no-record-no-run")
async def test_ticket_that_cannot_be_recorded_is_refused() -> None:
    async with a_box(audit=FullDiskAudit(full_at=RecordKind.TICKET_ISSUED)) as box:
        assert (await box.http.post("/tickets", headers=bearer())).status_code == 503
    async with a_box(audit=FullDiskAudit(full_at=RecordKind.TICKET_SPENT)) as box:
        assert await box.socket_status(f"/websockify?ticket={await box.make_ticket()}") == 503
    viewing = ViewingSection(allow_subjects=())
    full = FullDiskAudit(full_at=RecordKind.POLICY_BLOCKED)
    async with a_box(audit=full, settings=replace(SETTINGS, viewing=viewing)) as box:
        assert (await box.http.post("/tickets", headers=bearer())).status_code == 503


@pytest.mark.promise("limits:one-caller-leaves-room-for-others")
async def test_subject_cannot_use_all_viewer_sockets() -> None:
    async with a_box() as box, anyio.create_task_group() as tasks:
        opened = anyio.Semaphore(0)

        async def watch() -> None:
            async with box.open_socket("/websockify", headers=bearer()) as socket:
                await socket.recv()
                opened.release()
                await anyio.sleep_forever()

        for _ in range(MAX_SOCKETS_PER_SUBJECT):
            tasks.start_soon(watch)
        for _ in range(MAX_SOCKETS_PER_SUBJECT):
            with anyio.fail_after(5):
                await opened.acquire()
        assert await box.socket_status("/websockify", headers=bearer()) == 429
        assert await box.socket_status("/websockify", headers=bearer("bob")) == 101
        tasks.cancel_scope.cancel()


@pytest.mark.promise("limits:one-caller-leaves-room-for-others")
async def test_subject_above_its_rate_gets_429_and_others_are_served() -> None:
    async with a_box(settings=replace(SETTINGS, requests_per_second=1)) as box:
        responses = [await box.http.post("/mcp", headers={**BOTH, **bearer()}, json={}) for _ in range(160)]
        assert {response.status_code for response in responses} == {400, 429}
        assert int(responses[-1].headers["retry-after"]) >= 1
        assert (
            await box.http.post("/mcp", headers={**BOTH, **bearer("bob")}, json=body("tools/list"))
        ).status_code == 200
        assert await box.socket_status("/websockify", headers=bearer()) == 429


async def test_too_large_message_closes_the_socket() -> None:
    async with a_box() as box, box.open_socket("/websockify", headers=bearer()) as socket:
        await socket.recv()
        await socket.send(bytes(MAX_SOCKET_MESSAGE_BYTES + 1))
        with anyio.fail_after(5):
            await socket.wait_closed()
        assert socket.close_code == 1009


@pytest.mark.promise("tokens:streams-end-with-them")
async def test_event_stream_ends_when_its_token_expires() -> None:
    async with a_box() as box:
        opened = await box.http.post("/mcp", headers={**BOTH, **bearer()}, json=body("initialize", INITIALIZE))
        session = {**BOTH, "Mcp-Session-Id": opened.headers["mcp-session-id"]}
        with anyio.fail_after(5):
            response = await box.http.get("/mcp", headers={**session, **bearer(seconds=1)})
        assert (response.status_code, response.text) == (200, "")
        again = await box.http.post("/mcp", headers={**session, **bearer()}, json=body("tools/list"))
        assert again.status_code == 200


async def test_client_that_disconnects_inside_its_body_leaves_the_server_working() -> None:
    async with a_box() as box:
        port = int(box.address.rpartition(":")[2])
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n"
            await stream.send(f"{head}Authorization: {bearer()['Authorization']}\r\n\r\n{{".encode())
            await anyio.sleep(0.1)  # long enough for the server to wait for the rest
        assert (await box.http.post("/mcp", headers={**BOTH, **bearer()}, json=body("tools/list"))).status_code == 200


@pytest.mark.promise("limits:one-caller-leaves-room-for-others")
def test_requests_above_the_rate_wait_and_other_subjects_are_admitted() -> None:
    limits = RequestLimits(clock=FakeClock(), requests_per_second=10)
    assert [limits.admit("alice") for _ in range(MIN_BURST)] == [0] * MIN_BURST
    assert limits.admit("alice") == pytest.approx(0.1)
    assert limits.admit("bob") == 0


def test_concurrent_requests_are_limited() -> None:
    limits = RequestLimits(clock=FakeClock(), requests_per_second=1000)
    with ExitStack() as requests:
        for _ in range(MAX_CONCURRENT_REQUESTS):
            assert limits.admit("alice") == 0
            requests.enter_context(limits.open_request("alice"))
        assert limits.admit("alice") > 0
        assert limits.admit("bob") == 0
    assert limits.admit("alice") == 0


@pytest.mark.promise("limits:one-caller-leaves-room-for-others")
def test_sockets_are_limited_per_subject_and_in_total() -> None:
    limits = RequestLimits(clock=FakeClock())
    with ExitStack() as sockets:
        for _ in range(MAX_SOCKETS_PER_SUBJECT):
            assert limits.has_room_for_socket("alice")
            sockets.enter_context(limits.open_socket("alice"))
        assert not limits.has_room_for_socket("alice")
        for number in range(MAX_SOCKETS - MAX_SOCKETS_PER_SUBJECT):
            assert limits.has_room_for_socket(f"s{number}")
            sockets.enter_context(limits.open_socket(f"s{number}"))
        assert not limits.has_room_for_socket("bob")
    assert limits.has_room_for_socket("alice")


def test_each_session_of_the_older_protocol_can_have_two_requests_open() -> None:
    assert MAX_SESSIONS_PER_SUBJECT * 2 == MAX_CONCURRENT_REQUESTS
