"""Sends the rows of http_attacks.jsonl to a running gateway."""

from __future__ import annotations

import json
import re
import socket
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from browser_shell.core.calls import BrowserCommand, CommandResult, ToolCall
from browser_shell.core.ports import ReportProgress
from support.fakes import RecordingSandbox
from support.raw_http import NO_ANSWER, Answer, answers_in, exchange, head
from support.tokens import Keys

CONSOLE = "https://console.example.com"
JSON = [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")]


@dataclass
class RememberingSandbox(RecordingSandbox):
    """A browser that does nothing but remember where each session of each subject is."""

    places: dict[tuple[str, str], str] = field(default_factory=dict)

    async def run(self, call: ToolCall, plan: BrowserCommand, report_progress: ReportProgress) -> CommandResult:
        key = (call.principal.subject, plan.session_id)
        if plan.name == "open":
            self.places[key] = plan.operands[0]
        if plan.name == "close":
            self.places.pop(key, None)
        return CommandResult(exit_code=0, data={"url": self.places.get(key, "about:blank")})


@dataclass
class Attacker:
    """Sends requests and scenarios of the corpus to one server."""

    port: int
    keys: Keys
    canary: int = 0
    saved: dict[str, str] = field(default_factory=dict)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def fill(self, text: str, *, subject: str = "alice") -> str:
        text = text.replace("{host}", self.host).replace("{port}", str(self.port))
        if "{jwt}" in text:
            text = text.replace("{jwt}", self.keys.token(subject))
        return re.sub(r"\{(\w+)(?::(\w+))?\}", self._saved, text)

    def _saved(self, found: re.Match[str]) -> str:
        if found[1] not in self.saved:
            return found[0]
        value = self.saved[found[1]]
        return {None: value, "upper": value.upper(), "lower": value.lower()}[found[2]]

    # Requests

    def answers(self, row: dict[str, Any]) -> list[Answer]:
        request, auth = row["request"], row.get("auth")
        if "raw" in request:
            return exchange(self.port, self._raw(request["raw"]))
        target = self.fill(request["target"])
        headers = [(name, self.fill(value)) for name, value in request["headers"]]
        if not any(name.lower() == "host" for name, _ in headers):
            headers.insert(0, ("Host", self.host))
        headers += self._authorization(auth)
        if isinstance(auth, dict) and "query" in auth:
            pairs = "&".join(f"{name}={quote(self._token(auth, value))}" for name, value in auth["query"].items())
            target += ("&" if "?" in target else "?") + pairs
        return exchange(self.port, self._message(request["method"], target, headers, request.get("body")))

    def _raw(self, raw: str | bytes) -> bytes:
        if isinstance(raw, str):
            return self.fill(raw).encode("latin-1")
        top, _, rest = raw.partition(b"\r\n\r\n")
        return self.fill(top.decode("latin-1")).encode("latin-1") + b"\r\n\r\n" + rest

    def _message(self, method: str, target: str, headers: list[tuple[str, str]], body: Any) -> bytes:
        content = body if isinstance(body, bytes) else (body or "").encode()
        if body is not None and not any(name.lower() == "content-length" for name, _ in headers):
            headers = [*headers, ("Content-Length", str(len(content)))]
        return head(method, target, [*headers, ("Connection", "close")]) + content

    def _authorization(self, auth: Any) -> list[tuple[str, str]]:
        if auth is None:
            return []
        if auth == "good":
            return [("Authorization", f"Bearer {self.keys.token()}")]
        if "authorization_headers" in auth:
            return [("Authorization", self._token(auth, value)) for value in auth["authorization_headers"]]
        if "authorization_header" in auth:
            return [("Authorization", self._token(auth, auth["authorization_header"]))]
        if "token" in auth and "query" not in auth:
            return [("Authorization", f"Bearer {self.keys.build(auth['token'], canary=self.canary)}")]
        return []

    def _token(self, auth: dict[str, Any], text: str) -> str:
        return text.replace("{jwt}", self.keys.build(auth["token"]) if "token" in auth else self.keys.token())

    # Scenarios

    def play(self, steps: list[dict[str, Any]]) -> None:
        for step in steps:
            getattr(self, f"_do_{step['do']}")(step)

    def post(self, target: str, body: str | None, *, subject: str | None, headers: list[tuple[str, str]]) -> Answer:
        return self._http("POST", target, body, subject=subject, headers=headers)

    def _http(
        self, method: str, target: str, body: str | None, *, subject: str | None, headers: list[tuple[str, str]]
    ) -> Answer:
        credential = [("Authorization", f"Bearer {self.keys.token(subject)}")] if subject else []
        message = self._message(method, target, [("Host", self.host), *headers, *credential], body)
        return next(iter(exchange(self.port, message)), NO_ANSWER)

    def _do_http(self, step: dict[str, Any]) -> None:
        headers = [(name, self.fill(value)) for name, value in step.get("headers", [])]
        answer = self._http(
            step["method"], self.fill(step["target"]), step.get("body"), subject=_subject(step), headers=headers
        )
        assert answer.status in step["expect"], step

    def _do_ticket(self, step: dict[str, Any]) -> None:
        answer = self.post("/tickets", "", subject=_subject(step), headers=[])
        assert answer.status in step["expect"], answer
        if "save" in step:
            self.saved[step["save"]] = answer.json()["ticket"]

    def _do_mcp_init(self, step: dict[str, Any]) -> None:
        answer = self._rpc(step, "initialize", _INITIALIZE)
        self.saved[step["save"]] = answer.headers["mcp-session-id"]

    def _do_mcp_call(self, step: dict[str, Any]) -> None:
        session = [("Mcp-Session-Id", self.fill(step["session"]))] if "session" in step else []
        answer = self._rpc(step, step["method"], step.get("params", "{}"), session)
        if "expect" in step:
            assert answer.status in step["expect"], answer
        if "expect_rpc_error" in step:
            assert answer.json()["error"]["code"] in step["expect_rpc_error"]

    def _do_tool(self, step: dict[str, Any]) -> None:
        answer = self._rpc(step, "tools/call", json.dumps({"name": "browser-shell", "arguments": step["arguments"]}))
        text = answer.body.decode()
        assert answer.status == 200, answer
        assert all(expected in text for expected in step.get("expect_contains", []))
        assert not any(secret in text for secret in step.get("expect_not_contains", []))

    def _rpc(self, step: dict[str, Any], method: str, params: str, more: list[tuple[str, str]] | None = None) -> Answer:
        body = f'{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}'
        return self.post("/mcp", body, subject=_subject(step), headers=[*JSON, *(more or [])])

    def _do_flood(self, step: dict[str, Any]) -> None:
        statuses = set()
        for _ in range(step["n"]):
            answer = self.post("/mcp", _LIST, subject=step["as"], headers=JSON)
            statuses.add(answer.status)
            if answer.status == 429:
                assert int(answer.headers["retry-after"]) >= 1
        assert statuses & set(step["expect_any"]), statuses

    def _do_ws(self, step: dict[str, Any]) -> None:
        with self._upgraded(step) as (_, status):
            assert status in step["expect"], step

    def _do_ws_many(self, step: dict[str, Any]) -> None:
        statuses = set()
        with ExitStack() as sockets:
            for _ in range(step["n"]):
                ticket = self.post("/tickets", "", subject=step["as"], headers=[])
                target = f"/vnc?ticket={ticket.json()['ticket']}"
                _, status = sockets.enter_context(self._upgraded({"target": target, "origin": CONSOLE}))
                statuses.add(status)
        assert statuses & set(step["expect_any"]), statuses

    def _upgraded(self, step: dict[str, Any]) -> _Upgrade:
        headers = [
            ("Host", self.host),
            ("Connection", "Upgrade"),
            ("Upgrade", "websocket"),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ("Sec-WebSocket-Protocol", "binary"),
            *((name, self.fill(value)) for name, value in step.get("headers", [])),
        ]
        if "origin" in step:
            headers.append(("Origin", step["origin"]))
        if "as" in step:
            headers.append(("Authorization", f"Bearer {self.keys.token(step['as'])}"))
        return _Upgrade(self.port, head("GET", self.fill(step["target"]), headers))


class _Upgrade:
    """A WebSocket handshake and its status. The socket stays open while the block runs."""

    def __init__(self, port: int, request: bytes) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self._socket.sendall(request)
        received = b""
        while not (answers := answers_in(received)):
            piece = self._socket.recv(65536)
            if not piece:
                answers = answers_in(received, ended=True)
                break
            received += piece
        self.status = answers[0].status if answers else NO_ANSWER.status

    def __enter__(self) -> tuple[socket.socket, int]:
        return self._socket, self.status

    def __exit__(self, *_: object) -> None:
        self._socket.close()


def _subject(step: dict[str, Any]) -> str | None:
    return None if step.get("auth", "good") is None else str(step.get("as", "alice"))


_INITIALIZE = '{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"corpus","version":"1"}}'
_LIST = '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}'
