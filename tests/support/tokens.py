"""Test keys, and tokens with every defect of the attack corpus."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import time
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_PEM, _SPKI = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
_HASHES: dict[str, Any] = {"256": hashes.SHA256, "384": hashes.SHA384, "512": hashes.SHA512}
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
STANDARD_CLAIMS = {"sub": "alice", "iat": "now", "nbf": "now-5", "exp": "now+300"}


def rsa_key(bits: int = 2048) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, bits)


def b64u(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def env_value(key: Any) -> str:
    """Return JWT_PUBLIC_KEY for a private key."""
    return base64.b64encode(key.public_key().public_bytes(_PEM, _SPKI)).decode()


def rsa_env_value(modulus: int, exponent: int) -> str:
    """Return JWT_PUBLIC_KEY for RSA numbers that no library accepts."""
    numbers = _der(0x30, _integer(modulus) + _integer(exponent))
    algorithm = bytes.fromhex("300d06092a864886f70d0101010500")
    body = _der(0x30, algorithm + _der(0x03, b"\0" + numbers))
    lines = base64.encodebytes(body).decode()
    return base64.b64encode(f"-----BEGIN PUBLIC KEY-----\n{lines}-----END PUBLIC KEY-----\n".encode()).decode()


def _integer(value: int) -> bytes:
    return _der(0x02, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def _der(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < 128:
        return bytes([tag, size]) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + content


@dataclass
class Keys:
    """The keys of one test run."""

    good: Any = field(default_factory=rsa_key)
    other: Any = field(default_factory=rsa_key)
    ec_p256: Any = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    ec_secp256k1: Any = field(default_factory=lambda: ec.generate_private_key(ec.SECP256K1()))
    ec_p384: Any = field(default_factory=lambda: ec.generate_private_key(ec.SECP384R1()))
    ec_p521: Any = field(default_factory=lambda: ec.generate_private_key(ec.SECP521R1()))
    ed25519: Any = field(default_factory=ed25519.Ed25519PrivateKey.generate)

    def hmac_key(self, name: str) -> bytes:
        public = self.good.public_key()
        pem = public.public_bytes(_PEM, _SPKI)
        keys: dict[str, bytes] = {
            "public_pem": pem,
            "public_pem_stripped": pem.rstrip(b"\n"),
            "public_pem_crlf": pem.replace(b"\n", b"\r\n"),
            "public_der": public.public_bytes(serialization.Encoding.DER, _SPKI),
            "public_pkcs1_pem": public.public_bytes(_PEM, serialization.PublicFormat.PKCS1),
            "env_value_base64": env_value(self.good).encode(),
            "modulus": public.public_numbers().n.to_bytes(256, "big"),
            "empty": b"",
            "word_secret": b"secret",
        }
        return keys[name]

    def token(self, subject: str = "alice") -> str:
        claims = {"sub": subject, "iat": "now", "nbf": "now-5", "exp": "now+300"}
        return self.build({"alg": "RS256", "key": "good", "header": {"typ": "JWT"}, "claims": claims})

    def sign(self, algorithm: str, key: str | None, data: bytes) -> bytes:
        if key is None:
            return b""
        if key.startswith("hmac:"):
            digest = {"HS384": hashlib.sha384, "HS512": hashlib.sha512}.get(algorithm, hashlib.sha256)
            return hmac.new(self.hmac_key(key[5:]), data, digest).digest()
        private, algorithm_hash = getattr(self, key), _HASHES.get(algorithm[2:5], hashes.SHA256)()
        if algorithm.startswith("PS"):
            pss = padding.PSS(padding.MGF1(algorithm_hash), algorithm_hash.digest_size)
            return bytes(private.sign(data, pss, algorithm_hash))
        if algorithm.startswith("ES"):
            size = {"ES384": 48, "ES512": 66}.get(algorithm, 32)
            r, s = decode_dss_signature(private.sign(data, ec.ECDSA(algorithm_hash)))
            return r.to_bytes(size, "big") + s.to_bytes(size, "big")
        if algorithm == "EdDSA":
            return bytes(private.sign(data))
        return bytes(private.sign(data, padding.PKCS1v15(), algorithm_hash))

    def build(self, spec: dict[str, Any], *, canary: int = 0) -> str:
        """Return the compact token of a corpus specification."""
        now, mutation = int(time.time()), spec.get("mutate") or ""
        header = self._header(spec, mutation, canary)
        claims = {name: _value(value, now) for name, value in spec["claims"].items()}
        payload = _mutated_payload(json.dumps(claims).encode(), mutation, now)
        h, p = b64u(json.dumps(header).encode()), b64u(payload)
        if mutation == "unencoded_payload":
            signature = self.sign(spec["alg"], spec["key"], h.encode() + b"." + payload)
            return f"{h}.{payload.decode()}.{b64u(signature)}"
        if mutation == "nested":
            p = b64u(self.build({**spec, "mutate": None, "header": {}}, canary=canary).encode())
        if mutation == "jwe":
            return self._encrypted(payload)
        swapped = mutation == "header_alg_swapped_after_signing"
        algorithm = "RS256" if swapped or mutation in ("delete_header_alg", "header_as_given") else spec["alg"]
        signed = b64u(json.dumps({**header, "alg": "RS256"}).encode()) if swapped else h
        signature = self.sign(algorithm, spec["key"], f"{signed}.{p}".encode())
        return _mutated_token(h, p, signature, mutation, header, claims)

    def _header(self, spec: dict[str, Any], mutation: str, canary: int) -> dict[str, Any]:
        header: dict[str, Any] = {} if mutation in ("delete_header_alg", "header_as_given") else {"alg": spec["alg"]}
        header.update(spec.get("header") or {})
        for name, value in header.items():
            if isinstance(value, str):
                header[name] = value.replace("{canary}", str(canary))
            if name == "jwk":
                n = self.other.public_key().public_numbers().n
                header[name] = {"kty": "RSA", "n": b64u(n.to_bytes(256, "big")), "e": "AQAB"}
            if name == "x5c":
                header[name] = [base64.b64encode(b"not a certificate").decode()]
        return header

    def _encrypted(self, payload: bytes) -> str:
        header = b64u(json.dumps({"alg": "RSA-OAEP", "enc": "A256GCM"}).encode())
        oaep = padding.OAEP(padding.MGF1(hashes.SHA256()), hashes.SHA256(), None)
        key, text = bytes(32), AESGCM(bytes(32)).encrypt(bytes(12), payload, header.encode())
        wrapped = self.good.public_key().encrypt(key, oaep)
        return ".".join([header, b64u(wrapped), b64u(bytes(12)), b64u(text[:-16]), b64u(text[-16:])])


def _value(value: Any, now: int) -> Any:
    if not isinstance(value, str):
        return value
    if found := re.fullmatch(r"now([+-]\d+(?:\.\d+)?)?", value):
        shift = found[1] or "0"
        return now + (float(shift) if "." in shift else int(shift))
    if found := re.fullmatch(r"'(.*)'", value):
        return found[1]
    return {"<1 MB string>": "p" * 1_000_000, "<10 KB>": "s" * 10_000}.get(value, value)


def _mutated_payload(payload: bytes, mutation: str, now: int) -> bytes:
    if mutation in ("payload_exp_NaN", "payload_exp_1e999"):
        return re.sub(rb'"exp": \d+', f'"exp": {mutation.rpartition("_")[2]}'.encode(), payload)
    if mutation == "payload_duplicate_exp":
        later = b'"exp": %d' % (now + 300)
        return (payload[:-1] + b", " + later + b"}").replace(later, b'"exp": %d' % (now - 300), 1)
    for prefix in ("payload:", "payload_raw:"):
        if mutation.startswith(prefix):
            return mutation.removeprefix(prefix).encode()
    return payload


def _mutated_token(
    h: str, p: str, signature: bytes, mutation: str, header: dict[str, Any], claims: dict[str, Any]
) -> str:
    signature = {
        "empty_signature": b"",
        "truncate_signature": signature[:-1],
        "flip_signature_bit": bytes([signature[0] ^ 1]) + signature[1:] if signature else b"",
        "es256_zero_signature": bytes(64),
    }.get(mutation, signature)
    if mutation.startswith("swap_sub_to:"):
        p = b64u(json.dumps({**claims, "sub": mutation[12:]}).encode())
    if mutation == "add_header_after_signing":
        h = b64u(json.dumps({**header, "x": 1}).encode())
    token = f"{h}.{p}.{b64u(signature)}"
    if mutation.startswith("append:"):
        return token + mutation[7:]
    rewrites = {
        "two_parts": lambda: f"{h}.{p}",
        "noncanonical_base64": lambda: token[:-1] + _ALPHABET[_ALPHABET.index(token[-1]) ^ 1],
        "std_base64": lambda: ".".join(map(_standard_base64, token.split("."))),
        "insert_newline": lambda: f"{token[:20]}\n{token[20:]}",
        "json_serialisation": lambda: json.dumps({"payload": p, "protected": h, "signature": b64u(signature)}),
    }
    return rewrites[mutation]() if mutation in rewrites else token


def _standard_base64(part: str) -> str:
    return base64.b64encode(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))).decode()
