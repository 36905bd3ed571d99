"""The network edge."""

from browser_shell.http.lean_sdk import PACKAGES, put_off

for _package in PACKAGES:
    put_off(_package)
