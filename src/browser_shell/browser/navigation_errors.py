"""Why a page could not be loaded, and what to do next: by Chromium's name of the error, or by HTTP status."""

from __future__ import annotations

import re
from dataclasses import dataclass

from browser_shell.core.calls import CommandResult
from browser_shell.core.errors import ErrorCode

_NET_ERROR = re.compile(r"\bERR_[A-Z0-9_]+")
_HTTP_ERROR = re.compile(r"\bHTTP ERROR (\d{3})\b")
_URL_CHARACTERS = 200
_SCHEME_CHARACTERS = 30
DENIED_ADVICE = "Do not repeat the call: this server's policy forbids it. Use back, or open another page."
EMPTY_WITH_STATUS = "ERR_HTTP_RESPONSE_CODE_FAILURE"
"""Chromium's error for a response with an error status and without a body. Its error page has the status."""
NEEDS_CREDENTIALS = "ERR_INVALID_AUTH_CREDENTIALS"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Explanation:
    reason: str
    """Continues the sentence "the page could not be loaded: …"."""
    advice: str
    code: ErrorCode = ErrorCode.COMMAND_FAILED


def _certificate(reason: str, advice: str) -> _Explanation:
    return _Explanation(
        code=ErrorCode.CERTIFICATE_INVALID, reason=reason, advice=f"The warning cannot be bypassed. {advice}"
    )


_REFUSED = _Explanation(
    reason="the server refused the connection",
    advice="Check the host and the port of the URL. If they are right, the server is down: try again later.",
)
_CLOSED = _Explanation(
    reason="the server closed the connection before it sent a page",
    advice="Repeat the command once. If it fails again, check the scheme (http or https) and the port of the URL.",
)
_SILENT = _Explanation(
    reason="the server did not answer in time",
    advice="Check the host and the port of the URL, or try again later.",
)
_GARBLED = _Explanation(
    reason="the answer of the server is not valid",
    advice="Repeating does not help: the fault is in the server. Open another page, or tell its operator.",
)
_NO_TLS = _Explanation(
    reason="the server does not speak TLS at this port, or only a version that is not accepted",
    advice="Try http:// in place of https://, or check the port of the URL.",
)
_TOO_WEAK = _certificate(
    "its certificate uses cryptography that is too weak", "Open another site, or tell the operator of this one."
)
_NETWORK = _Explanation(
    reason="the connection failed on the way",
    advice="Repeat the command once; then tell the operator of this server.",
)
_ACCESS_REFUSED = _Explanation(
    reason="the server refuses access to this page",
    advice="Sign in to the site first, or open another page. Repeating does not help.",
)

_BY_NAME = {
    "ERR_CERT_AUTHORITY_INVALID": _certificate(
        "its certificate is self-signed, or comes from an authority that this browser does not trust",
        "Tell the operator, who can trust a private authority with browser.trust_certificates.",
    ),
    "ERR_CERT_DATE_INVALID": _certificate(
        "its certificate has expired or is not valid yet", "Tell the operator of the site, or open another site."
    ),
    "ERR_CERT_COMMON_NAME_INVALID": _certificate(
        "its certificate is for another host name",
        "Check the host of the URL, for example with and without www, or open another site.",
    ),
    "ERR_CERT_REVOKED": _certificate("its certificate was revoked", "Open another site."),
    "ERR_CERT_WEAK_KEY": _TOO_WEAK,
    "ERR_CERT_WEAK_SIGNATURE_ALGORITHM": _TOO_WEAK,
    "ERR_SSL_OBSOLETE_VERSION": _NO_TLS,
    "ERR_SSL_PROTOCOL_ERROR": _NO_TLS,
    "ERR_SSL_VERSION_OR_CIPHER_MISMATCH": _NO_TLS,
    "ERR_SSL_CLIENT_AUTH_CERT_NEEDED": _Explanation(
        code=ErrorCode.CREDENTIALS_REQUIRED,
        reason="the server requires a client certificate",
        advice="This browser has none. Open another page, or tell the operator.",
    ),
    NEEDS_CREDENTIALS: _Explanation(
        code=ErrorCode.CREDENTIALS_REQUIRED,
        reason="the site asks for a user name and a password (HTTP authentication)",
        advice="Ask a person to enter them in the live view, where the prompt is open; then open the page again.",
    ),
    "ERR_CONNECTION_REFUSED": _REFUSED,
    "ERR_CONNECTION_RESET": _CLOSED,
    "ERR_CONNECTION_CLOSED": _CLOSED,
    "ERR_CONNECTION_ABORTED": _CLOSED,
    "ERR_EMPTY_RESPONSE": _CLOSED,
    "ERR_SOCKET_NOT_CONNECTED": _CLOSED,
    "ERR_TIMED_OUT": _SILENT,
    "ERR_CONNECTION_TIMED_OUT": _SILENT,
    "ERR_TUNNEL_CONNECTION_FAILED": _NETWORK,
    "ERR_TOO_MANY_REDIRECTS": _Explanation(
        reason="the site redirects in a circle",
        advice="Open the start page of the site, or sign in there first. close and open begin without cookies.",
    ),
    "ERR_ABORTED": _Explanation(
        reason="the server sent a file to download, or nothing to show; the page before is still open",
        advice="Downloads are not possible here. Go on with the page that is open, or open another URL.",
    ),
    "ERR_UNSAFE_REDIRECT": _Explanation(
        reason="the site redirects to a URL that is not http or https",
        advice="Only http and https can be opened. Open another page.",
    ),
    "ERR_BLOCKED_BY_ADMINISTRATOR": _Explanation(
        code=ErrorCode.POLICY_BLOCKED,
        reason="the browser does not open such a URL",
        advice=DENIED_ADVICE,
    ),
    "ERR_NAME_NOT_RESOLVED": _Explanation(
        code=ErrorCode.NAME_NOT_RESOLVED,
        reason="its host name has no address",
        advice="Check the spelling of the host, try again later, or open another page.",
    ),
    EMPTY_WITH_STATUS: _Explanation(
        reason="the server answered with an error status and an empty page",
        advice="Check the path of the URL, or try again later.",
    ),
}
_BY_PREFIX = (
    (
        "ERR_CERT",
        _certificate("its certificate is not valid", "Open another site, or tell the operator of this one."),
    ),
    ("ERR_SSL", _NO_TLS),
    *((prefix, _GARBLED) for prefix in ("ERR_INVALID_", "ERR_RESPONSE_", "ERR_CONTENT_", "ERR_INCOMPLETE_")),
    *((prefix, _GARBLED) for prefix in ("ERR_HTTP2_", "ERR_QUIC_", "ERR_MALFORMED_", "ERR_UNEXPECTED")),
    *((prefix, _NETWORK) for prefix in ("ERR_PROXY_", "ERR_NETWORK_", "ERR_INTERNET_", "ERR_ADDRESS_")),
)
_UNKNOWN = _Explanation(
    reason="the browser reported an error",
    advice="Repeat the command once, or open another page.",
)
_BY_STATUS = {
    401: _Explanation(
        code=ErrorCode.CREDENTIALS_REQUIRED,
        reason="the site asks for a user name and a password (HTTP authentication)",
        advice=ErrorCode.CREDENTIALS_REQUIRED.advice,
    ),
    403: _ACCESS_REFUSED,
    404: _Explanation(
        reason="the server has no such page", advice="Check the path of the URL, or open the start page of the site."
    ),
    410: _Explanation(reason="the page was removed", advice="Open the start page of the site."),
    429: _Explanation(
        reason="the server refuses because of too many requests", advice="Wait a minute, then open the page again."
    ),
}
_SERVER_FAULT = _Explanation(reason="the server has a fault", advice="Try again later, or open another page.")
_OTHER_STATUS = _Explanation(
    reason="the server refused the request", advice="Check the URL, or open the start page of the site."
)


def net_error_in(text: str) -> str:
    """Return the name of the first network error in a text, for example ERR_CONNECTION_REFUSED, or ''."""
    match = _NET_ERROR.search(text)
    return match[0] if match else ""


def navigation_failed(text: str, *, url: str = "") -> CommandResult:
    """Return the result for a page that could not be loaded.

    Args:
        text: Contains the name of Chromium's error, or `HTTP ERROR` with a status: a message, or an error page.
        url: The page that could not be loaded, if it is not the one that the command opens.
    """
    name, status = net_error_in(text), _HTTP_ERROR.search(text)
    if status is not None:
        return _result(_explain_status(int(status[1])), f"HTTP status {status[1]}", url)
    by_prefix = (explanation for prefix, explanation in _BY_PREFIX if name.startswith(prefix))
    return _result(_BY_NAME.get(name) or next(by_prefix, _UNKNOWN), f"net::{name}" if name else "", url)


def scheme_denied(url: str) -> CommandResult:
    """Return the result for a command that led to a URL with a scheme that can never be opened."""
    scheme = url.partition(":")[0][:_SCHEME_CHARACTERS]
    return CommandResult(
        exit_code=ErrorCode.POLICY_BLOCKED.exit_code,
        error=ErrorCode.POLICY_BLOCKED,
        rule_id="url.scheme",
        message=f"the page navigated to a {scheme}: URL; only http and https can be opened",
        advice=DENIED_ADVICE,
    )


def credentials_required() -> CommandResult:
    """Return the result for a page that answers with status 401 and has no form to sign in."""
    explanation = _BY_STATUS[401]
    return CommandResult(
        exit_code=explanation.code.exit_code,
        error=explanation.code,
        message=f"{explanation.reason}; its answer is HTTP status 401",
    )


def _explain_status(status: int) -> _Explanation:
    return _BY_STATUS.get(status) or (_SERVER_FAULT if status >= 500 else _OTHER_STATUS)


def _result(explanation: _Explanation, name: str, url: str) -> CommandResult:
    page = f"the command led to {url[:_URL_CHARACTERS]}, which" if url else "the page"
    return CommandResult(
        exit_code=explanation.code.exit_code,
        error=explanation.code,
        message=f"{page} could not be loaded: {explanation.reason}{f' ({name})' if name else ''}",
        advice=explanation.advice,
    )
