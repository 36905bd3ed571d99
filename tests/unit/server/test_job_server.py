"""Settings with which the write profile refuses to start."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.policy.loading import policy_from
from browser_shell.server.job_server import engine_socket, open_workspace
from browser_shell.settings import Settings, read_settings


def settings(tmp_path: Path, **more: str) -> Settings:
    places = {"BROWSER_SHELL_STATE_DIR": str(tmp_path / "state"), "BROWSER_SHELL_RUNTIME_DIR": str(tmp_path / "run")}
    return read_settings({"HOME": "/nonexistent", **places, **more})


@pytest.mark.parametrize("name", ["BROWSER_SHELL_ENGINE", "DOCKER_HOST"])
@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:2375", "ssh://host", "http://x", "/var/run/docker.sock", "unix://x"]
)
def test_only_unix_sockets_are_accepted_as_engines(tmp_path: Path, name: str, address: str) -> None:
    with pytest.raises(ConfigurationInvalid, match=name):
        settings(tmp_path, **{name: address})


def test_the_engine_setting_precedes_docker_host_and_the_default_socket(tmp_path: Path) -> None:
    both = {"BROWSER_SHELL_ENGINE": "unix:///a.sock", "DOCKER_HOST": "unix:///b.sock"}
    assert engine_socket(settings(tmp_path, **both)) == Path("/a.sock")
    assert engine_socket(settings(tmp_path, DOCKER_HOST="unix:///b.sock")) == Path("/b.sock")
    assert engine_socket(settings(tmp_path)) == Path("/var/run/docker.sock")
    podman = replace(settings(tmp_path), policy=policy_from({"sandbox": {"engine": "podman"}}, source="test"))
    assert engine_socket(podman).name == "podman.sock"


def test_a_workspace_must_be_an_existing_directory(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationInvalid, match="BROWSER_SHELL_WORKSPACE"):
        open_workspace(settings(tmp_path))
    for wrong in ("/", str(tmp_path / "none"), "/etc/passwd"):
        with pytest.raises(ConfigurationInvalid, match="must be a directory"):
            open_workspace(settings(tmp_path, BROWSER_SHELL_WORKSPACE=wrong))


@pytest.mark.promise("jobs:never-see-the-server")
@pytest.mark.parametrize(
    ("name", "inside"),
    [
        ("BROWSER_SHELL_STATE_DIR", "state"),
        ("BROWSER_SHELL_RUNTIME_DIR", "run"),
        ("BROWSER_SHELL_ARTIFACTS_DIR", "artifacts"),
        ("BROWSER_SHELL_ENGINE", "engine.sock"),
    ],
)
def test_a_workspace_that_holds_files_of_the_server_is_refused(tmp_path: Path, name: str, inside: str) -> None:
    work = tmp_path / "work"
    work.mkdir()
    value = f"unix://{work / inside}" if name == "BROWSER_SHELL_ENGINE" else str(work / inside)
    assert open_workspace(settings(tmp_path, BROWSER_SHELL_WORKSPACE=str(work))) == work.resolve()
    with pytest.raises(ConfigurationInvalid, match="must not see"):
        open_workspace(settings(tmp_path, **{"BROWSER_SHELL_WORKSPACE": str(work), name: value}))


def test_a_workspace_must_lie_in_a_root_of_the_policy(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "c").symlink_to(tmp_path / "a" / "b")
    for workspace, root, fits in (("a/b", "a", True), ("a", "a", True), ("a", "a/b", False), ("c", "c", True)):
        given = settings(tmp_path, BROWSER_SHELL_WORKSPACE=str(tmp_path / workspace))
        document = policy_from({"sandbox": {"workspace_roots": [str(tmp_path / root)]}}, source="test")
        if fits:
            open_workspace(replace(given, policy=document))
        else:
            with pytest.raises(ConfigurationInvalid, match="workspace_roots"):
                open_workspace(replace(given, policy=document))
