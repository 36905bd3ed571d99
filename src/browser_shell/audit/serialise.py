"""Serialise records to the members of a line. This is the last point at which a secret can be kept out of the log."""

from __future__ import annotations

import hmac
import re
from dataclasses import fields
from operator import attrgetter

from browser_shell.core.records import AuditRecord

_MAX_VALUE_CHARACTERS = 512
_FIELDS = tuple(field.name for field in fields(AuditRecord) if field.name not in {"kind", "text", "durable"})
_values = attrgetter(*_FIELDS)
# Defence in depth: no caller puts these into a record.
_SECRET = re.compile(
    r"[?&;][\w.%\[\]-]{1,64}="  # a query string
    r"|\beyJ[\w-]{8,}\.[\w-]{4,}"  # a JSON web token
    r"|\b(?i:bearer|basic)\s+[\w.~+/-]{8,}"
    r"|\b(?i:set-cookie|cookie|authorization)\s*:"
    r"|://[^/\s@]*@"  # a password in a URL
)


def serialise_record(record: AuditRecord, *, text_key: bytes) -> dict[str, str | int | float]:
    """Return the members of a record, without empty ones. Typed text becomes its length and its HMAC."""
    members: dict[str, str | int | float] = {
        name: sanitise_value(value) if isinstance(value, str) else value
        for name, value in zip(_FIELDS, _values(record), strict=True)
        if value not in (None, "")
    }
    if record.text is not None:
        text = record.text.reveal()
        members["text_length"] = len(text)
        members["text_hmac"] = hmac.digest(text_key, text.encode("utf-8", "surrogatepass"), "sha256").hex()
    return members


def sanitise_value(value: str) -> str:
    """Return a value as the log contains it: secrets withheld, long values cut."""
    if _SECRET.search(value):
        return f"[withheld: {len(value)} characters]"
    if len(value) > _MAX_VALUE_CHARACTERS:
        return f"{value[:_MAX_VALUE_CHARACTERS]}[{len(value) - _MAX_VALUE_CHARACTERS} characters cut]"
    return value
