"""Read the certificate authorities that the browser trusts in addition to its own list."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path

import structlog
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding

from browser_shell.core.errors import ConfigurationInvalid

_MAX_FILE_BYTES = 1024 * 1024

log = structlog.get_logger()


def read_certificates(paths: Sequence[str]) -> tuple[str, ...]:
    """Return the certificates of PEM files in the form of Chromium's policy, base64 of DER.

    Raises: ConfigurationInvalid naming the key, the file and the rule.
    """
    return tuple(
        base64.b64encode(certificate.public_bytes(Encoding.DER)).decode("ascii")
        for path in paths
        for certificate in _certificates_in(path)
    )


def _certificates_in(path: str) -> list[x509.Certificate]:
    try:
        with Path(path).open("rb") as file:
            content = file.read(_MAX_FILE_BYTES + 1)
    except OSError as cause:
        raise _invalid(path, f"cannot be read: {cause.strerror}") from cause
    if len(content) > _MAX_FILE_BYTES:
        raise _invalid(path, f"is larger than {_MAX_FILE_BYTES} bytes")
    if b"PRIVATE KEY-----" in content:
        raise _invalid(path, "contains a private key; the browser needs the certificate only")
    try:
        certificates = x509.load_pem_x509_certificates(content)
    except ValueError as cause:
        raise _invalid(path, "contains no PEM certificate, or a damaged one") from cause
    for certificate in certificates:
        if not _is_authority(certificate):
            name = certificate.subject.rfc4514_string()
            raise _invalid(path, f"{name!r} is not the certificate of an authority (basic constraints, CA)")
        log.info(
            "certificate_trusted",
            file=path,
            subject=certificate.subject.rfc4514_string(),
            sha256=certificate.fingerprint(hashes.SHA256()).hex(),
            not_after=certificate.not_valid_after_utc.isoformat(),
        )
    return certificates


def _is_authority(certificate: x509.Certificate) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (x509.ExtensionNotFound, ValueError):  # ValueError: the extensions cannot be parsed.
        return False


def _invalid(path: str, problem: str) -> ConfigurationInvalid:
    return ConfigurationInvalid(f"browser.trust_certificates: {path} {problem}", rule_id="policy.invalid")
