"""scripts/up: the server on Debian, the container on Ubuntu. tests/image/test_up.py runs a real container."""

from __future__ import annotations

import itertools
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]
NO_CHROMIUM_PACKAGE = 3


class Checkout:
    """A copy of scripts/up between stand-ins for the programs that it calls. Each prints its arguments."""

    def __init__(self, directory: Path, *, install_exit: int, engines: tuple[str, ...] = ()) -> None:
        self.directory = directory
        self.programs = directory / "bin"
        for name in ("scripts", ".venv/bin", "bin"):
            (directory / name).mkdir(parents=True)
        shutil.copy(ROOT / "scripts" / "up", directory / "scripts" / "up")
        self._write("scripts/install", f"exit {install_exit}")
        self._write("scripts/engine", f"echo unix://{directory}/engine.sock")
        self._write("scripts/image", 'echo "browser-shell:$1"')
        self._write(".venv/bin/browser-shell", 'echo "browser-shell $*"')
        for name in ("bash", "dirname", "tail", "cat"):
            (self.programs / name).symlink_to(str(shutil.which(name)))
        for engine in engines:
            self._write(f"bin/{engine}", f'printf "%s\\n" {engine} "$@"')

    def _write(self, name: str, command: str) -> None:
        path = self.directory / name
        path.write_text(f"#!/bin/bash\n{command}\n")
        path.chmod(0o755)

    def up(self, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.directory / "scripts" / "up", *arguments],
            env={"PATH": str(self.programs), "APPARMOR_FILE": "/nonexistent", **env},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

    def flags(self, **env: str) -> list[str]:
        ended = self.up(**env)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout.splitlines()


def values(flags: list[str], option: str) -> set[str]:
    return {value for name, value in itertools.pairwise(flags) if name == option}


def test_an_installed_server_is_started_directly(tmp_path: Path) -> None:
    ended = Checkout(tmp_path, install_exit=0, engines=("docker",)).up("--port", "1")
    assert ended.stdout == "browser-shell serve --port 1\n"


def test_a_failed_installation_ends_with_its_exit_code(tmp_path: Path) -> None:
    ended = Checkout(tmp_path, install_exit=1, engines=("docker",)).up()
    assert (ended.returncode, ended.stdout) == (1, "")


@pytest.mark.parametrize(
    ("installed", "wanted", "used"),
    [(("docker", "podman"), "", "docker"), (("podman",), "", "podman"), (("docker", "podman"), "podman", "podman")],
)
def test_without_a_chromium_package_the_image_is_run(
    tmp_path: Path, installed: tuple[str, ...], wanted: str, used: str
) -> None:
    flags = Checkout(tmp_path, install_exit=NO_CHROMIUM_PACKAGE, engines=installed).flags(ENGINE=wanted)
    assert flags[:2] == [used, "run"]
    assert flags[-2:] == [f"browser-shell:{used}", "serve"]


def test_without_an_engine_the_message_names_both_ways(tmp_path: Path) -> None:
    ended = Checkout(tmp_path, install_exit=NO_CHROMIUM_PACKAGE).up()
    assert ended.returncode == 1
    for word in ("Docker", "Podman", "Debian"):
        assert word in ended.stderr


def test_an_unknown_engine_is_refused(tmp_path: Path) -> None:
    ended = Checkout(tmp_path, install_exit=NO_CHROMIUM_PACKAGE, engines=("docker",)).up(ENGINE="rm")
    assert ended.returncode == 1
    assert "ENGINE" in ended.stderr


@pytest.mark.parametrize("engine", ["docker", "podman"])
def test_the_container_has_the_locks_and_mounts_of_the_compose_file(tmp_path: Path, engine: str) -> None:
    compose = yaml.safe_load((ROOT / "deploy" / "image" / "compose.yaml").read_text(encoding="utf-8"))
    service = compose["services"]["browser-shell"]
    flags = Checkout(tmp_path, install_exit=NO_CHROMIUM_PACKAGE, engines=(engine,)).flags(PUBLIC_PORT="8090")
    image = tmp_path / "deploy" / "image"
    assert values(flags, "--user") == {service["user"]}
    assert ("--read-only" in flags) == service["read_only"]
    assert values(flags, "--tmpfs") == set(service["tmpfs"])
    assert values(flags, "--cap-drop") == set(service["cap_drop"])
    assert values(flags, "--security-opt") == {
        option.replace(":./", f"={image}/") for option in service["security_opt"]
    }
    assert values(flags, "--pids-limit") == {str(service["pids_limit"])}
    assert values(flags, "--memory") == {service["mem_limit"]}
    volumes = {volume.replace("./", f"{image}/") for volume in service["volumes"]}
    assert {volume.removeprefix("browser-shell-") for volume in values(flags, "--volume")} == volumes
    assert values(flags, "--publish") == {"127.0.0.1:8090:8080"}
    assert {name.partition("=")[0] for name in values(flags, "--env")} == set(service["environment"])


def test_apparmor_is_switched_off_for_the_container_where_it_would_forbid_the_jail(tmp_path: Path) -> None:
    (tmp_path / "enabled").write_text("Y\n")
    checkout = Checkout(tmp_path, install_exit=NO_CHROMIUM_PACKAGE, engines=("docker",))
    assert "apparmor=unconfined" in values(checkout.flags(APPARMOR_FILE=str(tmp_path / "enabled")), "--security-opt")
