"""PEM files with certificate authorities that the browser trusts."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from cryptography import x509

from browser_shell.browser.chromium.certificates import read_certificates
from browser_shell.core.errors import ConfigurationInvalid
from support.certificates import make_authority, make_server_identity


def written(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    return str(path)


def problem(path: str) -> str:
    with pytest.raises(ConfigurationInvalid) as caught:
        read_certificates([path])
    message = caught.value.public_message
    assert message.startswith(f"browser.trust_certificates: {path} ")
    return message


def test_every_certificate_of_every_file_is_read(tmp_path: Path) -> None:
    authorities = [make_authority(f"authority {number}") for number in range(3)]
    first = written(tmp_path / "1.pem", authorities[0].certificate_pem + b"\n" + authorities[1].certificate_pem)
    second = written(tmp_path / "2.pem", b"a comment\n" + authorities[2].certificate_pem)
    read = [x509.load_der_x509_certificate(base64.b64decode(text)) for text in read_certificates([first, second])]
    assert read == [authority.certificate for authority in authorities]


def test_no_files_are_no_certificates() -> None:
    assert read_certificates([]) == ()


def test_a_file_that_is_missing_or_a_directory_is_refused(tmp_path: Path) -> None:
    assert "No such file" in problem(str(tmp_path / "missing.pem"))
    assert "Is a directory" in problem(str(tmp_path))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "no PEM certificate"),
        (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "damaged"),
        (make_authority().certificate_pem + make_authority().key_pem, "private key"),
        (make_authority().certificate_pem + make_server_identity(None, "a.test").certificate_pem, "server a.test"),
        (b"x" * (1024 * 1024 + 1), "larger than"),
    ],
)
def test_a_file_that_is_not_only_authorities_is_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    assert reason in problem(written(tmp_path / "a.pem", content))
