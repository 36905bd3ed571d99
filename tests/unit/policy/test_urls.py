"""Parsing of URLs, and text that is refused."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address

import pytest

from browser_shell.core.calls import UrlTarget
from browser_shell.core.errors import ArgumentsInvalid, CallRefused, PolicyBlocked
from browser_shell.policy.urls import canonical_host, canonical_suffix, is_canonical, parse_target


@pytest.mark.parametrize(
    ("text", "href"),
    [
        ("https://EXAMPLE.com", "https://example.com/"),
        ("HTTP://example.com:80/x", "http://example.com/x"),
        ("example.com", "https://example.com/"),
        ("example.com/a?b#c", "https://example.com/a?b#c"),
        ("example.com:8443/x", "https://example.com:8443/x"),
        ("localhost:8080", "https://localhost:8080/"),
        ("93.184.215.14:8080", "https://93.184.215.14:8080/"),
        ("[2a00::1]:8443", "https://[2a00::1]:8443/"),
        ("bücher.example", "https://xn--bcher-kva.example/"),
        ("https://XN--N3H.net", "https://xn--n3h.net/"),
        ("https://xn--10cl1a0b660p.lk", "https://xn--10cl1a0b660p.lk/"),
        ("https://example.com./", "https://example.com./"),
        ("https://example.com/search?q=two words", "https://example.com/search?q=two%20words"),
        ("https://example.com/\u202e", "https://example.com/%E2%80%AE"),
        ("http:\\\\example.com\\x", "http://example.com/x"),
        ("https://ex%61mple.com/", "https://example.com/"),
        ("about:blank", "about:blank"),
        ("ABOUT:blank", "about:blank"),
    ],
)
def test_a_url_becomes_its_canonical_form(text: str, href: str) -> None:
    target = parse_target(text)
    assert target.href == href
    assert is_canonical(target)


def test_the_parts_of_a_target_are_those_of_its_url() -> None:
    assert parse_target("https://Example.com./a") == UrlTarget(
        href="https://example.com./a", scheme="https", host="example.com", port=443
    )
    four = parse_target("http://0x7f.1:81/")
    assert (four.host, four.port, four.address) == ("127.0.0.1", 81, IPv4Address("127.0.0.1"))
    six = parse_target("http://[0:0::1]/")
    assert (six.host, six.port, six.address) == ("::1", 80, IPv6Address("::1"))


@pytest.mark.promise("url:one-meaning")
@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "/", "//127.0.0.1/", "\\\\127.0.0.1", "?x", "#x", "://x", "http://", "https:///", "http://:80/"),
        *(" https://example.com/", "https://example.com/ ", "https://example.com/\n", "\u3000https://example.com/"),
        *("https://exa\tmple.com/", "https://example.com/\x00", "https://example.com/\x7f", "https://example.com/\x85"),
        *("https://example.com/\u2028x", "https://example.com/\ud800", "https://example.com: 80/", "https://a b/"),
        *("https://a..b/", "https://.example.net/", "https://example.com../", "https://./", "https://a,b/"),
        "https://a*b/",
        *("https://" + "a" * 64 + ".com/", "https://" + "a." * 127 + "com/", "https://example.com/" + "x" * 8192),
        *("https://example.com:99999/", "https://example.com:80a/", "http://127.0.0.256/", "http://[::1%25eth0]/"),
        *("http://xn--/", "http://xn--a/", "http://xn--localhost-/", "http://a.xn--example-.com/"),
        "http://xn--999999999/",
        *("http://[127.0.0.1]/", "%6aavascript:alert(1)", "\ufeffhttp://127.0.0.1/", "example.com:99999"),
    ],
)
def test_text_that_is_not_a_clear_url_is_refused(text: str) -> None:
    with pytest.raises(ArgumentsInvalid) as caught:
        parse_target(text)
    assert caught.value.rule_id == "url.syntax"


@pytest.mark.promise("url:schemes")
@pytest.mark.parametrize(
    "text",
    [
        *("file:///etc/passwd", "data:text/html,x", "javascript:alert(1)", "chrome://settings", "devtools://devtools/"),
        *("view-source:https://example.com", "blob:https://example.com/x", "ftp://example.com/", "ws://example.com/"),
        *("about:srcdoc", "about:blank#x", "about:blank?x", "about:BLANK", "tel:15551234", "localhost2:80"),
        "user:pw@x",
    ],
)
def test_other_schemes_are_blocked(text: str) -> None:
    with pytest.raises(PolicyBlocked) as caught:
        parse_target(text)
    assert caught.value.rule_id == "url.scheme"


@pytest.mark.parametrize(
    "text", ["https://u@example.com/", "https://u:p@example.com/", "https://:p@example.com/", "u@example.com"]
)
def test_a_url_with_a_user_is_refused(text: str) -> None:
    with pytest.raises(ArgumentsInvalid) as caught:
        parse_target(text)
    assert caught.value.rule_id == "url.userinfo"
    assert "u:p" not in caught.value.public_message


def test_the_length_limit_applies_before_percent_encoding() -> None:
    target = parse_target("https://example.com/" + "é" * 8000)
    assert len(target.href) > 8192
    assert is_canonical(target)


@pytest.mark.parametrize(
    "target",
    [
        UrlTarget(href="https://example.com/", scheme="https", host="other.example", port=443),
        UrlTarget(href="https://example.com", scheme="https", host="example.com", port=443),
        UrlTarget(href="http://127.1/", scheme="http", host="example.com", port=80),
        UrlTarget(href="file:///etc/passwd", scheme="https", host="example.com", port=443),
        UrlTarget(href="nonsense", scheme="https", host="example.com", port=443),
    ],
)
def test_a_target_whose_parts_contradict_its_url_is_not_canonical(target: UrlTarget) -> None:
    assert not is_canonical(target)


def test_a_refusal_quotes_text_escaped_and_shortened() -> None:
    with pytest.raises(CallRefused) as caught:
        parse_target("https://example.com/\x1b[2J" + "x" * 500)
    assert "\x1b" not in caught.value.public_message
    assert "\\x1b" in caught.value.public_message
    assert len(caught.value.public_message) < 200


@pytest.mark.parametrize(
    ("entry", "canonical"),
    [
        ("EXAMPLE.COM", "example.com"),
        ("münchen.example", "xn--mnchen-3ya.example"),
        ("faß.example", "xn--fa-hia.example"),
        ("example.com.", "example.com"),
        ("foo_bar.example", "foo_bar.example"),
    ],
)
def test_hosts_and_suffixes_get_their_canonical_form(entry: str, canonical: str) -> None:
    assert canonical_host(entry) == canonical
    assert canonical_suffix(entry) == canonical_suffix("." + entry) == "." + canonical


@pytest.mark.parametrize(
    "entry",
    [
        *("", ".", "..", "https://example.com", "example.com:443", "example.com/", "*.example.com", "*", "127.0.0.1"),
        *("0x7f.1", "[::1]", "::1", "user@example.com", "exa mple.com", "a..b", "a" * 64 + ".com", "a." * 127 + "com"),
        *("example.com?", "a,b", "exa\tmple.com", "%65xample.com", "\u2488.example"),
    ],
)
@pytest.mark.parametrize("canonical", [canonical_host, canonical_suffix])
def test_text_that_is_not_a_host_name_is_refused(canonical: Callable[[str], str], entry: str) -> None:
    with pytest.raises(ValueError, match=r"must|is|has|holds"):
        canonical(entry)
