"""Which tokens are worth something, and what."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browser_shell.core.calls import Principal
from browser_shell.http.keys import PrivateKey, make_private_key, sign, verify_key
from browser_shell.http.tokens import (
    CLOCK_SKEW_SECONDS,
    LONGEST_LIFETIME_SECONDS,
    MAX_SUBJECT_CHARACTERS,
    MAX_TOKEN_CHARACTERS,
    NoAuth,
    TokenHolders,
    Unknown,
    make_token,
    throwaway_access,
)
from support.fakes import FakeClock
from support.tokens import b64u

KEY = make_private_key("EdDSA")
NOW = FakeClock().wall()
GOOD: dict[str, Any] = {"sub": "alice", "exp": NOW + 300}


def holders(key: PrivateKey = KEY, **more: Any) -> TokenHolders:
    return TokenHolders(key=verify_key(key.public_key()), clock=FakeClock(), **more)


def token(claims: Any = GOOD, header: Any = None, key: PrivateKey = KEY) -> str:
    """Properly signed, whatever it says."""
    header = {"alg": verify_key(key.public_key()).algorithm, "typ": "JWT"} if header is None else header
    parts = [part if isinstance(part, bytes) else json.dumps(part).encode() for part in (header, claims)]
    signed = ".".join(map(b64u, parts))
    return f"{signed}.{b64u(sign(key, signed.encode()))}"


def accepted(text: str, **more: Any) -> bool:
    return isinstance(holders(**more).verify(text), Principal)


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "EdDSA"])
def test_a_token_of_each_algorithm_is_good_for_its_own_key_only(algorithm: str) -> None:
    key, other = make_private_key(algorithm), make_private_key(algorithm)
    made = make_token(key, subject="alice", seconds=60, now=NOW)
    assert holders(key).verify(made) == Principal(subject="alice", expires_at=NOW + 60)
    assert isinstance(holders(other).verify(made), Unknown)


@pytest.mark.promise("tokens:algorithm-fixed-by-the-key")
@pytest.mark.parametrize(
    "name", ["none", "None", "NONE", "", "HS256", "RS256", "RS512", "PS256", "ES256", "eddsa", "EdDSA ", 1, None]
)
def test_the_algorithm_is_the_one_of_the_key(name: object) -> None:
    assert not accepted(token(header={"alg": name, "typ": "JWT"}))
    assert not accepted(token(header={"typ": "JWT"}))
    assert not accepted(f"{b64u(json.dumps({'alg': name}).encode())}.{b64u(json.dumps(GOOD).encode())}.")


@pytest.mark.promise("tokens:header-keys-limited")
@pytest.mark.parametrize(
    "name", ["crit", "jku", "jwk", "x5u", "x5c", "x5t", "x5t#S256", "zip", "b64", "cty", "enc", "x", "Alg"]
)
def test_a_header_that_wants_more_is_refused(name: str) -> None:
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
def test_headers(header: Any, good: bool) -> None:
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
        ({"exp": NOW + LONGEST_LIFETIME_SECONDS}, True),
        ({"exp": NOW + LONGEST_LIFETIME_SECONDS + 1}, False),
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
        ({"sub": "\ud800"}, False),
        ({"sub": 1}, False),
        ({"sub": None}, False),
        ({"sub": ["alice"]}, False),
        ({"aud": "anything", "iss": "anyone", "more": {"x": [1]}}, True),
    ],
)
def test_claims(claims: dict[str, Any], good: bool) -> None:
    assert accepted(token({**GOOD, **claims})) is good


@pytest.mark.parametrize("missing", ["sub", "exp"])
def test_claims_that_must_be_there(missing: str) -> None:
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
def test_a_payload_that_two_readers_could_read_differently_is_refused(payload: bytes) -> None:
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
def test_the_audience_is_compared_whole(audience: object, good: bool) -> None:
    assert accepted(token({**GOOD, "aud": audience}), audience="box") is good


@pytest.mark.parametrize(
    ("issuer", "good"),
    [("https://i", True), ("https://", False), ("https://i/", False), (["https://i"], False), (None, False)],
)
def test_the_issuer_is_compared_whole(issuer: object, good: bool) -> None:
    assert accepted(token({**GOOD, "iss": issuer}), issuer="https://i") is good


def test_what_is_asked_for_must_be_there() -> None:
    assert not accepted(token(), audience="box")
    assert not accepted(token(), issuer="https://i")


@pytest.mark.promise("tokens:one-spelling")
def test_one_token_has_one_spelling() -> None:
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


def test_a_token_has_a_largest_size() -> None:
    def padded(size: int) -> str:
        return token({**GOOD, "pad": "x" * size})

    room = next(size for size in range(5000, 7000) if len(padded(size)) > MAX_TOKEN_CHARACTERS)
    assert accepted(padded(room - 3))
    assert not accepted(padded(room))


@given(st.text(max_size=60))
def test_noise_is_no_token(noise: str) -> None:
    assert not accepted(noise)
    assert isinstance(holders().identify(noise), Unknown)
    assert isinstance(holders().identify(f"Bearer {noise}"), Unknown)


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
def test_the_header_has_one_form(form: str, good: bool) -> None:
    assert isinstance(holders().identify(form.format(token(), token())), Principal) is good


def test_no_header_is_not_a_wrong_one() -> None:
    nobody = holders().identify(None)
    assert isinstance(nobody, Unknown)
    assert not nobody.presented


def test_reasons_repeat_nothing_and_fit_into_a_header() -> None:
    for claims in ({"sub": 'x"\n', "exp": 1}, {"exp": 'x"\n'}, b'{"a\\"\\n":1,"a\\"\\n":2}', b"\xff"):
        wrong = holders().verify(token(claims))
        assert isinstance(wrong, Unknown)
        assert wrong.reason.isascii()
        assert wrong.reason.isprintable()
        assert '"' not in wrong.reason


def test_a_throw_away_key_is_good_for_its_token_only() -> None:
    first, second = throwaway_access(clock=FakeClock()), throwaway_access(clock=FakeClock())
    assert isinstance(first.callers.identify(f"Bearer {first.token}"), Principal)
    assert isinstance(first.callers.identify(f"Bearer {second.token}"), Unknown)


def test_a_token_stops_being_good_when_it_expires() -> None:
    clock = FakeClock()
    verifier = TokenHolders(key=verify_key(KEY.public_key()), clock=clock)
    made = make_token(KEY, subject="alice", seconds=60, now=clock.wall())
    assert isinstance(verifier.verify(made), Principal)
    clock.advance(60)
    assert isinstance(verifier.verify(made), Unknown)


def test_without_tokens_everyone_is_the_same() -> None:
    assert NoAuth().identify(None) == NoAuth().identify("Bearer x") == Principal(subject="local")
