"""A container engine as the tests use it: the same words for Docker and Podman."""

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
    """One that answers, with the image in it."""

    name: str
    env: dict[str, str]

    @property
    def image(self) -> str:
        return os.environ.get("BROWSER_SHELL_TEST_IMAGE") or _IMAGES[self.name]

    @property
    def run_flags(self) -> tuple[str, ...]:
        """Podman leaves health checks to timers of systemd, and says so at length where there is none."""
        without_timers = self.name == "podman" and not Path("/run/systemd/private").exists()
        return ("--no-healthcheck",) if without_timers else ()

    def argv(self, *words: str) -> list[str]:
        return [self.name, *words]

    def finish(self, *words: str, seconds: float = 60) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.argv(*words), env=self.env, capture_output=True, text=True, timeout=seconds, check=False
        )

    def do(self, *words: str, seconds: float = 60) -> str:
        """What a command that must succeed writes."""
        ended = self.finish(*words, seconds=seconds)
        assert ended.returncode == 0, f"{words}: {ended.stdout}{ended.stderr}"
        return ended.stdout.strip()

    def inspect(self, kind: str, name: str) -> dict[str, Any]:
        found = json.loads(self.do(kind, "inspect", name))
        assert isinstance(found[0], dict)
        return found[0]

    def in_image(self, *words: str, flags: tuple[str, ...] = (), seconds: float = 120) -> str:
        """Runs a program of the image's own in a throw-away container without a network, as root, to look around."""
        looking = ("--rm", "--network", "none", "--user", "0:0", *self.run_flags, *flags)
        return self.do("run", *looking, "--entrypoint", words[0], self.image, *words[1:], seconds=seconds)


@contextmanager
def answering_engine(name: str) -> Iterator[Engine]:
    """Whoever starts the suite has started the engine (scripts/test-image does)."""
    env = {key: value for key, value in os.environ.items() if key not in ("CONTAINER_HOST",)}
    with tempfile.TemporaryDirectory(prefix="bse-") as directory:
        if name == "podman" and _PRIVATE_CONFIGURATION.exists():
            # A copy: the script may write its own anew while tests run.
            copy = Path(directory) / "containers.conf"
            copy.write_text(_PRIVATE_CONFIGURATION.read_text(encoding="utf-8"), encoding="utf-8")
            env["CONTAINERS_CONF"] = str(copy)
        engine = Engine(name=name, env=env)
        engine.do("image", "inspect", engine.image)
        yield engine


@dataclass(frozen=True, slots=True)
class Network:
    """A network of the engine, for one run of the suite."""

    name: str
    gateway: str
    """The machine's own address in it."""


@contextmanager
def own_network(engine: Engine) -> Iterator[Network]:
    name = f"bsh-{os.getpid()}"
    engine.do("network", "create", name)
    try:
        about = engine.inspect("network", name)
        (subnet,) = about["IPAM"]["Config"] if "IPAM" in about else about["subnets"]
        gateway = subnet.get("Gateway") or subnet["gateway"]
        # The address exists once the first container is there; this one is there until the end.
        holder = f"{name}-holder"
        engine.do(
            *("run", "--detach", "--name", holder, "--network", name, "--memory", "64m", *engine.run_flags),
            *("--entrypoint", "/usr/bin/sleep", engine.image, "infinity"),
        )
        try:
            yield Network(name=name, gateway=str(gateway))
        finally:
            engine.finish(
                "rm",
                "--force",
                "--volumes",
                "--time" if engine.name == "podman" else "--force",
                *(("0",) if engine.name == "podman" else ()),
                holder,
            )
    finally:
        engine.finish("network", "rm", name)
