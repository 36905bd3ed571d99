"""The headers of a request as a plain dictionary: half a dozen readers each ask for several of them."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.types import Scope

_KEY = "browser_shell.headers"


def request_headers(scope: Scope) -> Mapping[str, str]:
    """By name in lower case. Where one name came several times, the first counts. Read once, and kept in the scope."""
    kept: Mapping[str, str] | None = scope.get(_KEY)
    if kept is None:
        kept = {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(scope["headers"])}
        scope[_KEY] = kept
    return kept
