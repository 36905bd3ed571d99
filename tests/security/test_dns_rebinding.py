"""Names that change their answer, and redirects to where nobody may go.

The rows of the corpus run through the real proxy and dialer: a client follows redirects as a browser does, the resolver
answers as the row says, and the dialling is recorded, so that no public address is ever contacted. Two more tests use a
real browser and a real server, whose list of names is ours.
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


async def ask(proxy: RunningProxy, url: str) -> None:
    """One request as Chromium would make it: a tunnel for https, the full URL for http. A refusal is an answer."""
    parts = urlsplit(url)
    port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    async with await proxy.connect() as client:
        if parts.scheme == "https":
            await client.send(f"CONNECT {parts.hostname}:{port} HTTP/1.1\r\nHost: {parts.hostname}\r\n\r\n".encode())
        else:
            await client.send(f"GET {url} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode())
        await read_until(client, b"\r\n\r\n")


@pytest.mark.promise("egress: a name that changes its answer leads nowhere that was not judged")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
@pytest.mark.parametrize("already_asked", [0, 1], ids=["fresh", "after-open"])
async def test_the_corpus_of_rebinding_names(row: dict[str, Any], already_asked: int) -> None:
    """`already_asked`: `open` itself looks the name up before the browser does."""
    resolver = ScriptedResolver(row["dns_sequence"])
    for _ in range(already_asked):
        await resolver.resolve(urlsplit(row["url"]).hostname or "")

    async def answer(connection: OriginConnection) -> None:
        await connection.receive_head()
        await connection.send(b'HTTP/1.1 200 OK\r\nAlt-Svc: h2="127.0.0.1:443"\r\nContent-Length: 2\r\n\r\nok')

    async with running_origin(answer) as origin:
        # The public address answers, or resets where the row says so; nothing else would.
        origins = {} if row.get("faults") else {PUBLIC: origin.port}
        connect = RecordingConnect(origins=origins)
        policy = POLICIES[row.get("policy_name", "default")]["open"]
        async with running_proxy(policy, resolver=resolver, connect=connect) as proxy:
            # A hostile page tries each step of the chain again and again; every time is a new connection.
            for _ in range(4):
                for url in row.get("chain", [row["url"]]):
                    await ask(proxy, url)
    assert connect.dialled or row.get("faults") or already_asked
    assert {address for address, _ in connect.dialled} <= {PUBLIC}
    for forbidden in row["forbidden"]:
        if forbidden == "http":
            assert all(port == 443 for _, port in connect.dialled)
        else:
            assert forbidden not in {address for address, _ in connect.dialled}
    if any(len(answers) > 1 for answers in row["dns_sequence"].values()) or "chain" in row:
        assert proxy.denied_rules(), "the last answer must have been refused"


@dataclass
class RebindingBox:
    """A server whose machine's own list of names is ours to change, and three addresses behind one name and port."""

    server: Server
    site: Site
    names: Path
    forbidden: Canary
    allowed: Canary

    @property
    def origin(self) -> str:
        return f"http://rebind.example:{self.site.port}"

    def resolve_to(self, address: str) -> None:
        self.names.write_text(f"{address} rebind.example\n", encoding="utf-8")


@pytest.fixture(scope="module")
def rebinding(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RebindingBox]:
    if os.geteuid() != 0:
        pytest.skip("only root can give the server a list of names of its own")
    names = tmp_path_factory.mktemp("names") / "hosts"
    names.write_text("127.0.0.1 rebind.example\n", encoding="utf-8")
    with ExitStack() as held:
        site = held.enter_context(running_site())
        forbidden = held.enter_context(running_canary("127.0.0.2", site.port))
        allowed = held.enter_context(running_canary("127.0.0.3", site.port))
        addresses = [f"127.0.0.1:{site.port}", f"127.0.0.3:{site.port}"]
        server = held.enter_context(
            running_server(
                {"open": {"unsafe_allow_addresses": addresses}},
                # In a mount namespace of its own, so that no other program sees these names.
                wrapper=("unshare", "--mount", "sh", "-c", f'mount --bind {names} /etc/hosts && exec "$@"', "sh"),
            )
        )
        yield RebindingBox(server, site, names, forbidden, allowed)


@pytest.mark.browser
@pytest.mark.promise("egress: a second open of a name that has changed its answer is refused")
def test_a_name_that_changes_between_two_opens(rebinding: RebindingBox) -> None:
    rebinding.resolve_to("127.0.0.1")
    url = rebinding.site.add("/first", "<title>first</title>").replace(rebinding.site.origin, rebinding.origin)
    browser = rebinding.server.session("twice")
    assert browser.ok("open", url)["title"] == "first"

    rebinding.resolve_to("127.0.0.2")
    outcome = browser.run("open", url)

    assert (outcome.exit_code, outcome.meta["rule"]) == (126, "address.loopback")
    assert rebinding.forbidden.connections == 0


@pytest.mark.browser
@pytest.mark.promise("egress: a page whose name changes its answer reaches the new address only if that is allowed")
def test_a_page_whose_own_name_changes_under_it(rebinding: RebindingBox) -> None:
    rebinding.resolve_to("127.0.0.1")
    # Without kept connections every fetch is a lookup of its own.
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

    # The control: the same page does follow its name to an address that is allowed.
    rebinding.resolve_to("127.0.0.3")
    wait_until(lambda: rebinding.allowed.hits("/again") > 0, what="a fetch at the third address")
    assert rebinding.forbidden.connections == 0
    browser.run("close")
