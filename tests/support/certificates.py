"""A certificate authority for tests, and TLS configurations with certificates that it has signed."""

from __future__ import annotations

import ipaddress
import ssl
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

NOW = datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Identity:
    """A certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def certificate_pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    def tls(self) -> ssl.SSLContext:
        """Return the configuration of a server that presents this certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "server.pem"
            path.write_bytes(self.key_pem + self.certificate_pem)
            context.load_cert_chain(path)
        return context


def make_authority(name: str = "Test authority") -> Identity:
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        _builder(name, name, key, NOW - timedelta(days=1), NOW + timedelta(days=300))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return Identity(builder.sign(key, hashes.SHA256()), key)


def make_server_identity(
    issuer: Identity | None,
    *hosts: str,
    not_before: datetime = NOW - timedelta(days=1),
    not_after: datetime = NOW + timedelta(days=30),
) -> Identity:
    """Return a certificate for host names and addresses; without an issuer it is self-signed."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = f"server {hosts[0]}"
    issuer_name = name if issuer is None else _common_name(issuer.certificate)
    builder = (
        _builder(name, issuer_name, key, not_before, not_after)
        .add_extension(x509.SubjectAlternativeName([_general_name(host) for host in hosts]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    )
    return Identity(builder.sign(key if issuer is None else issuer.key, hashes.SHA256()), key)


def _builder(
    subject: str, issuer: str, key: ec.EllipticCurvePrivateKey, not_before: datetime, not_after: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(not_before)
        .not_valid_after(not_after)
    )


def _common_name(certificate: x509.Certificate) -> str:
    return str(certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
