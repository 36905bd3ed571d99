"""Secrets on every path through a real server. None of them reaches its log."""

from __future__ import annotations

import hashlib
import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest
from websockets.sync.client import connect
from websockets.typing import Origin

from browser_shell.audit.signing import PublicKey
from browser_shell.audit.verify import verify_log
from support.canaries import AuditReader
from support.pages import Site, wait_until
from support.server import Server, running_server

CANARY = "c4n4ry"
FORM = """<!doctype html><title>{canary}-title</title><input id=pin>
<select id=choice><option value={canary}-choice>x</select>
<div id=out>{canary}-content</div>
<script>
document.cookie = 'script={canary}-script-cookie';
fetch('http://10.0.0.7/private?q={canary}-blocked-query').catch(() => 0);
</script>"""


@pytest.fixture(scope="module")
def server(site: Site) -> Iterator[Server]:
    with running_server({"open": {"unsafe_allow_addresses": [f"127.0.0.1:{site.port}"]}}) as running:
        yield running


def read_all_logs(server: Server) -> str:
    return "".join(path.read_text(encoding="utf-8") for path in server.state.glob("*/audit*.jsonl"))


def call_with(server: Server, arguments: Any, meta: dict[str, Any] | None = None) -> None:
    params = {"name": "browser-shell", "arguments": arguments, "_meta": meta or {}}
    server.rpc({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})


def watch_once(server: Server) -> str:
    """Get a ticket, use it, and return it."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    headers = {**server.authorization, "Content-Type": "application/json", "Cookie": f"sid={CANARY}-header-cookie"}
    connection.request("POST", "/tickets", json.dumps({"mode": "view"}), headers)
    ticket = str(json.loads(connection.getresponse().read())["ticket"])
    connection.close()
    address = f"127.0.0.1:{server.port}"
    with connect(
        f"ws://{address}/vnc/websockify?ticket={ticket}", origin=Origin(f"http://{address}"), proxy=None
    ) as ws:
        ws.recv(timeout=10)
    return ticket


@pytest.mark.promise("audit:no-secrets")
def test_no_secret_reaches_the_log(server: Server, site: Site) -> None:
    cookies = {"Set-Cookie": f"sid={CANARY}-server-cookie"}
    url = site.add("/form", FORM.format(canary=CANARY), cookies)
    session = server.session("s1")
    session.ok("open", f"{url}?token={CANARY}-query&q={CANARY}#{CANARY}-fragment")
    session.ok("fill", "#pin", f"{CANARY}-filled")
    session.ok("type", "#pin", f"{CANARY}-typed")
    session.ok("select", "#choice", f"{CANARY}-choice")
    session.ok("press", "a")
    session.ok("get", "text", "#out")
    # Calls that are refused, fail or are invalid.
    session.run("fill", f"#{CANARY}-selector", f"{CANARY}-lost", timeout=3)
    session.run("wait", "--text", f"{CANARY}-waited", timeout=2)
    session.run("open", f"http://user:{CANARY}@10.0.0.7/{CANARY}")
    session.run("open", f"http://10.0.0.7/{CANARY}?{CANARY}={CANARY}")
    session.run(f"{CANARY}-command", CANARY)
    session.run("click", f"--{CANARY}", CANARY)
    session.run("eval", CANARY)
    call_with(server, {"session_id": f"{CANARY} {CANARY}", "argv": [CANARY], CANARY: CANARY})
    call_with(server, {"session_id": "s1", "argv": ["close"]}, {"traceparent": f"00-{CANARY}-b7ad6b7169203331-01"})
    ticket = watch_once(server)
    wait_until(lambda: "VIEWER_LEFT" in read_all_logs(server), what="the end of the viewer's record")

    content = read_all_logs(server)
    assert CANARY not in content
    assert ticket not in content
    assert server.token not in content
    assert server.token.rpartition(".")[2] not in content
    assert hashlib.sha256(ticket.encode()).hexdigest() not in content
    kinds = {record["kind"] for record in AuditReader(server).records()}
    assert {"SESSION_OPENED", "SESSION_CLOSED", "MCP_COMMAND_BLOCKED", "MCP_NETWORK_BLOCKED", "TICKET_SPENT"} <= kinds


@pytest.mark.promise("audit:no-secrets")
def test_equal_texts_have_equal_hmacs(server: Server, site: Site) -> None:
    session, audit = server.session("s2"), AuditReader(server).from_now()
    session.ok("open", site.add("/pin", "<input id=pin>"))
    for text in ("hunter2", "hunter2", "hunter3"):
        session.ok("fill", "#pin", text)
    typed = [record for record in audit.records() if "text_hmac" in record]
    assert [(record["kind"], record["subcommand"], record["text_length"]) for record in typed] == [
        ("SANDBOX_EXEC", "fill", 7)
    ] * 3
    first, second, third = (record["text_hmac"] for record in typed)
    assert first == second != third
    assert hashlib.sha256(b"hunter2").hexdigest() != first


def test_the_log_contains_sessions_and_durations(server: Server) -> None:
    session, audit = server.session("s3"), AuditReader(server).from_now()
    session.ok("open", "about:blank")
    session.ok("close")
    records = audit.records()
    assert [record["kind"] for record in records if record.get("tool") == "sessions"] == [
        "SESSION_OPENED",
        "SESSION_CLOSED",
    ]
    (opened,) = (record for record in records if record["kind"] == "TOOL_FINISHED" and record["subcommand"] == "open")
    assert 0 <= opened["judged_ms"] <= opened["duration_ms"]
    assert 0 < opened["ran_ms"] <= opened["duration_ms"]


@pytest.mark.promise("audit:pages-cannot-fill-it")
def test_a_page_with_many_refused_requests_does_not_fill_the_log(server: Server, site: Site) -> None:
    session, audit = server.session("s4"), AuditReader(server).from_now()
    flood = """<title>flood</title><script>
    (async () => { for (let n = 0; n < 400; n++) await fetch(`http://10.1.${n >> 8}.${n & 255}/`).catch(() => 0);
    document.title = 'done' })()</script>"""
    session.ok("open", site.add("/flood", flood))
    wait_until(lambda: session.ok("get", "title")["title"] == "done", seconds=60, what="the end of the flood")

    def denials() -> list[dict[str, Any]]:
        return [record for record in audit.records() if record["kind"] == "MCP_NETWORK_BLOCKED"]

    def reported() -> int:
        return sum(record.get("suppressed_records", 1) for record in denials())

    wait_until(lambda: reported() >= 400, seconds=30, what="all refusals in the log")
    assert reported() == 400
    assert len(denials()) < 200
    session.ok("close")
    (path,) = server.state.glob("*/audit.jsonl")
    assert verify_log(path, key=PublicKey.read(path.with_suffix(".pub"))).sound
