"""What exists on the public port, under which names, and for whose pages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.http.routes import Area, match_route, neighbours, offers

HOME = neighbours(
    listen="127.0.0.1", hosts=["box.example.com", "Other.example.com:8443"], origins=["https://c.example"]
)


@pytest.mark.parametrize(
    ("path", "area"),
    [
        ("/mcp", Area.MCP),
        ("/tickets", Area.TICKETS),
        ("/vnc", Area.VIEWER),
        ("/vnc/", Area.VIEWER),
        ("/vnc/index.html", Area.VIEWER),
        ("/vnc/novnc/core/rfb.js", Area.VIEWER),
        ("/vnc/websockify", Area.SOCKET),
        ("/websockify", Area.SOCKET),
    ],
)
def test_these_paths_exist(path: str, area: Area) -> None:
    assert match_route(path.encode()) is area


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
def test_no_other_path_exists(path: str) -> None:
    assert match_route(path.encode()) is None


def test_names_of_files_are_not_endless() -> None:
    assert match_route(b"/vnc/" + b"a" * 64) is Area.VIEWER
    assert match_route(b"/vnc/" + b"a" * 65) is None


@given(st.binary(max_size=12))
def test_nothing_near_a_path_is_that_path(noise: bytes) -> None:
    for path in (b"/mcp", b"/tickets", b"/websockify"):
        assert noise == b"" or match_route(path + noise) is None
        assert noise in (b"", b"/vnc") or match_route(noise + path) in (None, Area.VIEWER)


@pytest.mark.parametrize(
    ("area", "methods"),
    [
        (Area.MCP, {"GET", "POST", "DELETE"}),
        (Area.TICKETS, {"POST"}),
        (Area.VIEWER, {"GET", "HEAD"}),
        (Area.SOCKET, {"GET"}),
    ],
)
def test_methods(area: Area, methods: set[str]) -> None:
    known = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get", "FOO", ""]
    assert {method for method in known if offers(area, method)} == methods


@pytest.mark.promise("mcp:origin-and-host-checked")
@pytest.mark.parametrize(
    ("host", "known"),
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
def test_the_server_answers_to_its_names_only(host: str, known: bool) -> None:
    assert HOME.knows_host(host) is known


@pytest.mark.parametrize(
    ("listen", "host", "known"),
    [
        ("192.168.1.5", "192.168.1.5:8080", True),
        ("192.168.1.5", "192.168.1.6:8080", False),
        ("fd00::5", "[fd00::5]:8080", True),
        ("0.0.0.0", "0.0.0.0:8080", False),
        ("0.0.0.0", "192.168.1.5:8080", False),
        ("::", "[::]:8080", False),
    ],
)
def test_the_address_that_it_listens_on_is_a_name_too(listen: str, host: str, known: bool) -> None:
    assert neighbours(listen=listen).knows_host(host) is known


@pytest.mark.promise("mcp:origin-and-host-checked")
@pytest.mark.parametrize(
    ("origin", "host", "trusted"),
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
def test_pages_are_trusted_by_their_exact_origin(origin: str, host: str, trusted: bool) -> None:
    assert HOME.trusts_origin(origin, host=host) is trusted


@pytest.mark.parametrize("entry", ["*", "*.example.com", "a b", "http://x", "box.example.com.", "box:0", "box:99999"])
def test_a_wrong_name_stops_the_start(entry: str) -> None:
    with pytest.raises(ConfigurationInvalid, match="PUBLIC_HOSTS"):
        neighbours(listen="127.0.0.1", hosts=[entry])


@pytest.mark.parametrize(
    "entry",
    ["*", "null", "c.example", "https://c.example/", "https://C.example", "https://c.example:443", "ftp://c.example"],
)
def test_a_wrong_origin_stops_the_start(entry: str) -> None:
    with pytest.raises(ConfigurationInvalid, match="ALLOWED_ORIGINS"):
        neighbours(listen="127.0.0.1", origins=[entry])
