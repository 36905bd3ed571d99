"""Who calls: bearer tokens, read as strictly as the standard allows, and what they are worth."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from browser_shell.core.calls import Principal
from browser_shell.core.json_values import JsonObject, JsonValue, parse_json
from browser_shell.core.ports import Clock
from browser_shell.http.keys import PrivateKey, VerifyKey, make_private_key, read_public_key, sign, verify_key

MAX_TOKEN_CHARACTERS = 8 * 1024
MAX_SUBJECT_CHARACTERS = 255
CLOCK_SKEW_SECONDS = 5
"""For `nbf` and `iat` only: an issuer's clock may run ahead of ours. A token is never good after its `exp`."""
LONGEST_LIFETIME_SECONDS = 366 * 24 * 3600
THROWAWAY_SECONDS = 30 * 24 * 3600
"""The key is gone with the process, so the token is too."""

_REMEMBERED_TOKENS = 256

_COMPACT = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)")
_BEARER = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] ([A-Za-z0-9._~+/=-]+)")
_HEADER_KEYS = frozenset({"alg", "typ", "kid"})
"""Every other one asks for a way to verify that we do not follow: crit, jku, jwk, x5u, x5c, zip, b64, cty, enc."""
_TYPES = frozenset({"jwt", "at+jwt"})
_KID = re.compile(r"[A-Za-z0-9._~+/=:-]{1,128}")


@dataclass(frozen=True, slots=True)
class Unknown:
    """Nobody we know, and why. The reason is safe to show: it repeats nothing of what was sent."""

    reason: str
    presented: bool = True
    """Whether there was a credential at all."""


class Authenticator(Protocol):
    """Turns an Authorization header into a caller."""

    def identify(self, authorization: str | None) -> Principal | Unknown: ...


class NoAuth:
    """--unsafe-no-auth: everyone is the same caller, as on a machine with one user."""

    def identify(self, authorization: str | None) -> Principal | Unknown:
        return Principal(subject="local")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenHolders:
    """Authenticator with a token that one key signed."""

    key: VerifyKey
    clock: Clock
    audience: str | None = None
    issuer: str | None = None

    def identify(self, authorization: str | None) -> Principal | Unknown:
        if authorization is None:
            return Unknown("a token is needed", presented=False)
        found = _BEARER.fullmatch(authorization)
        if found is None:
            return Unknown("the Authorization header is not Bearer and one token")
        return self.verify(found[1])

    def verify(self, token: str) -> Principal | Unknown:
        """What a token is worth now."""
        try:
            return self._principal(_signed_claims(self.key, token))
        except ValueError as wrong:
            return Unknown(str(wrong))

    def _principal(self, claims: JsonObject) -> Principal:
        now = self.clock.wall()
        expires_at = _moment(claims, "exp")
        if expires_at is None:
            raise ValueError("the token has no exp")
        if expires_at <= now:
            raise ValueError("the token has expired")
        if expires_at > now + LONGEST_LIFETIME_SECONDS:
            raise ValueError("the token lives longer than a year")
        for claim in ("nbf", "iat"):
            begins_at = _moment(claims, claim)
            if begins_at is not None and begins_at > now + CLOCK_SKEW_SECONDS:
                raise ValueError(f"the token's {claim} lies in the future")
        if self.issuer is not None and claims.get("iss") != self.issuer:
            raise ValueError("the token is from another issuer")
        if self.audience is not None and self.audience not in _audiences(claims.get("aud")):
            raise ValueError("the token is for another audience")
        return Principal(subject=_subject(claims.get("sub")), expires_at=expires_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Who may call, and for a server that was given no key the one token there is."""

    callers: Authenticator
    token: str | None = None


def access_by_key(public_key: str, *, algorithm: str, audience: str | None, issuer: str | None, clock: Clock) -> Access:
    """For holders of tokens that the private half of JWT_PUBLIC_KEY signed. Raises: ConfigurationInvalid."""
    key = read_public_key(public_key, algorithm)
    return Access(callers=TokenHolders(key=key, clock=clock, audience=audience, issuer=issuer))


def throwaway_access(*, clock: Clock) -> Access:
    """By a key that nobody else has and that nobody keeps."""
    private = make_private_key("EdDSA")
    token = make_token(private, subject="owner", seconds=THROWAWAY_SECONDS, now=clock.wall())
    return Access(callers=TokenHolders(key=verify_key(private.public_key()), clock=clock), token=token)


def make_token(
    key: PrivateKey,
    *,
    subject: str,
    seconds: float,
    now: float,
    audience: str | None = None,
    issuer: str | None = None,
) -> str:
    """A token that `TokenHolders` of the same key accept. Raises: ValueError for a subject that they would not."""
    claims: JsonObject = {"sub": _subject(subject), "iat": int(now), "exp": int(now + seconds)}
    if audience is not None:
        claims["aud"] = audience
    if issuer is not None:
        claims["iss"] = issuer
    algorithm = verify_key(key.public_key()).algorithm
    signed = ".".join(_encoded(json.dumps(part).encode()) for part in ({"alg": algorithm, "typ": "JWT"}, claims))
    return f"{signed}.{_encoded(sign(key, signed.encode()))}"


@lru_cache(maxsize=_REMEMBERED_TOKENS)
def _signed_claims(key: VerifyKey, token: str) -> JsonObject:
    """What a token says, if the key signed it. Whether that is good now is another question, asked every time.

    Only good ones are remembered: a wrong one raises, and a raised error is not kept.

    Raises: ValueError, in words that repeat nothing of the token.
    """
    found = _COMPACT.fullmatch(token) if len(token) <= MAX_TOKEN_CHARACTERS else None
    if found is None:
        raise ValueError("not a token")
    try:
        header, claims, signature = (_decoded(part) for part in found.groups())
    except ValueError as wrong:
        raise ValueError("not a token") from wrong
    # The header is read before the signature is checked, but all it can do is to be refused.
    if not _header_is_ours(header, key.algorithm):
        raise ValueError("the token's header is not one that is accepted here")
    if not key.signs(signature, token.rpartition(".")[0].encode("ascii")):
        raise ValueError("the token's signature is wrong")
    return _json_object(claims)


def _header_is_ours(encoded: bytes, algorithm: str) -> bool:
    try:
        header = _json_object(encoded)
    except ValueError:
        return False
    kind, kid = header.get("typ", "JWT"), header.get("kid", "-")
    return (
        header.keys() <= _HEADER_KEYS
        and header.get("alg") == algorithm
        and isinstance(kind, str)
        and kind.lower() in _TYPES
        and isinstance(kid, str)
        and _KID.fullmatch(kid) is not None
    )


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _decoded(part: str) -> bytes:
    """Raises: ValueError. One value has one spelling here: unused bits are zero."""
    data = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    if _encoded(data) != part:
        raise ValueError("not canonical")
    return data


def _json_object(data: bytes) -> JsonObject:
    """Raises: ValueError, in words that repeat nothing of the data."""
    try:
        value = parse_json(data.decode("utf-8"))
    except ValueError as wrong:
        raise ValueError("the token is not plain JSON") from wrong
    if not isinstance(value, dict):
        raise ValueError("the token is not a JSON object")  # noqa: TRY004  # bad data, not a bug
    return value


def _moment(claims: JsonObject, name: str) -> float | None:
    if name not in claims:
        return None
    value = claims[name]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"the token's {name} is not a number")  # noqa: TRY004  # bad data, not a bug
    try:
        return float(value)
    except OverflowError as large:
        raise ValueError(f"the token's {name} is not a moment") from large


def _audiences(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else [value]


def _subject(value: JsonValue) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= MAX_SUBJECT_CHARACTERS:
        raise ValueError(f"the token's sub is not a text of 1 to {MAX_SUBJECT_CHARACTERS} characters")
    if not value.isprintable() or value != value.strip():
        raise ValueError("the token's sub holds characters that cannot be seen")
    return value
