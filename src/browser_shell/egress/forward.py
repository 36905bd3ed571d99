"""Plain HTTP through the proxy: one request to the origin, its response back, both connections kept for the next."""

from __future__ import annotations

from dataclasses import dataclass

import anyio

from browser_shell.http1.body import CONNECTION_OVER, Wire, pour
from browser_shell.http1.heads import (
    Framing,
    MessageInvalid,
    Request,
    Response,
    parse_response,
    write_request,
    write_response,
)

_ANSWER_SECONDS = 300.0
_QUICK_SECONDS = 1.0
_QUICK_BYTES = 128 * 1024
_LINGER_SECONDS = 1.0
_MOST_PIPELINED_BYTES = 64 * 1024
MAX_RESPONSE_HEAD_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """A connection to one origin."""

    origin: str
    authority: str
    """Host and port as the judged URL has them: what the origin is told, whatever the request's own Host says."""
    wire: Wire


async def send_simple(
    client: Wire, status: int, reason: str, body: bytes = b"", content_type: str = "text/plain"
) -> None:
    """A whole response of our own, after which the connection ends."""
    head = (
        f"HTTP/1.1 {status} {reason}\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n"
        "Cache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    await client.send(head.encode("ascii") + body)
    # Closing with unread bytes of a request body would reset the connection, and the answer would be lost with it.
    await client.stream.send_eof()
    with anyio.move_on_after(_LINGER_SECONDS):
        while True:
            await client.stream.receive()


async def exchange(client: Wire, upstream: Upstream, request: Request, path: str) -> bool:
    """Sends the request on and the response back. Returns whether both connections can go on.

    Raises: one of CONNECTION_OVER.
    """
    origin = upstream.wire
    response: Response | None = None
    answered = False
    with anyio.fail_after(_ANSWER_SECONDS):
        await origin.stream.send(write_request(request, path=path, authority=upstream.authority))
        if request.framing is Framing.NONE:
            # Most answers are here at once and small. They need nobody to watch the client meanwhile.
            with anyio.move_on_after(_QUICK_SECONDS):
                response = await _answer_head(client, origin, request)
                while response.framing is Framing.LENGTH and len(origin.ahead) < response.length <= _QUICK_BYTES:
                    await origin.read_more()
        if response is not None and _is_here(origin, response):
            size = response.length if response.framing is Framing.LENGTH else 0
            body, origin.ahead = origin.ahead[:size], origin.ahead[size:]
            await client.stream.send(write_response(response, closes=request.closes) + body)
            answered = True
    if response is None or not answered:
        response = await _exchange_slowly(client, origin, request, response)
    # An origin that said more than its answer is not to be trusted with a second question.
    return not (request.closes or response.closes or origin.ahead)


def _is_here(origin: Wire, response: Response) -> bool:
    if response.framing is Framing.NONE:
        return True
    return response.framing is Framing.LENGTH and len(origin.ahead) >= response.length


async def _exchange_slowly(client: Wire, origin: Wire, request: Request, response: Response | None) -> Response:
    """Both directions at once: an answer may come before the upload is over, and a client may leave before it comes."""
    faults: list[Exception] = []
    answers: list[Response] = []
    uploaded = anyio.Event()
    async with anyio.create_task_group() as tasks:

        async def upload() -> None:
            try:
                await pour(client, request.framing, request.length, origin)
                uploaded.set()
                await _watch(client)
            except CONNECTION_OVER as fault:
                faults.append(fault)
                tasks.cancel_scope.cancel()

        tasks.start_soon(upload)
        try:
            with anyio.fail_after(_ANSWER_SECONDS):
                answers.append(response or await _answer_head(client, origin, request))
            await client.send(write_response(answers[0], closes=request.closes))
            await pour(origin, answers[0].framing, answers[0].length, client)
        except CONNECTION_OVER as fault:
            faults.append(fault)
        tasks.cancel_scope.cancel()
    if faults:
        raise faults[0]
    if not uploaded.is_set():
        raise MessageInvalid("answered before the whole request was there; nobody knows what comes next")
    return answers[0]


async def _answer_head(client: Wire, origin: Wire, request: Request) -> Response:
    while True:
        response = parse_response(await origin.head(), method=request.method)
        if response.status >= 200:
            return response
        if response.status == 101:
            raise MessageInvalid("the origin switches protocols uninvited")
        if response.status == 100 and _waits_for_100(request):
            await client.send(b"HTTP/1.1 100 Continue\r\n\r\n")


def _waits_for_100(request: Request) -> bool:
    return any(name.lower() == b"expect" for name, _ in request.fields)


async def _watch(client: Wire) -> None:
    """Notices a browser that no longer wants the answer: its place is free for another connection."""
    while len(client.ahead) < _MOST_PIPELINED_BYTES:
        await client.read_more()
    await anyio.sleep_forever()
