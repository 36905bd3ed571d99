"""Settings of the image: AIO variables, public key, certificate authority, time zone, display size, and fonts."""

from __future__ import annotations

import http.client
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from browser_shell.http.tokens import make_private_key, make_token, public_pem
from support.boxes import Box, running_box
from support.certificates import make_authority, make_server_identity
from support.engine import Engine, Network
from support.pages import Site, running_site

ALGORITHM = "ES256"
# All letters without a font are drawn as the same box.
LETTERS = """<canvas id=c width=60 height=60></canvas><script>
const pen = c.getContext('2d', {willReadFrequently: true})
function picture(letter) {
  pen.clearRect(0, 0, 60, 60); pen.font = '40px sans-serif'; pen.fillText(letter, 5, 45)
  return pen.getImageData(0, 0, 60, 60).data.join() }
const unknown = picture('\\u{10FFFD}')
report([...'中あ한عहไ😀Aé'].filter(letter => picture(letter) === unknown).join(''))
</script>"""


@dataclass(frozen=True, slots=True)
class IntranetSite:
    """A site, and the PEM of the authority that signed its certificate."""

    site: Site
    authority_pem: str


@pytest.fixture(scope="module")
def intranet(network: Network) -> Iterator[IntranetSite]:
    """An https site with a certificate of a private authority."""
    authority = make_authority()
    with running_site(network.gateway, tls=make_server_identity(authority, network.gateway).tls()) as site:
        site.add("/", "<title>intranet</title>")
        yield IntranetSite(site=site, authority_pem=authority.certificate_pem.decode())


@pytest.fixture(scope="module")
def configured(engine: Engine, network: Network, policy: dict[str, Any], intranet: IntranetSite) -> Iterator[Box]:
    """A box with many settings."""
    key = make_private_key(ALGORITHM)
    exempt = [*policy["open"]["unsafe_allow_addresses"], f"{intranet.site.host}:{intranet.site.port}"]
    policy = {
        **policy,
        "open": {"unsafe_allow_addresses": exempt},
        "browser": {"trust_certificates": ["/etc/agent-browser/authority.pem"]},
    }
    env = {
        "JWT_ALGORITHM": ALGORITHM,
        "TZ": "Asia/Singapore",
        "DISPLAY_WIDTH": "1024",
        "DISPLAY_HEIGHT": "768",
        "DISABLE_JUPYTER": "true",
        "MCP_HUB_WAIT_PORTS": "8091",
        "BROWSER_EXTRA_ARGS": "--no-sandbox",
    }
    config = {"public.pem": public_pem(key).decode(), "authority.pem": intranet.authority_pem}
    with running_box(engine, network=network.name, policy=policy, env=env, config=config) as box:
        assert box.server.token == ""
        box.server.token = make_token(key, subject="ada", seconds=600, now=time.time())
        yield box


def test_the_key_in_the_read_only_directory_is_used(configured: Box, site: Site, box: Box) -> None:
    assert configured.session().run("open", site.watch("").url).exit_code == 0
    connection = http.client.HTTPConnection("127.0.0.1", configured.server.port, timeout=10)
    connection.request("POST", "/tickets", headers=box.server.authorization)
    assert connection.getresponse().status == 401
    connection.close()


@pytest.mark.promise("certificates:private-authority")
def test_an_authority_in_the_read_only_directory_is_trusted(configured: Box, box: Box, intranet: IntranetSite) -> None:
    assert configured.session().ok("open", f"{intranet.site.origin}/")["title"] == "intranet"
    assert box.session().run("open", f"{intranet.site.origin}/").exit_code != 0


def test_ignored_variables_of_aio_are_logged_once_without_effect(configured: Box) -> None:
    lines = [line for line in configured.server.lines if "settings_ignored" in line]
    assert len(lines) == 1
    assert lines[0].rstrip().endswith("names=MCP_HUB_WAIT_PORTS,DISABLE_JUPYTER,BROWSER_EXTRA_ARGS")
    assert "--no-sandbox" not in configured.output.replace(lines[0], "")


def test_pages_have_the_configured_time_zone_and_display_size(configured: Box, site: Site) -> None:
    page = site.watch(
        "<script>report([Intl.DateTimeFormat().resolvedOptions().timeZone, screen.width, screen.height])</script>"
    )
    configured.session().ok("open", page.url)
    page.wait_for(["Asia/Singapore", 1024, 768])


def test_fonts_cover_the_tested_scripts(configured: Box, site: Site) -> None:
    page = site.watch(f"<meta charset=utf-8>{LETTERS}")
    configured.session().ok("open", page.url)
    page.wait_for("")
