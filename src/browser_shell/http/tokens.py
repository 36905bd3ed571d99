"""Bearer tokens: keys, strict verification, and the principal that a token stands for.

PyJWT verifies the signature and the registered claims. The checks around it are stricter than the RFCs require: one
algorithm per key, three header parameters, canonical base64url, no duplicate JSON keys, bounded sizes.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from browser_shell.core.calls import Principal
from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.core.json_values import JsonObject, JsonValue, parse_json
from browser_shell.core.ports import Clock

MAX_TOKEN_CHARACTERS = 8 * 1024
MAX_SUBJECT_CHARACTERS = 255
CLOCK_SKEW_SECONDS = 5
"""Tolerance for `nbf` and `iat` only: the issuer's clock may run ahead. A token is never valid after its `exp`."""
MAX_LIFETIME_SECONDS = 366 * 24 * 3600
THROWAWAY_SECONDS = 30 * 24 * 3600
"""Lifetime of the token of a server without a key. Its key exists in this process only."""

ALGORITHMS = ("RS256", "ES256", "EdDSA")
MIN_RSA_BITS = 2048
MAX_RSA_BITS = 8192
"""Larger keys make every rejected token expensive to verify."""
MIN_RSA_EXPONENT = 65537
_GENERATED_RSA_BITS = 3072
_PEM = re.compile(rb"-----BEGIN PUBLIC KEY-----\r?\n[A-Za-z0-9+/=\r\n]+-----END PUBLIC KEY-----", re.ASCII)

_COMPACT = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)")
_BEARER = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] ([A-Za-z0-9._~+/=-]+)")
_HEADER_KEYS = frozenset({"alg", "typ", "kid"})
"""Other parameters select another way to verify (crit, jku, jwk, x5u, x5c, zip, b64, cty, enc) and are refused."""
_TYPES = frozenset({"jwt", "at+jwt"})
_KID = re.compile(r"[A-Za-z0-9._~+/=:-]{1,128}")

PrivateKey: TypeAlias = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
PublicKey: TypeAlias = rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey


@dataclass(frozen=True, slots=True)
class AuthFailure:
    """The reason why a request has no principal. It quotes nothing of the request, so it is safe to send back."""

    reason: str
    presented: bool = True
    """Whether the request had a credential at all."""


class Authenticator(Protocol):
    """Maps an Authorization header to a principal."""

    def identify(self, authorization: str | None) -> Principal | AuthFailure: ...


class NoAuth:
    """Authenticator of `--unsafe-no-auth`: every request is from the same local user."""

    def identify(self, authorization: str | None) -> Principal | AuthFailure:
        return Principal(subject="local")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenAuthenticator:
    """Accepts bearer tokens that are signed by one key."""

    key: PublicKey
    clock: Clock
    audience: str | None = None
    issuer: str | None = None

    def identify(self, authorization: str | None) -> Principal | AuthFailure:
        if authorization is None:
            return AuthFailure("a token is needed", presented=False)
        bearer = _BEARER.fullmatch(authorization)
        if bearer is None:
            return AuthFailure("the Authorization header is not Bearer and one token")
        return self.verify(bearer[1])

    def verify(self, token: str) -> Principal | AuthFailure:
        try:
            _check_format(token, algorithm_of(self.key))
            return self._principal(self._verified_claims(token))
        except ValueError as invalid:
            return AuthFailure(str(invalid))

    def _verified_claims(self, token: str) -> JsonObject:
        """Raises: ValueError."""
        try:
            claims: JsonObject = _JWT.decode(
                token,
                self.key,
                algorithms=[algorithm_of(self.key)],
                audience=self.audience,
                issuer=self.issuer,
                options={
                    "require": ["exp", "sub"],
                    "verify_aud": self.audience is not None,
                    # PyJWT reads the system clock and truncates fractions; `_principal` compares these.
                    "verify_exp": False,
                    "verify_nbf": False,
                    "verify_iat": False,
                },
            )
        except jwt.InvalidSignatureError as invalid:
            raise ValueError("the token's signature is wrong") from invalid
        except jwt.MissingRequiredClaimError as invalid:
            raise ValueError(f"the token has no {invalid.claim}") from invalid
        except jwt.InvalidIssuerError as invalid:
            raise ValueError("the token is from another issuer") from invalid
        except jwt.InvalidAudienceError as invalid:
            raise ValueError("the token is for another audience") from invalid
        except jwt.InvalidTokenError as invalid:
            raise ValueError("the token is malformed") from invalid
        return claims

    def _principal(self, claims: JsonObject) -> Principal:
        """Raises: ValueError."""
        now = self.clock.wall()
        expires_at = _timestamp(claims, "exp")
        if expires_at <= now:
            raise ValueError("the token has expired")
        if expires_at > now + MAX_LIFETIME_SECONDS:
            raise ValueError("the token lives longer than a year")
        for claim in ("nbf", "iat"):
            if claim in claims and _timestamp(claims, claim) > now + CLOCK_SKEW_SECONDS:
                raise ValueError(f"the token's {claim} lies in the future")
        return Principal(subject=_checked_subject(claims["sub"]), expires_at=expires_at)


class _StrictJWT(jwt.PyJWT):
    """PyJWT with our JSON parser: `json.loads` accepts duplicate keys, NaN and Infinity."""

    def _decode_payload(self, decoded: dict[str, Any]) -> dict[str, Any]:
        return _json_object(decoded["payload"])


_JWT = _StrictJWT()


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The authenticator of a server, and the only valid token if the server made its own key."""

    authenticator: Authenticator
    token: str | None = None


def throwaway_access(*, clock: Clock) -> Access:
    """Make a key pair, sign one token with it and discard the private key."""
    private = make_private_key("EdDSA")
    token = make_token(private, subject="owner", seconds=THROWAWAY_SECONDS, now=clock.wall())
    return Access(authenticator=TokenAuthenticator(key=private.public_key(), clock=clock), token=token)


def make_token(
    key: PrivateKey, *, subject: str, seconds: float, now: float, audience: str | None = None, issuer: str | None = None
) -> str:
    """Sign a token. Raises: ValueError for a subject that `TokenAuthenticator` would refuse."""
    claims: JsonObject = {"sub": _checked_subject(subject), "iat": int(now), "exp": int(now + seconds)}
    if audience is not None:
        claims["aud"] = audience
    if issuer is not None:
        claims["iss"] = issuer
    return jwt.encode(claims, key, algorithm=algorithm_of(key.public_key()))


# Checks of the token's form, before PyJWT parses it.


def _check_format(token: str, algorithm: str) -> None:
    """Refuse every token that is not in the one accepted form. Raises: ValueError, quoting nothing of the token."""
    compact = _COMPACT.fullmatch(token) if len(token) <= MAX_TOKEN_CHARACTERS else None
    if compact is None:
        raise ValueError("not a token")
    header, _, _ = (_decode_base64url(part) for part in compact.groups())
    if not _is_accepted_header(header, algorithm):
        raise ValueError("the token's header is not one that is accepted here")


def _is_accepted_header(encoded: bytes, algorithm: str) -> bool:
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


def _decode_base64url(part: str) -> bytes:
    """Raises: ValueError, also when unused bits of the last character are set: a token has one spelling."""
    try:
        data = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except binascii.Error as invalid:
        raise ValueError("not a token") from invalid
    if base64.urlsafe_b64encode(data).rstrip(b"=") != part.encode("ascii"):
        raise ValueError("not a token")
    return data


def _json_object(data: bytes) -> JsonObject:
    """Raises: ValueError, quoting nothing of the data."""
    try:
        value = parse_json(data.decode("utf-8"))
    except ValueError as invalid:
        raise ValueError("the token is not plain JSON") from invalid
    if not isinstance(value, dict):
        raise ValueError("the token is not a JSON object")  # noqa: TRY004  # bad data, not a bug
    return value


def _timestamp(claims: JsonObject, name: str) -> float:
    """Raises: ValueError."""
    value = claims[name]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"the token's {name} is not a number")  # noqa: TRY004  # bad data, not a bug
    try:
        return float(value)
    except OverflowError as large:
        raise ValueError(f"the token's {name} is out of range") from large


def _checked_subject(value: JsonValue) -> str:
    """Raises: ValueError."""
    if not isinstance(value, str) or not 0 < len(value) <= MAX_SUBJECT_CHARACTERS:
        raise ValueError(f"the token's sub is not a text of 1 to {MAX_SUBJECT_CHARACTERS} characters")
    if not value.isprintable() or value != value.strip():
        raise ValueError("the token's sub holds characters that cannot be seen")
    return value


# Keys.


def algorithm_of(key: PublicKey) -> str:
    """Return the only algorithm that the key is used with. The token's header never chooses."""
    if isinstance(key, rsa.RSAPublicKey):
        return "RS256"
    return "ES256" if isinstance(key, ec.EllipticCurvePublicKey) else "EdDSA"


def read_public_key(value: str, algorithm: str) -> PublicKey:
    """Read JWT_PUBLIC_KEY: base64 of a PEM with one SubjectPublicKeyInfo.

    Raises: ConfigurationInvalid. The message never holds key material.
    """
    pem = _decode_pem(value)
    if b"PRIVATE KEY" in pem:
        raise _unusable("it holds a PRIVATE key, which must not be on this machine; give the public half")
    if not _PEM.fullmatch(pem.strip()):
        raise _unusable("it does not decode to one PEM block named PUBLIC KEY")
    try:
        key = serialization.load_pem_public_key(pem)
    except (ValueError, TypeError, UnsupportedAlgorithm) as cause:
        raise _unusable("its PEM block cannot be read as a public key") from cause
    checked = _checked_key(key)
    if algorithm_of(checked) != algorithm:
        own = algorithm_of(checked)
        raise _unusable(
            f"the key is for {own}, and JWT_ALGORITHM is {algorithm}; set JWT_ALGORITHM={own} if you mean it"
        )
    return checked


def make_private_key(algorithm: str) -> PrivateKey:
    """Raises: ConfigurationInvalid for an algorithm that is not in `ALGORITHMS`."""
    match algorithm:
        case "RS256":
            return rsa.generate_private_key(public_exponent=MIN_RSA_EXPONENT, key_size=_GENERATED_RSA_BITS)
        case "ES256":
            return ec.generate_private_key(ec.SECP256R1())
        case "EdDSA":
            return ed25519.Ed25519PrivateKey.generate()
    raise ConfigurationInvalid(f"{algorithm[:20]!r} is not one of {', '.join(ALGORITHMS)}")


def read_private_key(pem: bytes) -> PrivateKey:
    """Raises: ConfigurationInvalid."""
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as cause:
        raise ConfigurationInvalid("the key file is not an unencrypted PEM private key") from cause
    if not isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey):
        raise ConfigurationInvalid("the key file holds a key of a kind that signs no tokens here")
    _checked_key(key.public_key())
    return key


def private_pem(key: PrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def public_pem(key: PrivateKey) -> bytes:
    return key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def _decode_pem(value: str) -> bytes:
    if "-----BEGIN" in value:
        raise _unusable("it is a PEM; base64 it once more: base64 -w0 public.pem")
    try:
        return base64.b64decode("".join(value.split()).encode("ascii"), validate=True)
    except ValueError as cause:
        raise _unusable("it is not base64; make it with: base64 -w0 public.pem") from cause


def _checked_key(key: object) -> PublicKey:
    """Raises: ConfigurationInvalid for a key that is weak, or that no accepted algorithm uses."""
    match key:
        case rsa.RSAPublicKey():
            _check_rsa(key)
            return key
        case ec.EllipticCurvePublicKey():
            if not isinstance(key.curve, ec.SECP256R1):
                raise _unusable("its curve is not P-256, the only one for ES256")
            return key
        case ed25519.Ed25519PublicKey():
            return key
    raise _unusable("it is neither an RSA, nor a P-256, nor an Ed25519 key")


def _check_rsa(key: rsa.RSAPublicKey) -> None:
    if not MIN_RSA_BITS <= key.key_size <= MAX_RSA_BITS:
        raise _unusable(f"an RSA key must have {MIN_RSA_BITS} to {MAX_RSA_BITS} bits, not {key.key_size}")
    numbers = key.public_numbers()
    if numbers.e < MIN_RSA_EXPONENT or numbers.e % 2 == 0 or numbers.n % 2 == 0:
        raise _unusable("its RSA exponent or modulus is not one that a sound key has")


def _unusable(why: str) -> ConfigurationInvalid:
    return ConfigurationInvalid(f"JWT_PUBLIC_KEY: {why}")
