"""The second lock: what Chromium itself is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from browser_shell.browser.chromium.managed_policy import managed_policy, write_managed_policy


@pytest.mark.promise("policy: Chromium's own policy shuts what no page of an agent needs")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AllowFileSelectionDialogs", False),
        ("AlternateErrorPagesEnabled", False),
        ("BrowserSignin", 0),
        ("BuiltInDnsClientEnabled", False),
        ("DefaultFileSystemReadGuardSetting", 2),
        ("DefaultFileSystemWriteGuardSetting", 2),
        ("DnsOverHttpsMode", "off"),
        ("DownloadRestrictions", 3),
        ("ExtensionInstallBlocklist", ["*"]),
        ("NetworkPredictionOptions", 2),
        ("PrintingEnabled", False),
        ("QuicAllowed", False),
        ("SafeBrowsingProtectionLevel", 0),
        ("SyncDisabled", True),
        ("WebRtcIPHandling", "disable_non_proxied_udp"),
    ],
)
def test_what_is_shut(name: str, value: object) -> None:
    assert managed_policy(("http", "https"))[name] == value


def test_our_own_devtools_are_not_shut_out() -> None:
    policy = managed_policy(("http", "https"))
    assert "DeveloperToolsAvailability" not in policy
    assert "RemoteDebuggingAllowed" not in policy


@pytest.mark.parametrize(
    ("schemes", "allowed"),
    [(("http", "https"), ["http://*", "https://*"]), (("https",), ["https://*"]), ((), [])],
)
def test_schemes_follow_the_document(schemes: tuple[str, ...], allowed: list[str]) -> None:
    policy = managed_policy(schemes)
    assert policy["URLAllowlist"] == allowed
    blocked = policy["URLBlocklist"]
    assert isinstance(blocked, list)
    assert {"*", "chrome://*", "chrome-untrusted://*", "devtools://*", "file://*", "view-source:*", "data:*"} <= {
        str(entry) for entry in blocked
    }


def test_the_browsers_account_can_read_it_and_not_change_it(tmp_path: Path) -> None:
    write_managed_policy(tmp_path / "chromium", ("https",))
    path = tmp_path / "chromium" / "policies" / "managed" / "browser-shell.json"
    assert json.loads(path.read_text(encoding="utf-8")) == managed_policy(("https",))
    assert [part.stat().st_mode & 0o777 for part in (path, path.parent, tmp_path / "chromium")] == [0o644, 0o755, 0o755]
