"""Settings of a Chromium that is never started as a browser."""

from __future__ import annotations

from pathlib import Path

from browser_shell.browser.chromium.process import ChromiumSettings


def chromium_settings(directory: Path) -> ChromiumSettings:
    """Return settings whose program ends at once."""
    return ChromiumSettings(
        program=Path("/bin/true"),
        profile=directory / "home" / "profile",
        home=directory,
        temporary=directory / "t",
        identities=directory,
        logs=directory,
        port=9222,
        width=1,
        height=1,
        proxy_port=1,
        timezone="",
        account=None,
    )
