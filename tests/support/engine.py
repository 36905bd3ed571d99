"""A container engine with one interface for Docker and Podman."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PRIVATE_CONFIGURATION = Path("/run/browser-shell-engine/containers.conf")
_IMAGES = {"docker": "browser-shell:latest", "podman": "localhost/browser-shell:latest"}


@dataclass(frozen=True, slots=True)
class Engine:
    """A running engine that has the image."""

    name: str
    env: dict[str, str]

    @property
    def image(self) -> str:
        return os.environ.get("BROWSER_SHELL_TEST_IMAGE") or _IMAGES[self.name]

    @property
    def run_flags(self) -> tuple[str, ...]:
        """Disable health checks of Podman without systemd, whose timers it needs; it would print warnings."""
        without_timers = self.name == "podman" and not Path("/run/systemd/private").exists()
        return ("--no-healthcheck",) if without_timers else ()

    def argv(self, *arguments: str) -> list[str]:
        return [self.name, *arguments]

    def finish(self, *arguments: str, seconds: float = 60) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.argv(*arguments), env=self.env, capture_output=True, text=True, timeout=seconds, check=False
        )

    def do(self, *arguments: str, seconds: float = 60) -> str:
        """Run a command that must succeed and return its output."""
        result = self.finish(*arguments, seconds=seconds)
        assert result.returncode == 0, f"{arguments}: {result.stdout}{result.stderr}"
        return result.stdout.strip()

    def inspect(self, kind: str, name: str) -> dict[str, Any]:
        (details,) = json.loads(self.do(kind, "inspect", name))
        assert isinstance(details, dict)
        return details

    def in_image(self, *argv: str, flags: tuple[str, ...] = (), seconds: float = 120) -> str:
        """Run a program of the image as root, in a temporary container without network; return its output."""
        options = ("--rm", "--network", "none", "--user", "0:0", *self.run_flags, *flags)
        return self.do("run", *options, "--entrypoint", argv[0], self.image, *argv[1:], seconds=seconds)


@contextmanager
def answering_engine(name: str) -> Iterator[Engine]:
    """Use an engine that is already running (scripts/test-image starts it)."""
    env = {key: value for key, value in os.environ.items() if key not in ("CONTAINER_HOST",)}
    with tempfile.TemporaryDirectory(prefix="bse-") as directory:
        if name == "podman" and _PRIVATE_CONFIGURATION.exists():
            # A copy: scripts/engine may rewrite the file while tests run.
            copy = Path(directory) / "containers.conf"
            copy.write_text(_PRIVATE_CONFIGURATION.read_text(encoding="utf-8"), encoding="utf-8")
            env["CONTAINERS_CONF"] = str(copy)
        engine = Engine(name=name, env=env)
        engine.do("image", "inspect", engine.image)
        yield engine


@dataclass(frozen=True, slots=True)
class Network:
    """A network of the engine for one run of the suite."""

    name: str
    gateway: str
    """Address of this machine in the network."""


@contextmanager
def own_network(engine: Engine) -> Iterator[Network]:
    name = f"bsh-{os.getpid()}"
    engine.do("network", "create", name)
    try:
        details = engine.inspect("network", name)
        (subnet,) = details["IPAM"]["Config"] if "IPAM" in details else details["subnets"]
        gateway = subnet.get("Gateway") or subnet["gateway"]
        # The address exists only while the network has a container.
        holder = f"{name}-holder"
        engine.do(
            *("run", "--detach", "--name", holder, "--network", name, "--memory", "64m", *engine.run_flags),
            *("--entrypoint", "/usr/bin/sleep", engine.image, "infinity"),
        )
        try:
            yield Network(name=name, gateway=str(gateway))
        finally:
            without_wait = ("--time", "0") if engine.name == "podman" else ()
            engine.finish("rm", "--force", "--volumes", *without_wait, holder)
    finally:
        engine.finish("network", "rm", name)
