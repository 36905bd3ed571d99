"""Tokens and keys that are accepted, and every known way in which one is refused."""

from __future__ import annotations

import base64
import json
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed448, x25519
from hypothesis import given
from hypothesis import strategies as st

from browser_shell.core.calls import Principal
from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.http.tokens import (
    ALGORITHMS,
    CLOCK_SKEW_SECONDS,
    MAX_LIFETIME_SECONDS,
    MAX_SUBJECT_CHARACTERS,
    MAX_TOKEN_CHARACTERS,
    AuthFailure,
    NoAuth,
    PrivateKey,
    TokenAuthenticator,
    _check_format,
    algorithm_of,
    make_private_key,
    make_token,
    private_pem,
    public_pem,
    read_private_key,
    read_public_key,
    throwaway_access,
)
from support.fakes import FakeClock
from support.tokens import b64u, env_value, rsa_env_value, rsa_key

KEY = make_private_key("EdDSA")
NOW = FakeClock().wall()
GOOD: dict[str, Any] = {"sub": "alice", "exp": NOW + 300}
RSA = rsa_key()
RSA_MODULUS = RSA.public_key().public_numbers().n
PEM = public_pem(RSA)


def authenticator(key: PrivateKey = KEY, **more: Any) -> TokenAuthenticator:
    return TokenAuthenticator(key=key.public_key(), clock=FakeClock(), **more)


def token(claims: Any = GOOD, header: Any = None) -> str:
    """Sign any header and claims with `KEY`, valid or not."""
    header = {"alg": "EdDSA", "typ": "JWT"} if header is None else header
    parts = [part if isinstance(part, bytes) else json.dumps(part).encode() for part in (header, claims)]
    signed = ".".join(map(b64u, parts))
    return f"{signed}.{b64u(jwt.get_algorithm_by_name('EdDSA').sign(signed.encode(), KEY))}"


def accepted(text: str, **more: Any) -> bool:
    return isinstance(authenticator(**more).verify(text), Principal)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_token_is_accepted_by_the_matching_key_only(algorithm: str) -> None:
    key, other = make_private_key(algorithm), make_private_key(algorithm)
    made = make_token(key, subject="alice", seconds=60, now=NOW)
    assert authenticator(key).verify(made) == Principal(subject="alice", expires_at=NOW + 60)
    assert isinstance(authenticator(other).verify(made), AuthFailure)


@pytest.mark.promise("tokens:algorithm-fixed-by-the-key")
@pytest.mark.parametrize(
    "name", ["none", "None", "NONE", "", "HS256", "RS256", "RS512", "PS256", "ES256", "eddsa", "EdDSA ", 1, None]
)
def test_token_with_another_algorithm_than_the_key_is_refused(name: object) -> None:
    assert not accepted(token(header={"alg": name, "typ": "JWT"}))
    assert not accepted(token(header={"typ": "JWT"}))
    assert not accepted(f"{b64u(json.dumps({'alg': name}).encode())}.{b64u(json.dumps(GOOD).encode())}.")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_changed_signature_is_refused(algorithm: str) -> None:
    key = make_private_key(algorithm)
    signed, _, encoded = make_token(key, subject="alice", seconds=60, now=NOW).rpartition(".")
    signature = base64.urlsafe_b64decode(encoded + "==")
    for wrong in (
        b"\0",
        b"\0" * len(signature),
        signature[:-1],
        signature + b"\0",
        bytes([signature[0] ^ 1]) + signature[1:],
    ):
        assert isinstance(authenticator(key).verify(f"{signed}.{b64u(wrong)}"), AuthFailure)


@pytest.mark.promise("tokens:header-keys-limited")
@pytest.mark.parametrize(
    "name", ["crit", "jku", "jwk", "x5u", "x5c", "x5t", "x5t#S256", "zip", "b64", "cty", "enc", "x", "Alg"]
)
def test_header_with_an_unexpected_parameter_is_refused(name: str) -> None:
    values: list[Any] = ["x", [], {}, None, False]
    for value in values:
        assert not accepted(token(header={"alg": "EdDSA", "typ": "JWT", name: value}))


@pytest.mark.parametrize(
    ("header", "good"),
    [
        ({"alg": "EdDSA"}, True),
        ({"alg": "EdDSA", "typ": "jwt"}, True),
        ({"alg": "EdDSA", "typ": "at+jwt", "kid": "2026/key=1"}, True),
        ({"alg": "EdDSA", "typ": "JWE"}, False),
        ({"alg": "EdDSA", "typ": None}, False),
        ({"alg": "EdDSA", "kid": ""}, False),
        ({"alg": "EdDSA", "kid": "a'; drop table"}, False),
        ({"alg": "EdDSA", "kid": "a\0"}, False),
        ({"alg": "EdDSA", "kid": 1}, False),
        ({"alg": "EdDSA", "kid": "k" * 129}, False),
        (b'{"alg":"EdDSA","alg":"EdDSA"}', False),
        (b'["alg"]', False),
        (b"\xff", False),
        (b"[" * 3000, False),
    ],
)
def test_header_parameters_are_checked(header: Any, good: bool) -> None:
    assert accepted(token(header=header)) is good


@pytest.mark.promise("tokens:claims-checked")
@pytest.mark.parametrize(
    ("claims", "good"),
    [
        ({}, True),
        ({"exp": NOW + 0.5}, True),
        ({"exp": NOW}, False),
        ({"exp": NOW - 1}, False),
        ({"exp": 0}, False),
        ({"exp": -1}, False),
        ({"exp": None}, False),
        ({"exp": str(NOW + 300)}, False),
        ({"exp": True}, False),
        ({"exp": [NOW + 300]}, False),
        ({"exp": 10**400}, False),
        ({"exp": NOW + MAX_LIFETIME_SECONDS}, True),
        ({"exp": NOW + MAX_LIFETIME_SECONDS + 1}, False),
        ({"nbf": NOW + CLOCK_SKEW_SECONDS}, True),
        ({"nbf": NOW + CLOCK_SKEW_SECONDS + 1}, False),
        ({"nbf": "0"}, False),
        ({"nbf": None}, False),
        ({"iat": NOW - 10_000}, True),
        ({"iat": NOW + CLOCK_SKEW_SECONDS + 1}, False),
        ({"iat": False}, False),
        ({"sub": "b" * MAX_SUBJECT_CHARACTERS}, True),
        ({"sub": "b" * (MAX_SUBJECT_CHARACTERS + 1)}, False),
        ({"sub": "auth0|5f7c8ec7"}, True),
        ({"sub": "Ann Example"}, True),
        ({"sub": ""}, False),
        ({"sub": " "}, False),
        ({"sub": " alice"}, False),
        ({"sub": "ali\nce"}, False),
        ({"sub": "ali\0ce"}, False),
        ({"sub": "ali\u202ece"}, False),
        ({"sub": "ali\u200bce"}, False),
        ({"sub": "\ud800"}, False),
        ({"sub": 1}, False),
        ({"sub": None}, False),
        ({"sub": ["alice"]}, False),
        ({"aud": "anything", "iss": "anyone", "more": {"x": [1]}}, True),
    ],
)
def test_claims_are_checked(claims: dict[str, Any], good: bool) -> None:
    assert accepted(token({**GOOD, **claims})) is good


@pytest.mark.parametrize("missing", ["sub", "exp"])
def test_token_without_a_required_claim_is_refused(missing: str) -> None:
    assert not accepted(token({name: value for name, value in GOOD.items() if name != missing}))


@pytest.mark.parametrize(
    "payload",
    [
        b'{"sub":"alice","exp":NaN}',
        b'{"sub":"alice","exp":Infinity}',
        b'{"sub":"alice","exp":1e999}',
        b'{"sub":"alice","exp":%d,"exp":%d}' % (NOW + 300, NOW + 300),
        b'{"sub":"alice","sub":"bob","exp":%d}' % (NOW + 300),
        b'["alice"]',
        b'"alice"',
        b"",
        b"null",
        b"\xff",
        b'{"sub":"alice","exp":%d}x' % (NOW + 300),
    ],
)
def test_ambiguous_json_payload_is_refused(payload: bytes) -> None:
    assert not accepted(token(payload))


@pytest.mark.parametrize(
    ("audience", "good"),
    [
        ("box", True),
        (["other", "box"], True),
        ("bo", False),
        ("box2", False),
        ("BOX", False),
        ([], False),
        (["bo"], False),
        ([["box"]], False),
        ({"box": 1}, False),
        (None, False),
    ],
)
def test_audience_must_match_exactly(audience: object, good: bool) -> None:
    assert accepted(token({**GOOD, "aud": audience}), audience="box") is good


@pytest.mark.parametrize(
    ("issuer", "good"),
    [("https://i", True), ("https://", False), ("https://i/", False), (["https://i"], False), (None, False)],
)
def test_issuer_must_match_exactly(issuer: object, good: bool) -> None:
    assert accepted(token({**GOOD, "iss": issuer}), issuer="https://i") is good


def test_missing_audience_or_issuer_is_refused_when_one_is_configured() -> None:
    assert not accepted(token(), audience="box")
    assert not accepted(token(), issuer="https://i")


@pytest.mark.promise("tokens:one-spelling")
def test_every_other_spelling_of_a_token_is_refused() -> None:
    good = token()
    h, p, s = good.split(".")
    assert accepted(good)
    last = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    twisted = s[:-1] + last[last.index(s[-1]) ^ 1]
    for other in (
        f"{good}=", f"{good}==", f" {good}", f"{good} ", f"{good}\n", f"{h}.{p}.{twisted}", f"{h}.{p}", f"{h}.{p}.",
        f".{p}.{s}", f"{good}.", f"{h}.{p}.{s}.{s}", f"{h}..{s}", good.replace("_", "/").replace("-", "+") + "A",
        f"{h}.{p}.{s[:-1]}", f"{h}.{p}.{s}A", f"{h}.{p}.{b64u(bytes(64))}", f"{p}.{h}.{s}", good.replace(".", "\0."),
    ):  # fmt: skip
        assert not accepted(other), other


def test_token_above_the_size_limit_is_refused() -> None:
    def padded(size: int) -> str:
        return token({**GOOD, "pad": "x" * size})

    room = next(size for size in range(5000, 7000) if len(padded(size)) > MAX_TOKEN_CHARACTERS)
    assert accepted(padded(room - 3))
    assert not accepted(padded(room))


@given(st.text(max_size=60))
def test_random_text_is_refused(noise: str) -> None:
    assert not accepted(noise)
    assert isinstance(authenticator().identify(noise), AuthFailure)
    assert isinstance(authenticator().identify(f"Bearer {noise}"), AuthFailure)


@pytest.mark.promise("tokens:one-way-to-send-one")
@pytest.mark.parametrize(
    ("form", "good"),
    [
        ("Bearer {}", True),
        ("bearer {}", True),
        ("BEARER {}", True),
        ("Bearer  {}", False),
        ("Bearer\t{}", False),
        ("Bearer {} ", False),
        ("Bearer {},Bearer {}", False),
        ("Bearer {} {}", False),
        ('Bearer "{}"', False),
        ("Bearer={}", False),
        ("Bearer:{}", False),
        ("Bearer", False),
        ("Bearer ", False),
        ("{}", False),
        ("Basic {}", False),
        ("Token {}", False),
        ("JWT {}", False),
        ("", False),
    ],
)
def test_authorization_header_has_one_accepted_form(form: str, good: bool) -> None:
    assert isinstance(authenticator().identify(form.format(token(), token())), Principal) is good


def test_missing_header_is_reported_as_no_credential() -> None:
    failure = authenticator().identify(None)
    assert isinstance(failure, AuthFailure)
    assert not failure.presented


def test_failure_reasons_quote_nothing_and_fit_into_a_header() -> None:
    for claims in ({"sub": 'x"\n', "exp": 1}, {"exp": 'x"\n'}, b'{"a\\"\\n":1,"a\\"\\n":2}', b"\xff"):
        wrong = authenticator().verify(token(claims))
        assert isinstance(wrong, AuthFailure)
        assert wrong.reason.isascii()
        assert wrong.reason.isprintable()
        assert '"' not in wrong.reason


def test_throwaway_key_accepts_its_own_token_only() -> None:
    first, second = throwaway_access(clock=FakeClock()), throwaway_access(clock=FakeClock())
    assert isinstance(first.authenticator.identify(f"Bearer {first.token}"), Principal)
    assert isinstance(first.authenticator.identify(f"Bearer {second.token}"), AuthFailure)


def test_token_is_refused_once_it_expires() -> None:
    clock = FakeClock()
    verifier = TokenAuthenticator(key=KEY.public_key(), clock=clock)
    made = make_token(KEY, subject="alice", seconds=60, now=clock.wall())
    assert isinstance(verifier.verify(made), Principal)
    clock.advance(60)
    assert isinstance(verifier.verify(made), AuthFailure)


def test_no_auth_maps_every_request_to_the_local_user() -> None:
    assert NoAuth().identify(None) == NoAuth().identify("Bearer x") == Principal(subject="local")


def base64_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


def refusal_message(value: str, algorithm: str = "RS256") -> str:
    with pytest.raises(ConfigurationInvalid, match=r"^JWT_PUBLIC_KEY: ") as caught:
        read_public_key(value, algorithm)
    assert value.strip() == "" or value.strip()[:60] not in caught.value.public_message
    return caught.value.public_message


def test_white_space_in_the_public_key_is_ignored() -> None:
    wrapped = base64.encodebytes(PEM).decode()
    assert algorithm_of(read_public_key(f"  {wrapped}\n\n", "RS256")) == "RS256"
    assert algorithm_of(read_public_key(base64_of(PEM.replace(b"\n", b"\r\n")), "RS256")) == "RS256"


@pytest.mark.promise("tokens:unsound-key-no-start")
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("not a key", "base64"),
        ("????", "base64"),
        ("\u00e9", "base64"),
        (PEM.decode(), "base64 it once more"),
        (base64_of(b"not a key"), "PUBLIC KEY"),
        (base64_of(b""), "PUBLIC KEY"),
        (base64_of(PEM * 2), "one PEM block"),
        (base64_of(PEM + b"x"), "one PEM block"),
        (base64_of(b"x" + PEM), "one PEM block"),
        (base64_of(PEM.replace(b"PUBLIC KEY", b"RSA PUBLIC KEY")), "PUBLIC KEY"),
        (base64_of(PEM.replace(b"PUBLIC KEY", b"CERTIFICATE")), "PUBLIC KEY"),
        (base64_of(PEM[:60] + PEM[120:]), "cannot be read"),
        (base64_of(private_pem(RSA)), "PRIVATE"),
        (base64_of(PEM + private_pem(RSA)), "PRIVATE"),
        (base64_of(base64.b64decode(b"".join(PEM.splitlines()[1:-1]))), "PEM"),
        (env_value(rsa_key(1024)), "2048"),
        (rsa_env_value(RSA_MODULUS >> 1 | 1 << 2046 | 1, 65537), "2048"),
        (rsa_env_value(RSA_MODULUS, 1), ""),
        (rsa_env_value(RSA_MODULUS, 3), ""),
        (rsa_env_value(RSA_MODULUS, 65536), ""),
        (rsa_env_value(RSA_MODULUS - 1, 65537), ""),
        (rsa_env_value((1 << 16383) + 1, 65537), ""),
        (env_value(make_private_key("ES256")), "JWT_ALGORITHM=ES256"),
        (env_value(make_private_key("EdDSA")), "JWT_ALGORITHM=EdDSA"),
    ],
)  # fmt: skip
def test_weak_or_malformed_public_key_is_refused(value: str, expected: str) -> None:
    assert expected in refusal_message(value)


@pytest.mark.parametrize(
    "key",
    [
        ec.generate_private_key(ec.SECP256K1()),
        ec.generate_private_key(ec.SECP384R1()),
        ed448.Ed448PrivateKey.generate(),
        x25519.X25519PrivateKey.generate(),
        dsa.generate_private_key(2048),
        RSA,
    ],
    ids=lambda key: type(key).__name__,
)
def test_public_key_of_another_type_is_refused(key: Any) -> None:
    refusal_message(env_value(key), "ES256")
    refusal_message(env_value(key), "EdDSA")


def test_private_key_survives_a_round_trip() -> None:
    for algorithm in ("RS256", "ES256", "EdDSA"):
        assert public_pem(read_private_key(private_pem(key := make_private_key(algorithm)))) == public_pem(key)


@pytest.mark.parametrize("content", [b"", b"x", PEM, private_pem(rsa_key(1024))])
def test_malformed_or_weak_private_key_is_refused(content: bytes) -> None:
    with pytest.raises(ConfigurationInvalid):
        read_private_key(content)


def test_private_key_that_cannot_sign_is_refused() -> None:
    pem = x25519.X25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with pytest.raises(ConfigurationInvalid):
        read_private_key(pem)


def test_unknown_algorithm_makes_no_key() -> None:
    with pytest.raises(ConfigurationInvalid):
        make_private_key("HS256")


@pytest.mark.promise("tokens:algorithm-fixed-by-the-key")
def test_algorithm_and_spelling_are_checked_before_pyjwt() -> None:
    """PyJWT refuses both as well. Our own checks must hold for every version of it."""
    good = token()
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    respelled = good[:-1] + alphabet[alphabet.index(good[-1]) ^ 1]
    _check_format(good, "EdDSA")
    for invalid, algorithm in ((good, "RS256"), (respelled, "EdDSA")):
        with pytest.raises(ValueError, match="token"):
            _check_format(invalid, algorithm)
