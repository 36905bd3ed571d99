from __future__ import annotations

from pathlib import Path

import pytest

from browser_shell.audit.signing import PublicKey, SigningKey
from browser_shell.core.errors import ConfigurationInvalid
from support.audit_logs import a_writer


def test_an_invalid_key_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "no.pub").write_text("nonsense", encoding="ascii")
    with pytest.raises(ConfigurationInvalid):
        PublicKey.read(tmp_path / "no.pub")
    with pytest.raises(ConfigurationInvalid):
        PublicKey.read(tmp_path / "absent.pub")
    key = tmp_path / "no.key"
    key.write_text("nonsense", encoding="ascii")
    key.chmod(0o600)
    with pytest.raises(ConfigurationInvalid):
        SigningKey.read_if_exists(key)


def test_a_key_that_others_can_read_prevents_the_start(path: Path) -> None:
    with a_writer(path):
        pass
    path.with_suffix(".key").chmod(0o640)
    with pytest.raises(ConfigurationInvalid):
        a_writer(path)
