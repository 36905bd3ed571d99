"""Remove what clients must not see in results: driver metadata, server paths and secrets."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from browser_shell.core.calls import BrowserCommand, CommandResult, Plan, ToolCall
from browser_shell.core.json_values import JsonValue

NOISE = frozenset({"lifecycle", "webmcp", "_boundary", "targetId"})
"""`webmcp` is text under the control of the page; the others are internal to the driver."""
COMMANDS_WITH_FILES = frozenset({"screenshot", "pdf"})
COMMANDS_WITHOUT_ORIGIN = frozenset({"get", "is"})
"""Their answer is a single value. A caller that needs the origin can use `get url`."""

REDACTED = "[redacted]"

# fmt: off
SECRET_FIELDS = frozenset({
    "token", "accesstoken", "idtoken", "refreshtoken", "authtoken", "csrftoken", "xsrftoken", "sessiontoken",
    "securitytoken", "bearertoken", "jwt", "authorization", "proxyauthorization", "cookie", "cookies", "setcookie",
    "password", "passwd", "pwd", "passphrase", "secret", "clientsecret", "secretkey", "privatekey", "accesskey",
    "apikey", "xapikey", "credential", "credentials", "session", "sessionid", "sid", "otp",
})
# fmt: on
"""Compared without case, `_` and `-`: `access_token`, `Access-Token` and `accessToken` are the same name."""

# Names of secrets in any text, followed by `=` or `:`.
_FIELD_NAME = (
    r"(?:access[_-]?token|id[_-]?token|refresh[_-]?token|auth[_-]?token|csrf[_-]?token|session[_-]?token|"
    r"security[_-]?token|client[_-]?secret|secret[_-]?key|private[_-]?key|api[_-]?key|x-api-key|"
    r"password|passwd|pwd|passphrase|session[_-]?id)"
)
# Ordinary words, which name a secret only as a query parameter.
_QUERY_NAME = (
    rf"(?:{_FIELD_NAME}|token|code|key|sig|signature|secret|jwt|auth|authorization|assertion|credential|session|sid|"
    r"otp|ticket|x-(?:amz|goog)-(?:signature|credential|security-token)|samlresponse)"
)
_VALUE = r"(?!\[redacted\])(?:(?!%26|%23)[^&#\s\"'<>)\]\\])+"

_NAME_ENDS = ("token", "secret", "key", "password", "passwd", "pwd", "passphrase", "id")


@dataclass(frozen=True, slots=True)
class _Shape:
    """A pattern of secrets. It is applied only to text that contains one of the lower-case `needles`.

    Searching for a needle takes a fiftieth of the time of a pattern, and most pages contain none. To keep matching
    linear, every pattern starts at the beginning of a run of characters or scans a bounded length.
    """

    needles: tuple[str, ...]
    pattern: re.Pattern[str]
    replacement: str = rf"\1{REDACTED}"


_SHAPES = (
    # Credentials before a host: user:password@ and token@.
    _Shape(("@",), re.compile(r"(?<![a-z0-9])([a-z][a-z0-9+.-]{0,20}://)[^\s/?#@\"'<>]+(?=@)", re.I)),
    # Authorization headers. Requiring a scheme excludes prose about authorization.
    _Shape(
        ("authorization",),
        re.compile(
            r"\b(authorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?)(?:basic|bearer|digest|negotiate|token) [^\s\"',]+", re.I
        ),
    ),
    _Shape(
        ("bearer",), re.compile(r"\b(bearer\s{1,3})(?=[a-z._~+/-]*[0-9]|[a-z._~+/-]{20})[a-z0-9._~+/-]{8,}=*", re.I)
    ),
    # JSON Web Tokens, RFC 7519: base64url of '{"', two dots.
    _Shape(("eyj",), re.compile(r"(?<![\w-])eyJ[\w-]{5,}\.[\w-]{5,}\.[\w-]*"), REDACTED),
    # Tokens with a known prefix: GitHub, Slack, OpenAI, Stripe, AWS, Google.
    _Shape(
        ("gh", "xox", "sk-", "sk_", "rk-", "rk_", "akia", "asia", "aiza"),
        re.compile(
            r"(?<![\w-])(?:gh[pousr]_\w{20,}|github_pat_\w{20,}|xox[abeprs]-[\w-]{10,}|"
            r"[sr]k[-_](?:[a-z]{1,10}[-_]){0,2}[a-z0-9]{16,}|A(?:KIA|SIA)[A-Z0-9]{16}|AIza[\w-]{35})(?![\w-])"
        ),
        REDACTED,
    ),
    _Shape(
        ("private key-----",),
        re.compile(r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,30}PRIVATE KEY-----|\Z)", re.S),
        REDACTED,
    ),
    # Cookie and Set-Cookie header lines. Requiring name=value excludes prose about cookies.
    _Shape(
        ("cookie",),
        re.compile(r"\b((?:set-)?cookie[\"']?\s{0,3}:\s{0,3}[\"']?)[^\s=;,\"']{1,200}=[^\r\n\"']*", re.I),
    ),
    # ?access_token=…, and the same inside a percent-encoded URL.
    _Shape(("=",), re.compile(rf"([?&#;]{_QUERY_NAME}=){_VALUE}", re.I)),
    _Shape(("%3d",), re.compile(rf"(%(?:3F|26|23){_QUERY_NAME}%3D){_VALUE}", re.I)),
    _Shape(tuple(word + "=" for word in _NAME_ENDS), re.compile(rf"(?<![\w-])({_FIELD_NAME}=){_VALUE}", re.I)),
    # "access_token": "…", as in the text of a JSON page.
    _Shape(
        tuple(word + quote for word in _NAME_ENDS for quote in ('"', "'", "\\")),
        re.compile(
            rf"(\\?[\"'](?:{_FIELD_NAME}|token|secret)\\?[\"']\s{{0,9}}:\s{{0,9}}\\?[\"'])(?:(?!\\?[\"']).)+", re.I
        ),
    ),
)
_NEEDLES = frozenset(needle for shape in _SHAPES for needle in shape.needles)


class NormaliseData:
    """Remove driver metadata and server paths from the data of a result."""

    async def after(self, call: ToolCall, plan: BrowserCommand, result: CommandResult) -> CommandResult:
        return replace(result, data=normalise(plan, result.data))


def normalise(plan: BrowserCommand, data: JsonValue) -> JsonValue:
    if not isinstance(data, dict):
        return data
    dropped = set(NOISE)
    if "refs" not in plan.options:
        dropped.add("refs")
    if plan.name in COMMANDS_WITH_FILES:
        dropped.add("path")
    if plan.name in COMMANDS_WITHOUT_ORIGIN:
        dropped.add("origin")
    if not data.get("removedRefs"):
        dropped.add("removedRefs")
    kept = {key: value for key, value in data.items() if key not in dropped}
    delta = kept.get("snapshot")
    if isinstance(delta, dict):
        # A delta has its refs one level deeper.
        kept["snapshot"] = {key: value for key, value in delta.items() if key not in dropped}
    return kept


class RedactSecrets:
    """Redact the data and message of a result. Runs after plugins and before truncation."""

    async def after(self, call: ToolCall, plan: Plan, result: CommandResult) -> CommandResult:
        return replace(result, data=redact(result.data), message=redact_text(result.message))


def redact(value: JsonValue) -> JsonValue:
    match value:
        case str():
            return redact_text(value)
        case list():
            return [redact(item) for item in value]
        case dict():
            return {key: REDACTED if _is_secret(key, item) else redact(item) for key, item in value.items()}
        case _:
            return value


def redact_text(text: str) -> str:
    lowered = text.lower()
    found = {needle for needle in _NEEDLES if needle in lowered}
    for shape in _SHAPES:
        if not found.isdisjoint(shape.needles):
            text = shape.pattern.sub(shape.replacement, text)
    return text


def _is_secret(key: str, value: JsonValue) -> bool:
    # Booleans and empty values reveal nothing, and a model may need them.
    if isinstance(value, bool) or value in (None, "", [], {}):
        return False
    return key.lower().replace("_", "").replace("-", "") in SECRET_FIELDS
