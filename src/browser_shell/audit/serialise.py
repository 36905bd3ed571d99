"""From a record to the members of its line. The last place where a secret can be kept out."""

from __future__ import annotations

import hmac
import re
from dataclasses import fields
from operator import attrgetter

from browser_shell.core.records import AuditRecord

LONGEST_VALUE_CHARACTERS = 512
_PLAIN = tuple(field.name for field in fields(AuditRecord) if field.name not in {"kind", "text", "durable"})
_values = attrgetter(*_PLAIN)
_NOTHING = (None, "")
# No caller puts these in a record. Should one begin to, the log must not be where it is found out.
_SECRET = re.compile(
    r"[?&;][\w.%\[\]-]{1,64}="  # a query string
    r"|\beyJ[\w-]{8,}\.[\w-]{4,}"  # a JSON web token
    r"|\b(?i:bearer|basic)\s+[\w.~+/-]{8,}"
    r"|\b(?i:set-cookie|cookie|authorization)\s*:"
    r"|://[^/\s@]*@"  # a password in a URL
)


def serialise_record(record: AuditRecord, *, text_key: bytes) -> dict[str, str | int | float]:
    """What is written of a record: no empty members, no long ones, no text that was typed."""
    members: dict[str, str | int | float] = {
        name: sanitise_value(value) if isinstance(value, str) else value
        for name, value in zip(_PLAIN, _values(record), strict=True)
        if value not in _NOTHING
    }
    if record.text is not None:
        text = record.text.reveal()
        members["text_length"] = len(text)
        members["text_hmac"] = hmac.digest(text_key, text.encode("utf-8", "surrogatepass"), "sha256").hex()
    return members


def sanitise_value(value: str) -> str:
    """A word as the log has it: whoever compares one with the log must compare this."""
    if _SECRET.search(value):
        return f"[withheld: {len(value)} characters]"
    if len(value) > LONGEST_VALUE_CHARACTERS:
        return f"{value[:LONGEST_VALUE_CHARACTERS]}[{len(value) - LONGEST_VALUE_CHARACTERS} characters cut]"
    return value
