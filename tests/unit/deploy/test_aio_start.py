"""The overlay's entry point: settings that it refuses, and the configuration that it writes for AIO."""

from __future__ import annotations

import base64
import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

OVERLAY = Path(__file__).parents[3] / "deploy" / "aio" / "overlay"
TEMPLATE = (OVERLAY / "nginx.conf").read_text(encoding="utf-8")
PORTS = {"PUBLIC_PORT": 8080, "GEM_SERVER_PORT": 8088, "MCP_HUB_PORT": 8079, "WEBSOCKET_PROXY_PORT": 6080}


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("aio_start", OVERLAY / "start.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


start = _load()


def _encoded(key: rsa.RSAPublicKey | ec.EllipticCurvePublicKey) -> str:
    return base64.b64encode(key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)).decode()


GOOD_KEY = _encoded(rsa.generate_private_key(65537, 2048).public_key())
SHORT_KEY = _encoded(rsa.generate_private_key(65537, 1024).public_key())  # noqa: S505  so that it is refused
OTHER_KIND = _encoded(ec.generate_private_key(ec.SECP256R1()).public_key())


def test_a_key_with_surrounding_spaces_requires_credentials() -> None:
    assert start.asks_for_credentials({"JWT_PUBLIC_KEY": f"  {GOOD_KEY}\n"})


@pytest.mark.parametrize("key", ["", "   ", "bm90IGEga2V5", "%%%", SHORT_KEY, OTHER_KIND])
def test_an_unusable_key_is_refused_by_name(key: str) -> None:
    with pytest.raises(start.Unusable, match=r"^JWT_PUBLIC_KEY: "):
        start.asks_for_credentials({"JWT_PUBLIC_KEY": key})


def test_open_access_must_be_requested() -> None:
    assert not start.asks_for_credentials({"BROWSER_SHELL_UNSAFE_NO_AUTH": "1"})


@pytest.mark.parametrize("env", [{"BROWSER_SHELL_UNSAFE_NO_AUTH": "yes"}, {"BROWSER_SHELL_UNSAFE_NO_AUTH": "true"}])
def test_open_access_has_one_accepted_value(env: dict[str, str]) -> None:
    with pytest.raises(start.Unusable, match=r"^BROWSER_SHELL_UNSAFE_NO_AUTH: "):
        start.asks_for_credentials(env)


def test_a_key_and_open_access_contradict_each_other() -> None:
    with pytest.raises(start.Unusable, match=r"^BROWSER_SHELL_UNSAFE_NO_AUTH: "):
        start.asks_for_credentials({"JWT_PUBLIC_KEY": GOOD_KEY, "BROWSER_SHELL_UNSAFE_NO_AUTH": "1"})


@pytest.mark.parametrize("seconds", ["0", "-1", "301", "soon", "1.5", "٣"])
def test_tickets_with_an_unlimited_or_invalid_lifetime_are_refused(seconds: str) -> None:
    with pytest.raises(start.Unusable, match=r"^TICKET_TTL_SECONDS: "):
        start.check_ticket_seconds({"TICKET_TTL_SECONDS": seconds})


@pytest.mark.parametrize("seconds", ["", "1", "30", "300"])
def test_short_lived_tickets_are_accepted(seconds: str) -> None:
    start.check_ticket_seconds({"TICKET_TTL_SECONDS": seconds})


def test_a_proxy_that_is_not_in_the_image_is_refused() -> None:
    with pytest.raises(start.Unusable, match=r"^PROXY_SERVER: "):
        start.check_proxy({"PROXY_SERVER": "http://proxy.example:3128"})


@pytest.mark.parametrize("port", ["0", "65536", "80;}", "eighty", "-1"])
def test_a_port_must_be_a_number(port: str) -> None:
    with pytest.raises(start.Unusable, match=r"^MCP_HUB_PORT: "):
        start.ports({"MCP_HUB_PORT": port})


def test_ports_have_aios_defaults() -> None:
    assert start.ports({}) == {**PORTS, "BROWSER_REMOTE_DEBUGGING_PORT": 9222}


def test_two_services_with_the_same_port_are_refused() -> None:
    with pytest.raises(start.Unusable, match="different ports"):
        start.ports({"MCP_HUB_PORT": "8088"})


def test_flags_against_site_isolation_are_removed() -> None:
    given = (
        "--remote-debugging-port=9222 --remote-allow-origins=* --disable-web-security --disable-site-isolation-trials "
        "--disable-features=IsolateOrigins,site-per-process,Translate --no-first-run"
    )
    assert start.without_gifts(given) == "--remote-debugging-port=9222 --disable-features=Translate --no-first-run"
    assert start.without_gifts("--disable-features=IsolateOrigins") == ""


def test_traffic_without_a_session_gets_a_dead_proxy() -> None:
    flags = start.browser_flags({"BROWSER_EXTRA_ARGS": "--proxy-server=direct:// --disable-web-security"})
    words = flags["BROWSER_EXTRA_ARGS"].split()
    assert "--disable-web-security" not in words
    assert [word for word in words if word.startswith("--proxy-server=")][-1] == "--proxy-server=http://127.0.0.1:1"
    assert "--proxy-bypass-list=<-loopback>" in words


def _configuration(*, with_credentials: bool = True, with_ipv6: bool = False) -> str:
    text = start.nginx_configuration(TEMPLATE, ports=PORTS, with_credentials=with_credentials, with_ipv6=with_ipv6)
    assert isinstance(text, str)
    return text


def test_no_ticket_is_written_to_the_error_log() -> None:
    outside, inside = _configuration().split("http {", 1)
    assert re.findall(r"error_log \S+ (\w+);", outside) == ["crit"]
    # nginx logs the request line at `crit` too, for instance when a disk is full.
    assert re.findall(r"error_log \S+ (\w+);", inside) == ["emerg"]


def test_every_proxied_location_requires_a_credential() -> None:
    blocks = re.findall(r"location (?!= /_)([^{]+)\{(.*?)\n        \}", _configuration(), re.DOTALL)
    proxied = {name.strip(): body for name, body in blocks if "proxy_pass" in body}
    assert len(proxied) == 3
    assert all(body.count("auth_request /_") == 1 for body in proxied.values())


def test_the_configuration_has_one_server_and_includes_no_file_of_aio() -> None:
    text = _configuration()
    assert re.findall(r"^\s*include (.*);", text, re.MULTILINE) == ["/etc/nginx/mime.types"]
    assert len(re.findall(r"^\s*server \{", text, re.MULTILINE)) == 1
    assert "/opt/gem" not in text


def test_nginx_listens_on_ipv6_where_it_exists() -> None:
    assert "listen [::]:8080 default_server" in _configuration(with_ipv6=True)
    assert "[::]" not in _configuration()


def test_a_placeholder_without_a_value_is_refused() -> None:
    with pytest.raises(start.Unusable):
        start.nginx_configuration("listen @NEW_PORT@;", ports=PORTS, with_credentials=True, with_ipv6=False)


def test_the_hub_has_one_server_with_an_empty_environment() -> None:
    servers = json.loads((OVERLAY / "mcp-hub.json.template").read_text(encoding="utf-8"))["mcpServers"]
    assert list(servers) == ["browser-shell"]
    assert (servers["browser-shell"]["command"], servers["browser-shell"]["args"][0]) == ("/usr/bin/env", "-i")


def test_overlay_and_installer_pin_the_same_driver() -> None:
    installer = (OVERLAY.parents[2] / "scripts" / "install").read_text(encoding="utf-8")
    dockerfile = (OVERLAY.parent / "Dockerfile").read_text(encoding="utf-8")
    hub = (OVERLAY / "mcp-hub.json.template").read_text(encoding="utf-8")
    version = re.search(r"^agent_browser_version=(.*)$", installer, re.MULTILINE)
    integrity = re.search(r"^agent_browser_integrity=(.*)$", installer, re.MULTILINE)
    assert version is not None
    assert integrity is not None
    assert f"ARG AGENT_BROWSER_VERSION={version[1]}\n" in dockerfile
    assert f"ARG AGENT_BROWSER_INTEGRITY={integrity[1]}\n" in dockerfile
    assert f"agent-browser-{version[1]}" in hub
