"""Which paths, hosts and origins the public listener accepts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.http.routes import Route, allows_method, match_route, parse_trusted_hosts

TRUSTED = parse_trusted_hosts(
    listen="127.0.0.1", hosts=["box.example.com", "Other.example.com:8443"], origins=["https://c.example"]
)


@pytest.mark.parametrize(
    ("path", "route"),
    [
        ("/mcp", Route.MCP),
        ("/tickets", Route.TICKETS),
        ("/vnc", Route.VIEWER),
        ("/vnc/", Route.VIEWER),
        ("/vnc/index.html", Route.VIEWER),
        ("/vnc/novnc/core/rfb.js", Route.VIEWER),
        ("/vnc/websockify", Route.SOCKET),
        ("/websockify", Route.SOCKET),
    ],
)
def test_path_has_its_route(path: str, route: Route) -> None:
    assert match_route(path.encode()) is route


@pytest.mark.promise("gateway:everything-else-is-403")
@pytest.mark.parametrize(
    "path",
    [
        "/",
        "*",
        "/mcp/",
        "//mcp",
        "/MCP",
        "/mcp;",
        "/mcp;a=b",
        "/mcp%20",
        "/mcp%00",
        "/mcp%2f",
        "/%6dcp",
        "/./mcp",
        "/../mcp",
        "/x/../mcp",
        "/mcp/.",
        "/mcp/..",
        "mcp",
        "/mcp?",
        "/mcp#",
        "http://localhost/mcp",
        "localhost:80",
        "/tickets/",
        "/ticket",
        "/ticketsx",
        "/vncx",
        "/vnc.",
        "/vnc/.",
        "/vnc/..",
        "/vnc/../mcp",
        "/vnc/%2e%2e/mcp",
        "/vnc/..%2fmcp",
        "/vnc/..;/mcp",
        "/vnc//x",
        "/vnc/x/",
        "/vnc/x//y",
        "/vnc/.git/config",
        "/vnc/a/.b",
        "/vnc\\x",
        "/vnc/x\\y",
        "/vnc/a:b",
        "/vnc/a@b",
        "/vnc/a+b",
        "/vnc/a~",
        "/vnc/%41",
        "/vnc/websockify/",
        "/websockify/",
        "/ws",
        "/v1/ping",
        "/health",
        "/metrics",
        "/favicon.ico",
        "/vnc/a/b/c/d/e/f/g/h/i",
    ],
)
def test_other_paths_have_no_route(path: str) -> None:
    assert match_route(path.encode()) is None


def test_file_names_are_limited() -> None:
    assert match_route(b"/vnc/" + b"a" * 64) is Route.VIEWER
    assert match_route(b"/vnc/" + b"a" * 65) is None


@given(st.binary(max_size=12))
def test_extended_paths_have_no_route(noise: bytes) -> None:
    for path in (b"/mcp", b"/tickets", b"/websockify"):
        assert noise == b"" or match_route(path + noise) is None
        assert noise in (b"", b"/vnc") or match_route(noise + path) in (None, Route.VIEWER)


@pytest.mark.parametrize(
    ("route", "methods"),
    [
        (Route.MCP, {"GET", "POST", "DELETE"}),
        (Route.TICKETS, {"POST"}),
        (Route.VIEWER, {"GET", "HEAD"}),
        (Route.SOCKET, {"GET"}),
    ],
)
def test_route_allows_its_methods_only(route: Route, methods: set[str]) -> None:
    candidates = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get", "FOO", ""]
    assert {method for method in candidates if allows_method(route, method)} == methods


@pytest.mark.promise("mcp:origin-and-host-checked")
@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("127.0.0.1", True),
        ("127.0.0.1:8080", True),
        ("LocalHost:1", True),
        ("[::1]:65535", True),
        ("box.example.com", True),
        ("BOX.example.com:444", True),
        ("other.example.com:8443", True),
        ("other.example.com", False),
        ("other.example.com:8444", False),
        ("", False),
        ("*", False),
        ("evil.test", False),
        ("box.example.com.", False),
        ("box.example.com.evil.test", False),
        ("evil-box.example.com", False),
        ("127.0.0.1.", False),
        ("127.0.0.1.evil.test", False),
        ("127.0.0.1:", False),
        ("127.0.0.1:0", False),
        ("127.0.0.1:65536", False),
        ("127.0.0.1:080", False),
        ("127.0.0.1:80x", False),
        ("127.0.0.1:80:80", False),
        ("127.0.0.1@evil.test", False),
        ("evil.test@127.0.0.1", False),
        ("127.0.0.1,evil.test", False),
        ("127.0.0.1, evil.test", False),
        ("127.0.0.1 ", False),
        ("127.0.0.1/", False),
        ("127.0.0.1#a", False),
        ("127.0.0.1?a", False),
        ("127.1", False),
        ("2130706433", False),
        ("0x7f000001", False),
        ("0.0.0.0", False),
        ("[::]", False),
        ("::1", False),
        ("[::1", False),
        ("[::ffff:127.0.0.1]", False),
        ("[0:0:0:0:0:0:0:1]", False),
        ("localhost%00", False),
        ("ｌocalhost", False),
    ],
)
def test_only_configured_hosts_are_allowed(host: str, allowed: bool) -> None:
    assert TRUSTED.allows_host(host) is allowed


@pytest.mark.parametrize(
    ("listen", "host", "allowed"),
    [
        ("192.168.1.5", "192.168.1.5:8080", True),
        ("192.168.1.5", "192.168.1.6:8080", False),
        ("fd00::5", "[fd00::5]:8080", True),
        ("0.0.0.0", "0.0.0.0:8080", False),
        ("0.0.0.0", "192.168.1.5:8080", False),
        ("::", "[::]:8080", False),
    ],
)
def test_listening_address_is_an_allowed_host(listen: str, host: str, allowed: bool) -> None:
    assert parse_trusted_hosts(listen=listen).allows_host(host) is allowed


@pytest.mark.promise("mcp:origin-and-host-checked")
@pytest.mark.parametrize(
    ("origin", "host", "allowed"),
    [
        ("https://c.example", "localhost:8080", True),
        ("http://localhost:8080", "localhost:8080", True),
        ("https://localhost:8080", "localhost:8080", True),
        ("https://box.example.com", "box.example.com", True),
        ("https://box.example.com", "box.example.com:443", True),
        ("http://box.example.com", "box.example.com", True),
        ("http://box.example.com:8080", "box.example.com", False),
        ("http://localhost:8080", "127.0.0.1:8080", False),
        ("http://localhost:8081", "localhost:8080", False),
        ("http://localhost", "localhost:8080", False),
        ("http://c.example", "localhost:8080", False),
        ("https://c.example:443", "localhost:8080", False),
        ("https://c.example/", "localhost:8080", False),
        ("https://C.example", "localhost:8080", False),
        ("HTTPS://c.example", "localhost:8080", False),
        ("https://c.example.evil.test", "localhost:8080", False),
        ("https://evil-c.example", "localhost:8080", False),
        ("https://x@c.example", "localhost:8080", False),
        ("https://c.example https://evil.test", "localhost:8080", False),
        ("https://evil.test, https://c.example", "localhost:8080", False),
        ("null", "localhost:8080", False),
        ("", "localhost:8080", False),
        ("file://", "localhost:8080", False),
        ("ws://localhost:8080", "localhost:8080", False),
        ("http://LOCALHOST:8080", "localhost:8080", False),
        ("chrome-extension://abcdef", "localhost:8080", False),
    ],
)
def test_origin_is_allowed_by_exact_match(origin: str, host: str, allowed: bool) -> None:
    assert TRUSTED.allows_origin(origin, host=host) is allowed


@pytest.mark.parametrize("entry", ["*", "*.example.com", "a b", "http://x", "box.example.com.", "box:0", "box:99999"])
def test_invalid_public_host_is_refused(entry: str) -> None:
    with pytest.raises(ConfigurationInvalid, match="PUBLIC_HOSTS"):
        parse_trusted_hosts(listen="127.0.0.1", hosts=[entry])


@pytest.mark.parametrize(
    "entry",
    ["*", "null", "c.example", "https://c.example/", "https://C.example", "https://c.example:443", "ftp://c.example"],
)
def test_invalid_allowed_origin_is_refused(entry: str) -> None:
    with pytest.raises(ConfigurationInvalid, match="ALLOWED_ORIGINS"):
        parse_trusted_hosts(listen="127.0.0.1", origins=[entry])
