#!/usr/bin/python3
"""Stands in for AIO's closed HTTP programs, selected by the name of the executable. Only for tests.

gem-server keeps AIO's rules for tokens and tickets to the letter, the lax ones included. The others only show that they
answer.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import jwt

NAME = Path(sys.argv[0]).name
TOOLS = {
    "python-server": ["execute_bash", "execute_code", "file_operations"],
    "mcp-server-browser": ["browser_navigate", "browser_evaluate"],
    "chrome-devtools-mcp": ["evaluate_script"],
}
TICKETS: dict[str, float] = {}


def ticket_seconds() -> int:
    try:
        seconds = int(os.environ.get("TICKET_TTL_SECONDS", "30"))
    except ValueError:
        return 30
    return seconds if seconds >= 0 else 30


def authorised(original_uri: str, authorization: str | None) -> int:
    """The status of `GET /auth`: tickets come before tokens, the last one counts, and any number of uses is fine."""
    tickets = parse_qs(urlsplit(original_uri).query).get("ticket")
    if tickets:
        return 200 if TICKETS.get(tickets[-1], 0) > time.monotonic() else 401
    scheme, _, token = (authorization or "").partition(" ")
    if scheme.lower() != "bearer":
        return 401
    try:
        key = base64.b64decode(os.environ["JWT_PUBLIC_KEY"]).decode()
        jwt.decode(token.strip(), key, algorithms=["RS256"])
    except jwt.PyJWTError:
        return 401
    except (KeyError, ValueError):
        return 503
    return 200


def answer_mcp(message: dict[str, object]) -> dict[str, object] | None:
    if "id" not in message:
        return None
    results: dict[object, object] = {
        "initialize": {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": NAME, "version": "stand-in"},
        },
        "tools/list": {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS.get(NAME, [])]},
        "tools/call": {"content": [{"type": "text", "text": f"{NAME} would have done it"}]},
    }
    return {"jsonrpc": "2.0", "id": message["id"], "result": results.get(message.get("method"), {})}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _send(self, status: int, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        # AIO's servers let every page of every origin read their answers.
        self.send_header("Access-Control-Allow-Origin", "*")
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if NAME == "gem-server" and path == "/auth":
            status = authorised(self.headers.get("X-Original-URI", ""), self.headers.get("Authorization"))
            self._send(status, {"status": status})
        else:
            self._send(200, {"answered_by": NAME, "path": path})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = urlsplit(self.path).path
        if NAME == "gem-server" and path == "/tickets":
            ticket, seconds = str(uuid.uuid4()), ticket_seconds()
            TICKETS[ticket] = time.monotonic() + (seconds or 10**9)
            self._send(200, {"ticket": ticket, "expires_in": seconds})
        elif path == "/mcp" and NAME in TOOLS:
            answer = answer_mcp(json.loads(body))
            self._send(200 if answer else 202, answer or {})
        else:
            self._send(200, {"answered_by": NAME, "path": path})

    def log_message(self, format: str, *args: object) -> None:
        pass


def option(name: str, default: str) -> str:
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


if NAME == "chrome-devtools-mcp":
    for line in sys.stdin:
        reply = answer_mcp(json.loads(line))
        if reply:
            print(json.dumps(reply), flush=True)
else:
    ThreadingHTTPServer((option("--host", "0.0.0.0"), int(option("--port", "0"))), Handler).serve_forever()
