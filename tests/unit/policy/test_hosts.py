"""Canonical host names."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from browser_shell.policy.hosts import canonical_host, canonical_suffix


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
