"""Keys that tokens are verified and signed with."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from browser_shell.core.errors import ConfigurationInvalid

ALGORITHMS = ("RS256", "ES256", "EdDSA")
LEAST_RSA_BITS = 2048
MOST_RSA_BITS = 8192
"""A larger one makes every refused token expensive."""
LEAST_RSA_EXPONENT = 65537
_COORDINATE_BYTES = 32
_PEM = re.compile(rb"-----BEGIN PUBLIC KEY-----\r?\n[A-Za-z0-9+/=\r\n]+-----END PUBLIC KEY-----", re.ASCII)

PrivateKey: TypeAlias = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
PublicKey: TypeAlias = rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey


@dataclass(frozen=True, slots=True)
class VerifyKey:
    """A public key and the one algorithm that it is good for. What a token says about itself never chooses."""

    algorithm: str
    signs: Callable[[bytes, bytes], bool]
    """Whether the first bytes are a signature of the second."""


def read_public_key(value: str, algorithm: str) -> VerifyKey:
    """The key of JWT_PUBLIC_KEY: base64 of a PEM with one SubjectPublicKeyInfo.

    Raises: ConfigurationInvalid. The message never holds key material.
    """
    pem = _pem(value)
    if b"PRIVATE KEY" in pem:
        raise _unusable("it holds a PRIVATE key, which must not be on this machine; give the public half")
    if not _PEM.fullmatch(pem.strip()):
        raise _unusable("it does not decode to one PEM block named PUBLIC KEY")
    try:
        key = serialization.load_pem_public_key(pem)
    except (ValueError, TypeError, UnsupportedAlgorithm) as cause:
        raise _unusable("its PEM block cannot be read as a public key") from cause
    return verify_key(_checked(key, algorithm))


def verify_key(key: PublicKey) -> VerifyKey:
    if isinstance(key, rsa.RSAPublicKey):
        return VerifyKey("RS256", lambda signature, data: _rsa_signs(key, signature, data))
    if isinstance(key, ec.EllipticCurvePublicKey):
        return VerifyKey("ES256", lambda signature, data: _ec_signs(key, signature, data))
    return VerifyKey("EdDSA", lambda signature, data: _ed_signs(key, signature, data))


def make_private_key(algorithm: str) -> PrivateKey:
    match algorithm:
        case "RS256":
            return rsa.generate_private_key(public_exponent=65537, key_size=3072)
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
    public = key.public_key()
    _checked(public, verify_key(public).algorithm)
    return key


def private_pem(key: PrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def public_pem(key: PrivateKey) -> bytes:
    return key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def sign(key: PrivateKey, data: bytes) -> bytes:
    """In the form that JWS wants."""
    if isinstance(key, rsa.RSAPrivateKey):
        return key.sign(data, padding.PKCS1v15(), hashes.SHA256())
    if isinstance(key, ec.EllipticCurvePrivateKey):
        r, s = decode_dss_signature(key.sign(data, ec.ECDSA(hashes.SHA256())))
        return r.to_bytes(_COORDINATE_BYTES, "big") + s.to_bytes(_COORDINATE_BYTES, "big")
    return key.sign(data)


def _pem(value: str) -> bytes:
    packed = "".join(value.split())
    if "-----BEGIN" in value:
        raise _unusable("it is a PEM; base64 it once more: base64 -w0 public.pem")
    try:
        return base64.b64decode(packed.encode("ascii"), validate=True)
    except (ValueError, binascii.Error) as cause:
        raise _unusable("it is not base64; make it with: base64 -w0 public.pem") from cause


def _checked(key: object, algorithm: str) -> PublicKey:
    found: PublicKey
    if isinstance(key, rsa.RSAPublicKey):
        found, fits = key, "RS256"
        _check_rsa(key)
    elif isinstance(key, ec.EllipticCurvePublicKey):
        found, fits = key, "ES256"
        if not isinstance(key.curve, ec.SECP256R1):
            raise _unusable("its curve is not P-256, the only one for ES256")
    elif isinstance(key, ed25519.Ed25519PublicKey):
        found, fits = key, "EdDSA"
    else:
        raise _unusable("it is neither an RSA, nor a P-256, nor an Ed25519 key")
    if fits != algorithm:
        raise _unusable(
            f"the key is for {fits}, and JWT_ALGORITHM is {algorithm}; set JWT_ALGORITHM={fits} if you mean it"
        )
    return found


def _check_rsa(key: rsa.RSAPublicKey) -> None:
    if not LEAST_RSA_BITS <= key.key_size <= MOST_RSA_BITS:
        raise _unusable(f"an RSA key must have {LEAST_RSA_BITS} to {MOST_RSA_BITS} bits, not {key.key_size}")
    numbers = key.public_numbers()
    if numbers.e < LEAST_RSA_EXPONENT or numbers.e % 2 == 0 or numbers.n % 2 == 0:
        raise _unusable("its RSA exponent or modulus is not one that a sound key has")


def _unusable(why: str) -> ConfigurationInvalid:
    return ConfigurationInvalid(f"JWT_PUBLIC_KEY: {why}")


def _rsa_signs(key: rsa.RSAPublicKey, signature: bytes, data: bytes) -> bool:
    try:
        key.verify(signature, data, padding.PKCS1v15(), hashes.SHA256())
    except InvalidSignature:
        return False
    return True


def _ec_signs(key: ec.EllipticCurvePublicKey, signature: bytes, data: bytes) -> bool:
    if len(signature) != 2 * _COORDINATE_BYTES:
        return False
    r, s = (int.from_bytes(part, "big") for part in (signature[:_COORDINATE_BYTES], signature[_COORDINATE_BYTES:]))
    try:
        key.verify(encode_dss_signature(r, s), data, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        return False
    return True


def _ed_signs(key: ed25519.Ed25519PublicKey, signature: bytes, data: bytes) -> bool:
    try:
        key.verify(signature, data)
    except InvalidSignature:
        return False
    return True
