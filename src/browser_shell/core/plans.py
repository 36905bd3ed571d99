"""What a call will do once its arguments have been understood. No raw argv lives beyond these types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address
from types import MappingProxyType

NO_OPTIONS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlTarget:
    """A URL after WHATWG parsing. Only `href`, the canonical serialisation, is ever handed on."""

    href: str
    scheme: str
    host: str
    """Canonical ASCII host without brackets and without a trailing dot; empty for `about:blank`."""
    port: int
    address: IPv4Address | IPv6Address | None = None
    """Set when the host is an address literal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserCommand:
    """One subcommand of `browser-shell`, already inside the grammar of `policy/commands.py`."""

    session_id: str
    name: str
    """The subcommand, for example `open` or `wait`."""
    operands: tuple[str, ...] = ()
    """Positional values in order. For `open` it is the canonical href."""
    options: Mapping[str, str] = field(default_factory=lambda: NO_OPTIONS)
    """Canonical option name without dashes, to its value; a switch has the value ''."""
    timeout_seconds: int
    targets: tuple[UrlTarget, ...] = ()
    """Every URL that this command asks the browser to visit."""

    @property
    def typed_text(self) -> str | None:
        """What goes into the page as if by a person: it may be a password. None for commands that type nothing."""
        match self.name:
            case "fill" | "type" | "select":
                return "\n".join(self.operands[1:])
            case "press":
                return "\n".join(self.operands)
            case "dialog" if len(self.operands) > 1:
                return "\n".join(self.operands[1:])
            case _:
                return None
