"""Keys of a log: an Ed25519 key that signs checkpoints, and a key derived from it for the HMAC of typed text."""

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

from browser_shell.audit.chain import Checkpoint, read_checkpoint, split_signature
from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.process.files import replace_file

_RAW = serialization.Encoding.Raw, serialization.PublicFormat.Raw
_PEM = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
_OTHERS_ACCESS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True, slots=True)
class PublicKey:
    """The key that verifies checkpoints."""

    key: Ed25519PublicKey

    @property
    def key_id(self) -> str:
        return hashlib.sha256(self.key.public_bytes(*_RAW)).hexdigest()[:16]

    def pem(self) -> bytes:
        return self.key.public_bytes(*_PEM)

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


def signed_checkpoint(line: bytes, key: PublicKey) -> Checkpoint | None:
    """Parse a checkpoint; None unless `key` signed it."""
    parts, checkpoint = split_signature(line), read_checkpoint(line)
    if parts is None or checkpoint is None or checkpoint.key != key.key_id:
        return None
    content, signature = parts
    try:
        key.key.verify(signature, content)
    except InvalidSignature:
        return None
    return checkpoint


@dataclass(frozen=True, slots=True)
class SigningKey:
    """The private key of one log. Its owner can forge the whole log; see docs/reference/audit.md."""

    key: Ed25519PrivateKey

    @property
    def public(self) -> PublicKey:
        return PublicKey(self.key.public_key())

    def sign(self, content: bytes) -> bytes:
        return self.key.sign(content)

    def text_key(self) -> bytes:
        """Return the HMAC key for typed text. An unkeyed hash of a short password could be reversed by guessing."""
        return hmac.digest(self.key.private_bytes_raw(), b"browser-shell audit text 1", "sha256")

    @classmethod
    def generate(cls, path: Path) -> Self:
        """Raises: OSError."""
        key = Ed25519PrivateKey.generate()
        pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        replace_file(path, pem)
        return cls(key)

    @classmethod
    def read_if_exists(cls, path: Path) -> Self | None:
        """Raises: ConfigurationInvalid."""
        try:
            file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        except OSError as cause:
            raise ConfigurationInvalid(f"signing key {path}: {cause.strerror}") from cause
        with os.fdopen(file, "rb") as reader:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & _OTHERS_ACCESS:
                raise ConfigurationInvalid(f"signing key {path}: must be a file that only this user can read")
            content = reader.read()
        try:
            key = serialization.load_pem_private_key(content, password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm) as cause:
            raise ConfigurationInvalid(f"signing key {path}: not a PEM private key") from cause
        if not isinstance(key, Ed25519PrivateKey):
            raise ConfigurationInvalid(f"signing key {path}: not an Ed25519 key")
        return cls(key)
