"""Chromium's managed policy, a second line of defence behind the policy rules of the server."""

from __future__ import annotations

import json
import os
from pathlib import Path

from browser_shell.core.json_values import JsonObject, JsonValue
from browser_shell.process.files import create_file

# Features that send data elsewhere, store data, or ask a question that an agent cannot answer.
# DeveloperToolsAvailability 2 must not be added: it would also refuse the server's DevTools connection.
_CONSTANT: JsonObject = {
    "AllowFileSelectionDialogs": False,
    # Includes the captive portal check, which connects to Google after every certificate error.
    "AlternateErrorPagesEnabled": False,
    "AudioCaptureAllowed": False,
    # No scheme: a login prompt for HTTP authentication would block the page, and any page could show one to a person.
    "AuthSchemes": "",
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
    "SSLErrorOverrideAllowed": False,
    "SafeBrowsingProtectionLevel": 0,
    "SearchSuggestEnabled": False,
    "SyncDisabled": True,
    "TranslateEnabled": False,
    "VideoCaptureAllowed": False,
    "WebRtcIPHandling": "disable_non_proxied_udp",
    # "*" does not match the browser's own pages.
    "URLBlocklist": [
        *("*", "chrome://*", "chrome-untrusted://*", "devtools://*"),
        *("file://*", "view-source:*", "javascript:*", "data:*"),
    ],
}


def managed_policy(
    allow_schemes: tuple[str, ...], *, trusted_certificates: tuple[str, ...] = (), login_prompts: tuple[str, ...] = ()
) -> JsonObject:
    """Return the policy of the browser.

    Args:
        allow_schemes: URL schemes of pages that may be opened.
        trusted_certificates: Authorities, as base64 of DER.
        login_prompts: Origins that may show a login prompt.
    """
    allowed: list[JsonValue] = [f"{scheme}://*" for scheme in allow_schemes]
    return {
        **_CONSTANT,
        "AllHttpAuthSchemesAllowedForOrigins": list(login_prompts),
        "CACertificates": list(trusted_certificates),
        "URLAllowlist": allowed,
    }


def write_managed_policy(directory: Path, policy: JsonObject) -> None:
    """Write the policy below `directory`, in the layout that Chromium expects below /etc/chromium. Raises: OSError."""
    managed = directory / "policies" / "managed"
    managed.mkdir(parents=True, exist_ok=True)
    for path in (directory, directory / "policies", managed):
        path.chmod(0o755)
    with create_file(managed / "browser-shell.json") as file:
        file.write(json.dumps(policy, indent=1).encode())
        os.fchmod(file.fileno(), 0o644)
