"""Plain HTTP through the proxy, byte by byte, between a raw client and an origin that says what the test wants."""

from __future__ import annotations

import anyio
import pytest

from browser_shell.core.egress import Requester
from support.egress import (
    ALICE,
    LONGEST_WAIT_SECONDS,
    ScriptedResolver,
    Talk,
    a_proxy,
    an_origin,
    answering,
    answering_once,
    read_all,
    read_until,
    until,
)

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def to(port: int) -> dict[str, object]:
    """`page.example`, whatever its port, is the origin."""
    return {"unsafe_resolve": {"page.example": f"127.0.0.1:{port}", "other.example": f"127.0.0.1:{port}"}}


def get(path: str = "/", *headers: str, host: str = "page.example", end: bool = True) -> bytes:
    lines = [f"GET http://{host}{path} HTTP/1.1", f"Host: {host}", *headers, *(["Connection: close"] if end else [])]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def body_of(answer: bytes) -> bytes:
    return answer.partition(b"\r\n\r\n")[2]


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (OK, b"ok"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", b"2\r\nok\r\n0\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\n\r\nok", b"2\r\nok\r\n0\r\n\r\n"),
        (b"HTTP/1.0 200 OK\r\n\r\nok", b"2\r\nok\r\n0\r\n\r\n"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n", b""),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + OK, b"ok"),
    ],
    ids=["length", "chunked", "closed", "http10", "204", "304", "1xx"],
)
async def test_every_kind_of_body_arrives_whole(answer: bytes, body: bytes) -> None:
    async with an_origin(answering_once(answer)) as origin, a_proxy(to(origin.port)) as proxy:
        came = await proxy.ask(get())
    assert came.startswith(b"HTTP/1.1 ")
    assert body_of(came) == body


async def test_a_head_request_gets_the_length_and_no_body() -> None:
    async with (
        an_origin(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n", OK)) as origin,
        a_proxy(to(origin.port)) as proxy,
    ):
        came = await proxy.ask(
            get(end=False).replace(b"GET", b"HEAD") + get("/next"),
        )
    assert b"Content-Length: 5000\r\n" in came
    assert came.endswith(b"\r\n\r\nok")
    assert origin.connections == 1


async def test_large_bodies_go_through_unchanged_in_both_directions() -> None:
    payload = bytes(range(256)) * 16_384  # 4 MiB

    async def echo(talk: Talk) -> None:
        head = await talk.request()
        while len(body_of(head)) < len(payload):
            head += await talk.some()
        await talk.say(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(payload) + body_of(head))

    request = b"POST http://page.example/up HTTP/1.1\r\nHost: page.example\r\nConnection: close\r\n"
    async with an_origin(echo) as origin, a_proxy(to(origin.port)) as proxy, await proxy.connect() as client:
        came: list[bytes] = []

        async def read() -> None:
            came.append(await read_all(client))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            await client.send(request + b"Content-Length: %d\r\n\r\n" % len(payload) + payload)
    assert body_of(came[0]) == payload


async def test_a_chunked_upload_keeps_its_bytes_and_has_one_length_only() -> None:
    async def behave(talk: Talk) -> None:
        await talk.until(b"0\r\n\r\n")
        await talk.say(OK)

    request = (
        b"POST http://page.example/up HTTP/1.1\r\nHost: page.example\r\nConnection: close\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n3;ext=1\r\nabc\r\n0\r\nTrailer: x\r\n\r\n"
    )
    async with an_origin(behave) as origin, a_proxy(to(origin.port)) as proxy:
        assert (await proxy.ask(request)).endswith(b"ok")
    head, _, body = bytes(origin.received).partition(b"\r\n\r\n")
    assert b"transfer-encoding: chunked" in head.lower()
    assert b"content-length" not in head.lower()
    assert body == b"3\r\nabc\r\n0\r\n\r\n"


async def test_an_upload_that_waits_for_100_continue_gets_it() -> None:
    async def behave(talk: Talk) -> None:
        await talk.request()
        await talk.say(b"HTTP/1.1 100 Continue\r\n\r\n")
        await talk.until(b"abc")
        await talk.say(OK)

    head = (
        b"POST http://page.example/up HTTP/1.1\r\nHost: page.example\r\nConnection: close\r\n"
        b"Content-Length: 3\r\nExpect: 100-continue\r\n\r\n"
    )
    async with an_origin(behave) as origin, a_proxy(to(origin.port)) as proxy, await proxy.connect() as client:
        await client.send(head)
        await read_until(client, b"100")
        await client.send(b"abc")
        assert (await read_all(client)).endswith(b"ok")


async def test_an_answer_that_comes_before_the_upload_is_over_is_delivered() -> None:
    async def behave(talk: Talk) -> None:
        await talk.request()
        await talk.say(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig")
        await talk.until(b"never sent")

    head = b"POST http://page.example/up HTTP/1.1\r\nHost: page.example\r\nContent-Length: 1000000\r\n\r\nabc"
    async with an_origin(behave) as origin, a_proxy(to(origin.port)) as proxy:
        assert body_of(await proxy.ask(head)) == b"big"


async def test_both_connections_are_kept_for_the_next_request() -> None:
    async with (
        an_origin(answering(OK, OK, OK)) as origin,
        a_proxy(to(origin.port)) as proxy,
        await proxy.connect() as client,
    ):
        for number in range(3):
            await client.send(get(f"/{number}", end=False))
            await read_until(client, b"\r\n\r\nok")
    assert origin.connections == 1
    assert proxy.audit.kinds == ["EGRESS_CONNECT"]
    assert [line for line in origin.received.split(b"\r\n") if line.startswith(b"GET")] == [
        b"GET /0 HTTP/1.1",
        b"GET /1 HTTP/1.1",
        b"GET /2 HTTP/1.1",
    ]


async def test_pipelined_requests_are_answered_in_order() -> None:
    async def behave(talk: Talk) -> None:
        seen = 0
        while True:
            while origin.received.count(b"\r\n\r\n") <= seen:
                await talk.some()
            seen += 1
            await talk.say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n#%d" % seen)

    async with an_origin(behave) as origin, a_proxy(to(origin.port)) as proxy:
        came = await proxy.ask(get("/1", end=False) + get("/2", end=False) + get("/3"))
    assert came.find(b"#1") < came.find(b"#2") < came.find(b"#3")
    assert came.count(b"200 OK") == 3


async def test_another_origin_on_the_same_connection_is_dialled_and_judged_anew() -> None:
    async with (
        an_origin(answering(OK, OK)) as origin,
        a_proxy(to(origin.port)) as proxy,
        await proxy.connect() as client,
    ):
        await client.send(get(end=False))
        await read_until(client, b"ok")
        await client.send(get(end=False, host="other.example"))
        await read_until(client, b"ok")
        await client.send(get(host="10.0.0.1"))
        assert b"403" in await read_all(client)
    assert origin.connections == 2
    assert [record.host for record in proxy.audit.records] == ["page.example:80", "other.example:80", "10.0.0.1:80"]
    assert proxy.refused() == ["address.private"]


@pytest.mark.promise("egress: the target decides, and the origin is told the name that was judged")
@pytest.mark.parametrize(
    ("target", "host_header", "told"),
    [
        ("page.example", "evil.example", b"page.example"),
        ("page.example:81", "10.0.0.1", b"page.example:81"),
        ("PAGE.example:80", "x", b"page.example"),
        ("page.example.", "x", b"page.example."),
    ],
)
async def test_the_host_header_is_the_targets(target: str, host_header: str, told: bytes) -> None:
    raw = f"GET http://{target}/ HTTP/1.1\r\nHost: {host_header}\r\nConnection: close\r\n\r\n".encode()
    async with an_origin(answering(OK)) as origin, a_proxy(to(origin.port)) as proxy:
        await proxy.ask(raw)
    assert origin.connections == 1
    assert [line for line in origin.received.split(b"\r\n") if line.lower().startswith(b"host:")] == [b"Host: " + told]
    assert origin.received.startswith(b"GET / HTTP/1.1\r\nHost: ")


async def test_a_denied_target_is_denied_whatever_the_host_header_says() -> None:
    async with an_origin(answering(OK)) as origin, a_proxy(to(origin.port)) as proxy:
        came = await proxy.ask(f"GET http://127.0.0.1:{origin.port}/ HTTP/1.1\r\nHost: page.example\r\n\r\n".encode())
    assert b"403" in came
    assert b"address.loopback" in came
    assert origin.connections == 0


async def test_hop_by_hop_headers_stay_between_the_hops() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: x-server\r\nX-Server: 1\r\nKeep-Alive: 5\r\n\r\nok"
    request = get(
        "/",
        "Proxy-Authorization: Basic c2VjcmV0",
        "Proxy-Connection: keep-alive",
        "TE: trailers",
        "X-Hop: 1",
        "X-Kept: 2",
        "Connection: x-hop, host, content-length",
    )
    async with an_origin(answering(answer)) as origin, a_proxy(to(origin.port)) as proxy:
        came = await proxy.ask(request)
    sent = bytes(origin.received).lower()
    for gone in (b"proxy-", b"secret", b"x-hop", b"\r\nte:", b"connection"):
        assert gone not in sent
    assert b"x-kept: 2" in sent
    assert b"host: page.example" in sent
    assert b"x-server" not in came.lower()
    assert b"keep-alive" not in came.lower()


async def test_an_upgrade_on_a_plain_request_reaches_nobody() -> None:
    async with an_origin(answering(OK)) as origin, a_proxy(to(origin.port)) as proxy:
        request = get("/", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: x", end=False)
        async with await proxy.connect() as client:
            await client.send(request)
            assert b"200 OK" in await read_until(client, b"ok")
    assert b"upgrade" not in bytes(origin.received).lower()


async def test_an_origin_that_switches_protocols_uninvited_gets_no_further() -> None:
    answer = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nraw bytes"
    async with an_origin(answering(answer)) as origin, a_proxy(to(origin.port)) as proxy:
        assert await proxy.ask(get("/", "Upgrade: x")) == b""


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: page.example\r\n\r\n", b"400"),
        (b"GET https://page.example/ HTTP/1.1\r\nHost: page.example\r\n\r\n", b"400"),
        (b"OPTIONS * HTTP/1.1\r\nHost: page.example\r\n\r\n", b"400"),
        (b"CONNECT page.example HTTP/1.1\r\nHost: page.example\r\n\r\n", b"400"),
        (b"CONNECT page.example/x:80 HTTP/1.1\r\nHost: page.example\r\n\r\n", b"400"),
        (b"CONNECT user@page.example:80 HTTP/1.1\r\nHost: page.example\r\n\r\n", b"400"),
        (b"GET http://page.example/\r\n\r\n", b"400"),
        (b"\x16\x03\x01\x02\x00\x01", b"400"),
        (b"SSH-2.0-x\r\n\r\n", b"400"),
        (b"GET http://page.example/ HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", b"400"),
        (b"GET http://page.example/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", b"400"),
        (
            b"POST http://page.example/ HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"400",
        ),
        (b"GET http://page.example/ HTTP/1.1\r\nX: 1\r\n\r\n", b"400"),
        (b"GET http://page.example/ HTTP/1.0\r\nHost: a\r\n\r\n", b"400"),
        (b"GET http://page.example/ HTTP/1.1\nHost: a\n\n", b"400"),
        (b"GET http://page.example/ HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", b"400"),
        (b"GET http://page.example/ HTTP/1.1\r\nHost: a\r\nX : 1\r\n\r\n", b"400"),
        (b"GET http://page.example/ HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n", b"400"),
        (b"GET http://page.example/ HTTP/1.1\r\nHost: a\r\nX: a\rY: b\r\n\r\n", b"400"),
        (b"GET http://page.example/ HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\n\r\n", b"400"),
        (b"GET http://page.example/ HTTP/1.1\r\nHost: a\r\nContent-Length: 3, 3\r\n\r\n", b"400"),
        (b"GET http://page.example/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", b"501"),
        (b"GET http://page.example/ HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 70_000, b"431"),
        (b"GET http://user:pass@page.example/ HTTP/1.1\r\nHost: a\r\n\r\n", b"403"),
        (b"GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n", b"403"),
        (b"GET http://[::1]:80/ HTTP/1.1\r\nHost: a\r\n\r\n", b"403"),
        (b"GET http://[::ffff:7f00:1]/ HTTP/1.1\r\nHost: a\r\n\r\n", b"403"),
        (b"GET http://127.0.0.1./ HTTP/1.1\r\nHost: a\r\n\r\n", b"403"),
        (b"GET http://evil.example\\@page.example/ HTTP/1.1\r\nHost: a\r\n\r\n", b"403"),
    ],
)
async def test_nonsense_and_tricks_get_an_answer_and_no_connection(raw: bytes, status: bytes) -> None:
    async with an_origin(answering(OK)) as origin, a_proxy(to(origin.port)) as proxy:
        came = await proxy.ask(raw)
        assert came.startswith(b"HTTP/1.1 " + status)
        assert origin.connections == 0
        # And the proxy lives on.
        assert (await proxy.ask(get())).endswith(b"ok")


async def test_a_body_that_breaks_off_does_not_look_complete() -> None:
    answers = {
        "length": b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nhalf",
        "chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        "chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\nhalf",
    }
    for name, answer in answers.items():
        async with an_origin(answering_once(answer)) as origin, a_proxy(to(origin.port)) as proxy:
            came = await proxy.ask(get(end=False))
        assert b"half" in came, name
        assert not came.endswith(b"0\r\n\r\n"), name
        assert (b"Content-Length: 1000000" in came) == (name == "length")


async def test_a_small_body_that_breaks_off_is_no_answer_at_all() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"
    async with an_origin(answering_once(answer)) as origin, a_proxy(to(origin.port)) as proxy:
        assert await proxy.ask(get(end=False)) == b""


async def test_an_origin_that_says_more_than_its_answer_is_asked_no_second_time() -> None:
    smuggled = OK + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
    async with (
        an_origin(answering(smuggled, OK)) as origin,
        a_proxy(to(origin.port)) as proxy,
        await proxy.connect() as client,
    ):
        await client.send(get("/1", end=False))
        assert b"evil" not in await read_all(client)
    assert origin.received.count(b"GET") == 1


@pytest.mark.parametrize(
    "chunks",
    [
        b"2\r\nokX\r\n0\r\n\r\n",
        b"zz\r\nok\r\n0\r\n\r\n",
        b"-2\r\nok\r\n0\r\n\r\n",
        b"2 2\r\nok\r\n0\r\n\r\n",
        b"2" * 9000,
    ],
)
async def test_chunks_that_make_no_sense_end_the_connection_without_an_end(chunks: bytes) -> None:
    answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks
    async with an_origin(answering(answer)) as origin, a_proxy(to(origin.port)) as proxy:
        assert not (await proxy.ask(get(end=False))).endswith(b"0\r\n\r\n")


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/2 200 OK\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok",
        b"HTTP/1.1 999 OK\r\n\r\n",
    ],
)
async def test_answers_with_two_meanings_are_none(answer: bytes) -> None:
    async with an_origin(answering(answer)) as origin, a_proxy(to(origin.port)) as proxy:
        assert await proxy.ask(get()) == b""


async def test_an_answer_with_both_a_length_and_chunks_is_chunked() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
    async with an_origin(answering(answer)) as origin, a_proxy(to(origin.port)) as proxy:
        came = await proxy.ask(get())
    assert b"content-length" not in came.lower()
    assert body_of(came) == b"2\r\nok\r\n0\r\n\r\n"


async def test_lines_without_a_carriage_return_are_understood_from_a_server() -> None:
    answer = b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok"
    async with an_origin(answering(answer)) as origin, a_proxy(to(origin.port)) as proxy:
        assert body_of(await proxy.ask(get())) == b"ok"


@pytest.mark.parametrize(
    "answer", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200", b"HTTP/1.1 200 OK\r\nX: " + b"a" * 300_000]
)
async def test_an_origin_without_a_proper_answer_is_no_page(answer: bytes) -> None:
    async with an_origin(answering_once(answer)) as origin, a_proxy(to(origin.port)) as proxy:
        assert await proxy.ask(get()) == b""


async def test_a_host_that_does_not_answer_is_a_bad_gateway_without_a_body() -> None:
    async with a_proxy({"unsafe_resolve": {"page.example": "127.0.0.1:1"}}) as proxy:
        came = await proxy.ask(get())
    assert came.startswith(b"HTTP/1.1 502")
    assert body_of(came) == b""
    assert proxy.refused() == []


async def test_the_answer_to_a_refused_upload_is_not_lost() -> None:
    request = b"POST http://10.0.0.1/ HTTP/1.1\r\nHost: x\r\nContent-Length: 4000000\r\n\r\n"
    async with a_proxy() as proxy, await proxy.connect() as client:
        await client.send(request + b"x" * 4_000_000)
        assert b"address.private" in await read_all(client)


async def test_the_reason_of_a_refusal_is_text_and_never_markup() -> None:
    async with a_proxy() as proxy:
        came = await proxy.ask(b"GET http://10.0.0.1<script>/ HTTP/1.1\r\nHost: x\r\n\r\n")
    assert came.startswith(b"HTTP/1.1 403")
    assert b"<script>" not in came


async def test_a_browser_that_no_longer_waits_frees_its_place() -> None:
    async def behave(talk: Talk) -> None:
        await talk.request()
        await talk.some()  # never answers

    async with an_origin(behave) as origin, a_proxy(to(origin.port)) as proxy:
        async with await proxy.connect() as client:
            await client.send(get())
            await origin.has_received(b"GET /")
        with anyio.fail_after(LONGEST_WAIT_SECONDS):
            await origin.left.wait()


async def test_a_client_that_sends_its_head_byte_by_byte_is_served_beside_others() -> None:
    async with an_origin(answering(OK)) as origin, a_proxy(to(origin.port)) as proxy, await proxy.connect() as slow:
        for byte in get()[:-1]:
            await slow.send(bytes([byte]))
        assert (await proxy.ask(get())).endswith(b"ok")
        await slow.send(b"\n")
        assert (await read_all(slow)).endswith(b"ok")


async def test_a_client_that_never_finishes_its_head_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("browser_shell.egress.proxy._HEAD_SECONDS", 0.05)
    async with a_proxy() as proxy:
        assert await proxy.ask(b"GET http://page.exam") == b""


@pytest.mark.promise("egress: the browser's own calls go nowhere, and nobody is told")
@pytest.mark.parametrize("raw", [get(), b"CONNECT page.example:443 HTTP/1.1\r\nHost: page.example:443\r\n\r\n"])
async def test_nobodys_connection_is_refused_quietly(raw: bytes) -> None:
    resolver = ScriptedResolver()
    async with (
        an_origin(answering(OK)) as origin,
        a_proxy(to(origin.port), requester_at=lambda _: None, resolver=resolver) as proxy,
    ):
        came = await proxy.ask(raw)
    assert came.startswith(b"HTTP/1.1 403")
    assert body_of(came) == b""
    assert (origin.connections, resolver.asked, proxy.audit.records, proxy.refused()) == (0, [], [], [])


async def test_the_requester_is_known_by_the_address_that_was_dialled() -> None:
    asked: list[str] = []

    def requester_at(address: str) -> None:
        asked.append(address)

    async with a_proxy(requester_at=requester_at) as proxy:
        await proxy.ask(get())
    assert asked == ["127.0.0.1"]


@pytest.mark.promise("egress: one session cannot use up everybody's connections")
async def test_one_session_cannot_take_all_the_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("browser_shell.egress.proxy._MAX_PER_REQUESTER", 3)
    bob = Requester(subject="bob", session_id="s1")
    owners = [ALICE, ALICE, ALICE, ALICE, bob, ALICE]
    taken: list[Requester] = []

    def requester_at(_: str) -> Requester:
        taken.append(owners[len(taken)])
        return taken[-1]

    async with an_origin(answering(OK)) as origin, a_proxy(to(origin.port), requester_at=requester_at) as proxy:
        held = [await proxy.connect() for _ in range(3)]
        await until(lambda: len(taken) == len(held))
        assert await proxy.ask(get()) == b""
        assert (await proxy.ask(get())).endswith(b"ok")
        for client in held:
            await client.send(b"nonsense\r\n\r\n")
            await read_all(client)
            await client.aclose()
        assert (await proxy.ask(get())).endswith(b"ok")
    assert taken == owners


async def test_connections_beyond_the_limit_wait_for_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("browser_shell.egress.proxy._MAX_CONNECTIONS", 2)
    async with an_origin(answering(OK)) as origin, a_proxy(to(origin.port)) as proxy:
        first, second = await proxy.connect(), await proxy.connect()
        async with await proxy.connect() as third:
            await third.send(get())
            with anyio.move_on_after(0.1) as waiting:
                await third.receive()
            assert waiting.cancelled_caught
            await first.aclose()
            assert (await read_all(third)).endswith(b"ok")
        await second.aclose()
