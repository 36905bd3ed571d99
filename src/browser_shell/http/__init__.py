"""The network edge."""

from browser_shell.http.lean_sdk import open_what_is_used

open_what_is_used()
