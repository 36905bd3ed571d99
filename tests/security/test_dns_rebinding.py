"""DNS rebinding and redirects to denied addresses.

Rows of the corpus run through the real proxy and dialer with a scripted resolver. Dialled addresses are recorded, not
contacted. Two tests use a real browser and a server with its own /etc/hosts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from support import corpus_rows
from support.canaries import AuditReader, Canary, running_canary
from support.egress import (
    OriginConnection,
    RecordingConnect,
    RunningProxy,
    ScriptedResolver,
    read_until,
    running_origin,
    running_proxy,
)
from support.pages import Site, running_site, wait_until
from support.server import Server, running_server

ROWS = corpus_rows.load("dns_rebinding.jsonl")
POLICIES = json.loads((corpus_rows.FOLDER / "policies.json").read_text(encoding="utf-8"))
PUBLIC = "93.184.215.14"


async def send_request(proxy: RunningProxy, url: str) -> None:
    """Send a request as Chromium does: a tunnel for https, an absolute URL for http."""
    parts = urlsplit(url)
    port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    async with await proxy.connect() as client:
        if parts.scheme == "https":
            await client.send(f"CONNECT {parts.hostname}:{port} HTTP/1.1\r\nHost: {parts.hostname}\r\n\r\n".encode())
        else:
            await client.send(f"GET {url} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode())
        await read_until(client, b"\r\n\r\n")


@pytest.mark.promise("egress:rebinding-corpus")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
@pytest.mark.parametrize("lookups_before", [0, 1], ids=["fresh", "after-open"])
async def test_rebinding_names_of_the_corpus_reach_no_denied_address(row: dict[str, Any], lookups_before: int) -> None:
    """The policy check of `open` looks the name up before the browser does, hence `lookups_before`."""
    resolver = ScriptedResolver(row["dns_sequence"])
    for _ in range(lookups_before):
        await resolver.resolve(urlsplit(row["url"]).hostname or "")

    async def answer(connection: OriginConnection) -> None:
        await connection.receive_head()
        await connection.send(b'HTTP/1.1 200 OK\r\nAlt-Svc: h2="127.0.0.1:443"\r\nContent-Length: 2\r\n\r\nok')

    async with running_origin(answer) as origin:
        # Only the public address accepts connections, and not even it in rows with faults.
        origins = {} if row.get("faults") else {PUBLIC: origin.port}
        connect = RecordingConnect(origins=origins)
        policy = POLICIES[row.get("policy_name", "default")]["open"]
        async with running_proxy(policy, resolver=resolver, connect=connect) as proxy:
            # A hostile page repeats each step of the chain. Every repetition is a new connection.
            for _ in range(4):
                for url in row.get("chain", [row["url"]]):
                    await send_request(proxy, url)
    assert connect.dialled or row.get("faults") or lookups_before
    assert {address for address, _ in connect.dialled} <= {PUBLIC}
    for forbidden in row["forbidden"]:
        if forbidden == "http":
            assert all(port == 443 for _, port in connect.dialled)
        else:
            assert forbidden not in {address for address, _ in connect.dialled}
    if any(len(answers) > 1 for answers in row["dns_sequence"].values()) or "chain" in row:
        assert proxy.denied_rules(), "the last lookup must be denied"


@dataclass
class RebindingBox:
    """A server with its own /etc/hosts, and three addresses behind one name and port."""

    server: Server
    site: Site
    hosts_file: Path
    forbidden: Canary
    allowed: Canary

    @property
    def origin(self) -> str:
        return f"http://rebind.example:{self.site.port}"

    def resolve_to(self, address: str) -> None:
        self.hosts_file.write_text(f"{address} rebind.example\n", encoding="utf-8")


@pytest.fixture(scope="module")
def rebinding(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RebindingBox]:
    if os.geteuid() != 0:
        pytest.skip("only root can give the server its own /etc/hosts")
    hosts_file = tmp_path_factory.mktemp("names") / "hosts"
    hosts_file.write_text("127.0.0.1 rebind.example\n", encoding="utf-8")
    with ExitStack() as stack:
        site = stack.enter_context(running_site())
        forbidden = stack.enter_context(running_canary("127.0.0.2", site.port))
        allowed = stack.enter_context(running_canary("127.0.0.3", site.port))
        addresses = [f"127.0.0.1:{site.port}", f"127.0.0.3:{site.port}"]
        server = stack.enter_context(
            running_server(
                {"open": {"unsafe_allow_addresses": addresses}},
                # A mount namespace keeps the file from other programs.
                wrapper=("unshare", "--mount", "sh", "-c", f'mount --bind {hosts_file} /etc/hosts && exec "$@"', "sh"),
            )
        )
        yield RebindingBox(server, site, hosts_file, forbidden, allowed)


@pytest.mark.browser
@pytest.mark.promise("egress:rebinding-open")
def test_second_open_of_a_rebound_name_is_denied(rebinding: RebindingBox) -> None:
    rebinding.resolve_to("127.0.0.1")
    url = rebinding.site.add("/first", "<title>first</title>").replace(rebinding.site.origin, rebinding.origin)
    browser = rebinding.server.session("twice")
    assert browser.ok("open", url)["title"] == "first"

    rebinding.resolve_to("127.0.0.2")
    outcome = browser.run("open", url)

    assert (outcome.exit_code, outcome.meta["rule"]) == (126, "address.loopback")
    assert rebinding.forbidden.connections == 0


@pytest.mark.browser
@pytest.mark.promise("egress:rebinding-page")
def test_page_reaches_a_rebound_address_only_if_it_is_allowed(rebinding: RebindingBox) -> None:
    rebinding.resolve_to("127.0.0.1")
    # Without persistent connections every fetch needs a lookup.
    rebinding.site.add("/again", "ok", {"Connection": "close"})
    rebinding.site.add(
        "/loop",
        "<title>loop</title><script>setInterval(() => fetch('/again?' + Math.random()).catch(() => 0), 100)</script>",
        {"Connection": "close"},
    )
    browser = rebinding.server.session("loop")
    browser.ok("open", f"{rebinding.origin}/loop")
    wait_until(lambda: any(request.path == "/again" for request in rebinding.site.requests), what="the page's fetch")

    audit = AuditReader(rebinding.server).from_now()
    rebinding.resolve_to("127.0.0.2")
    wait_until(lambda: bool(audit.refused()), what="a refusal after the change")
    assert audit.refused() == {f"rebind.example:{rebinding.site.port}": "address.loopback"}

    # Control: the page does reach the next address, which is allowed.
    rebinding.resolve_to("127.0.0.3")
    wait_until(lambda: rebinding.allowed.hits("/again") > 0, what="a fetch at the third address")
    assert rebinding.forbidden.connections == 0
    browser.run("close")
