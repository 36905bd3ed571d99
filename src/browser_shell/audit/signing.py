"""The log's keys: one Ed25519 key that signs checkpoints, and a key derived from it that blinds typed text."""

from __future__ import annotations

import hashlib
import hmac
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.process.atomic_file import replace_file

_RAW = serialization.Encoding.Raw, serialization.PublicFormat.Raw
_PEM = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
_READABLE_BY_OTHERS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True, slots=True)
class PublicKey:
    """Checks what the log's key signed."""

    key: Ed25519PublicKey

    @property
    def key_id(self) -> str:
        return hashlib.sha256(self.key.public_bytes(*_RAW)).hexdigest()[:16]

    def pem(self) -> bytes:
        return self.key.public_bytes(*_PEM)

    def has_signed(self, content: bytes, signature: bytes) -> bool:
        try:
            self.key.verify(signature, content)
        except InvalidSignature:
            return False
        return True

    @classmethod
    def read(cls, path: Path) -> Self:
        """Raises: ConfigurationInvalid."""
        try:
            key = serialization.load_pem_public_key(path.read_bytes())
        except OSError as cause:
            raise ConfigurationInvalid(f"public key {path}: {cause.strerror}") from cause
        except (ValueError, UnsupportedAlgorithm) as cause:
            raise ConfigurationInvalid(f"public key {path}: not a PEM public key") from cause
        if not isinstance(key, Ed25519PublicKey):
            raise ConfigurationInvalid(f"public key {path}: not an Ed25519 key")
        return cls(key)


@dataclass(frozen=True, slots=True)
class SigningKey:
    """The secret of one log. Whoever has it can write another history; see docs/reference/audit.md."""

    key: Ed25519PrivateKey

    @property
    def public(self) -> PublicKey:
        return PublicKey(self.key.public_key())

    def sign(self, content: bytes) -> bytes:
        return self.key.sign(content)

    def text_key(self) -> bytes:
        """Keyed, because a plain hash of a short password can be guessed from the log alone."""
        return hmac.digest(self.key.private_bytes_raw(), b"browser-shell audit text 1", "sha256")

    @classmethod
    def make(cls, path: Path) -> Self:
        """Raises: OSError."""
        key = Ed25519PrivateKey.generate()
        pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        replace_file(path, pem)
        return cls(key)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Raises: ConfigurationInvalid; FileNotFoundError when there is none."""
        try:
            file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            raise
        except OSError as cause:
            raise ConfigurationInvalid(f"signing key {path}: {cause.strerror}") from cause
        with os.fdopen(file, "rb") as opened:
            facts = os.fstat(file)
            if not stat.S_ISREG(facts.st_mode) or facts.st_uid != os.geteuid() or facts.st_mode & _READABLE_BY_OTHERS:
                raise ConfigurationInvalid(f"signing key {path}: must be a file of ours that nobody else can read")
            content = opened.read()
        try:
            key = serialization.load_pem_private_key(content, password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm) as cause:
            raise ConfigurationInvalid(f"signing key {path}: not a PEM private key") from cause
        if not isinstance(key, Ed25519PrivateKey):
            raise ConfigurationInvalid(f"signing key {path}: not an Ed25519 key")
        return cls(key)
