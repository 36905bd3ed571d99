"""Chromium's managed policy: restricted features, allowed schemes and file modes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from browser_shell.browser.chromium.managed_policy import managed_policy, write_managed_policy


@pytest.mark.promise("policy:managed-policy")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AllowFileSelectionDialogs", False),
        ("AlternateErrorPagesEnabled", False),
        ("AuthSchemes", ""),
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
        ("SSLErrorOverrideAllowed", False),
        ("SafeBrowsingProtectionLevel", 0),
        ("SyncDisabled", True),
        ("WebRtcIPHandling", "disable_non_proxied_udp"),
    ],
)
def test_risky_features_are_restricted(name: str, value: object) -> None:
    assert managed_policy(("http", "https"))[name] == value


def test_the_servers_devtools_connection_is_allowed() -> None:
    policy = managed_policy(("http", "https"))
    assert "DeveloperToolsAvailability" not in policy
    assert "RemoteDebuggingAllowed" not in policy


@pytest.mark.parametrize(
    ("schemes", "allowed"),
    [(("http", "https"), ["http://*", "https://*"]), (("https",), ["https://*"]), ((), [])],
)
def test_allowed_schemes_come_from_the_policy_document(schemes: tuple[str, ...], allowed: list[str]) -> None:
    policy = managed_policy(schemes)
    assert policy["URLAllowlist"] == allowed
    blocked = policy["URLBlocklist"]
    assert isinstance(blocked, list)
    assert {"*", "chrome://*", "chrome-untrusted://*", "devtools://*", "file://*", "view-source:*", "data:*"} <= {
        str(entry) for entry in blocked
    }


@pytest.mark.parametrize("certificates", [(), ("AAAA", "BBBB")])
def test_trusted_authorities_are_those_of_the_server(certificates: tuple[str, ...]) -> None:
    policy = managed_policy(("https",), trusted_certificates=certificates)
    assert policy["CACertificates"] == list(certificates)
    assert "SSLErrorOverrideAllowedForOrigins" not in policy


@pytest.mark.parametrize("origins", [(), ("https://intranet.example",)])
def test_login_prompts_are_limited_to_origins_of_the_policy(origins: tuple[str, ...]) -> None:
    assert managed_policy(("https",), login_prompts=origins)["AllHttpAuthSchemesAllowedForOrigins"] == list(origins)


def test_every_account_can_read_the_policy(tmp_path: Path) -> None:
    write_managed_policy(tmp_path / "chromium", managed_policy(("https",)))
    path = policy_file(tmp_path)
    assert json.loads(path.read_text(encoding="utf-8")) == managed_policy(("https",))
    assert [part.stat().st_mode & 0o777 for part in (path, path.parent, tmp_path / "chromium")] == [0o644, 0o755, 0o755]


def test_a_link_in_place_of_the_policy_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "audit.jsonl").write_text("audit records\n")
    policy_file(tmp_path).parent.mkdir(parents=True)
    policy_file(tmp_path).symlink_to(tmp_path / "audit.jsonl")
    write_managed_policy(tmp_path / "chromium", managed_policy(("https",)))
    assert json.loads(policy_file(tmp_path).read_text()) == managed_policy(("https",))
    assert (tmp_path / "audit.jsonl").read_text() == "audit records\n"


def policy_file(directory: Path) -> Path:
    return directory / "chromium" / "policies" / "managed" / "browser-shell.json"
