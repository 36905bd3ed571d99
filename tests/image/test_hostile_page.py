"""Attacks by a web page inside the box and by another container on its network."""

from __future__ import annotations

from functools import partial

import pytest

from support.boxes import Box
from support.canaries import AuditReader, Canary
from support.engine import Engine, Network
from support.page_mechanisms import MECHANISMS, Mechanism, redirect_path
from support.pages import Site, wait_until

NAMES = ("fetch", "xhr", "websocket", "beacon", "worker-fetch", "iframe", "image", "script", "stylesheet", "prefetch")
ATTACKS = [mechanism for mechanism in MECHANISMS if mechanism.name in NAMES]
SCAN = """
import socket
found = []
for port in range(1, 65536):
    with socket.socket() as probe:
        probe.settimeout(1)
        if probe.connect_ex(("{address}", port)) == 0:
            found.append(port)
print(found)
"""


def attack(site: Site, mechanism: Mechanism, targets: list[str]) -> str:
    for target in targets:
        site.add(redirect_path(target), "", {"Location": f"{target}/x"})
    return site.add(f"/attack/{mechanism.name}/{len(targets)}", mechanism.page(targets))


def more_than(canary: Canary, connections: int) -> bool:
    return canary.connections > connections


def all_refused(audit: AuditReader, targets: list[str]) -> bool:
    authorities = {target.removeprefix("http://") for target in targets}
    return {each if ":" in each else f"{each}:80" for each in authorities} <= audit.refused().keys()


@pytest.mark.promise("container:pages-reach-nothing-private")
def test_no_page_reaches_the_box_its_neighbours_its_host_or_its_cloud(
    box: Box, idle_box: Box, site: Site, allowed: Canary, forbidden: Canary
) -> None:
    assert len(ATTACKS) == len(NAMES)
    session = box.session("hostile")
    targets = [
        "http://127.0.0.1:8080",
        "http://127.0.0.1:9222",
        "http://169.254.169.254",
        f"http://{box.address()}:8080",
        f"http://{idle_box.address()}:8080",
        forbidden.origin,
    ]
    for mechanism in ATTACKS:
        reached = allowed.connections
        session.run("open", attack(site, mechanism, [allowed.origin]))
        wait_until(partial(more_than, allowed, reached), what=f"{mechanism.name} at the allowed canary")

        audit = AuditReader(box.server).from_now()
        session.run("open", attack(site, mechanism, targets))
        wait_until(partial(all_refused, audit, targets), what=f"{mechanism.name}: all of {targets} refused")
        assert audit.dialled() <= {f"{site.host}:{site.port}"}
    assert forbidden.connections == 0
    assert forbidden.first_lines == []


@pytest.mark.promise("container:only-the-public-port")
def test_a_second_container_on_the_same_network_reaches_only_the_public_port(
    engine: Engine, network: Network, box: Box
) -> None:
    output = engine.do(
        *("run", "--rm", "--network", network.name, "--cap-drop", "ALL", *engine.run_flags),
        *("--entrypoint", "/opt/browser-shell/bin/python", engine.image, "-c", SCAN.format(address=box.address())),
        seconds=120,
    )
    assert output == "[8080]"


@pytest.mark.promise("container:no-token-no-answer")
def test_another_container_without_a_token_is_refused(engine: Engine, network: Network, box: Box) -> None:
    code = (
        "import http.client\n"
        f"for headers in ({{}}, {{'Host': '127.0.0.1:8080'}}):\n"
        f"    link = http.client.HTTPConnection('{box.address()}', 8080, timeout=5)\n"
        "    link.request('POST', '/mcp', '{}', headers)\n"
        "    print(link.getresponse().status)\n"
    )
    output = engine.do(
        *("run", "--rm", "--network", network.name, "--cap-drop", "ALL", *engine.run_flags),
        *("--entrypoint", "/opt/browser-shell/bin/python", engine.image, "-c", code),
    )
    # 403: the address is not a trusted host name. 401: the trusted name, without a token.
    assert output.split() == ["403", "401"]
