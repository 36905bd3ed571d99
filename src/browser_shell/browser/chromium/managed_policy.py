"""Chromium's managed policy: the second lock, made from the same document as the first."""

from __future__ import annotations

import json
from pathlib import Path

from browser_shell.core.json_values import JsonObject, JsonValue

# Everything that would leave the page, keep something for later, or ask a question that an agent cannot answer.
# Never here: DeveloperToolsAvailability 2, which would also shut out our own DevTools connection.
_CONSTANT: JsonObject = {
    "AllowFileSelectionDialogs": False,
    # Also the captive portal check, which asks Google in the session's name after every certificate error.
    "AlternateErrorPagesEnabled": False,
    "AudioCaptureAllowed": False,
    "AutofillAddressEnabled": False,
    "AutofillCreditCardEnabled": False,
    "BackgroundModeEnabled": False,
    "BrowserSignin": 0,
    "BuiltInDnsClientEnabled": False,
    "CommandLineFlagSecurityWarningsEnabled": False,
    "ComponentUpdatesEnabled": False,
    "DefaultBrowserSettingEnabled": False,
    "DefaultFileSystemReadGuardSetting": 2,
    "DefaultFileSystemWriteGuardSetting": 2,
    "DefaultGeolocationSetting": 2,
    "DefaultNotificationsSetting": 2,
    "DefaultSerialGuardSetting": 2,
    "DefaultWebBluetoothGuardSetting": 2,
    "DefaultWebUsbGuardSetting": 2,
    "DnsOverHttpsMode": "off",
    "DownloadRestrictions": 3,
    "ExtensionInstallBlocklist": ["*"],
    "MetricsReportingEnabled": False,
    "NetworkPredictionOptions": 2,
    "PasswordManagerEnabled": False,
    "PrintingEnabled": False,
    "PromotionalTabsEnabled": False,
    "QuicAllowed": False,
    "SafeBrowsingProtectionLevel": 0,
    "SearchSuggestEnabled": False,
    "SyncDisabled": True,
    "TranslateEnabled": False,
    "VideoCaptureAllowed": False,
    "WebRtcIPHandling": "disable_non_proxied_udp",
    # "*" alone does not cover the browser's own pages.
    "URLBlocklist": [
        *("*", "chrome://*", "chrome-untrusted://*", "devtools://*"),
        *("file://*", "view-source:*", "javascript:*", "data:*"),
    ],
}


def managed_policy(allow_schemes: tuple[str, ...]) -> JsonObject:
    """The policy for pages of these schemes."""
    allowed: list[JsonValue] = [f"{scheme}://*" for scheme in allow_schemes]
    return {**_CONSTANT, "URLAllowlist": allowed}


def write_managed_policy(directory: Path, allow_schemes: tuple[str, ...]) -> None:
    """Lays out `directory` as Chromium expects to find /etc/chromium."""
    managed = directory / "policies" / "managed"
    managed.mkdir(parents=True, exist_ok=True)
    for folder in (directory, directory / "policies", managed):
        folder.chmod(0o755)
    path = managed / "browser-shell.json"
    path.write_text(json.dumps(managed_policy(allow_schemes), indent=1), encoding="utf-8")
    path.chmod(0o644)
