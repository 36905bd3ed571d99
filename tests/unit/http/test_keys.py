"""Which key material a server starts with."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed448, x25519

from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.http.keys import make_private_key, private_pem, public_pem, read_private_key, read_public_key, sign
from support.tokens import env_value, rsa_env_value, rsa_key

RSA = rsa_key()
N = RSA.public_key().public_numbers().n
PEM = public_pem(RSA)


def packed(data: bytes) -> str:
    return base64.b64encode(data).decode()


def refusal(value: str, algorithm: str = "RS256") -> str:
    with pytest.raises(ConfigurationInvalid, match=r"^JWT_PUBLIC_KEY: ") as caught:
        read_public_key(value, algorithm)
    assert value.strip() == "" or value.strip()[:60] not in caught.value.public_message
    return caught.value.public_message


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "EdDSA"])
def test_a_key_verifies_what_its_other_half_signed(algorithm: str) -> None:
    private = make_private_key(algorithm)
    key = read_public_key(env_value(private), algorithm)
    signature = sign(private, b"data")
    assert key.algorithm == algorithm
    assert key.signs(signature, b"data")
    for wrong in (
        b"",
        b"\0" * len(signature),
        signature[:-1],
        signature + b"\0",
        bytes([signature[0] ^ 1]) + signature[1:],
    ):
        assert not key.signs(wrong, b"data")
    assert not key.signs(signature, b"date")


def test_white_space_around_and_inside_does_not_matter() -> None:
    wrapped = base64.encodebytes(PEM).decode()
    assert read_public_key(f"  {wrapped}\n\n", "RS256").algorithm == "RS256"
    assert read_public_key(packed(PEM.replace(b"\n", b"\r\n")), "RS256").algorithm == "RS256"


@pytest.mark.promise("tokens:unsound-key-no-start")
@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("not a key", "base64"),
        ("????", "base64"),
        ("\u00e9", "base64"),
        (PEM.decode(), "base64 it once more"),
        (packed(b"not a key"), "PUBLIC KEY"),
        (packed(b""), "PUBLIC KEY"),
        (packed(PEM * 2), "one PEM block"),
        (packed(PEM + b"x"), "one PEM block"),
        (packed(b"x" + PEM), "one PEM block"),
        (packed(PEM.replace(b"PUBLIC KEY", b"RSA PUBLIC KEY")), "PUBLIC KEY"),
        (packed(PEM.replace(b"PUBLIC KEY", b"CERTIFICATE")), "PUBLIC KEY"),
        (packed(PEM[:60] + PEM[120:]), "cannot be read"),
        (packed(private_pem(RSA)), "PRIVATE"),
        (packed(PEM + private_pem(RSA)), "PRIVATE"),
        (packed(base64.b64decode(b"".join(PEM.splitlines()[1:-1]))), "PEM"),
        (env_value(rsa_key(1024)), "2048"),
        (rsa_env_value(N >> 1 | 1 << 2046 | 1, 65537), "2048"),
        (rsa_env_value(N, 1), ""),
        (rsa_env_value(N, 3), ""),
        (rsa_env_value(N, 65536), ""),
        (rsa_env_value(N - 1, 65537), ""),
        (rsa_env_value((1 << 16383) + 1, 65537), ""),
        (env_value(make_private_key("ES256")), "JWT_ALGORITHM=ES256"),
        (env_value(make_private_key("EdDSA")), "JWT_ALGORITHM=EdDSA"),
    ],
)  # fmt: skip
def test_unsound_key_material_is_refused(value: str, says: str) -> None:
    assert says in refusal(value)


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
def test_other_kinds_of_keys_are_refused(key: Any) -> None:
    refusal(env_value(key), "ES256")
    refusal(env_value(key), "EdDSA")


def test_a_private_key_is_read_back() -> None:
    for algorithm in ("RS256", "ES256", "EdDSA"):
        assert public_pem(read_private_key(private_pem(key := make_private_key(algorithm)))) == public_pem(key)


@pytest.mark.parametrize("content", [b"", b"x", PEM, private_pem(rsa_key(1024))])
def test_a_file_that_is_no_sound_private_key_is_refused(content: bytes) -> None:
    with pytest.raises(ConfigurationInvalid):
        read_private_key(content)


def test_a_private_key_that_signs_no_tokens_is_refused() -> None:
    pem = x25519.X25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with pytest.raises(ConfigurationInvalid):
        read_private_key(pem)


def test_an_unknown_algorithm_makes_no_key() -> None:
    with pytest.raises(ConfigurationInvalid):
        make_private_key("HS256")
