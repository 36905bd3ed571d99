"""Runtime directories for tests."""

from __future__ import annotations

from pathlib import Path

from browser_shell.browser.chromium.runtime_dirs import RuntimeLayout
from browser_shell.process.accounts import Account


def flat_layout(directory: Path, account: Account | None = None) -> RuntimeLayout:
    """Return a layout that uses one directory for everything but the profile and the temporary directory."""
    return RuntimeLayout(
        account=account,
        root=directory,
        sockets=directory,
        display=directory,
        profile=directory / "home" / "profile",
        chromium_home=directory,
        temporary=directory / "t",
        driver_home=directory,
        config=directory,
        artifacts=directory,
        identities=directory,
        logs=directory,
    )
