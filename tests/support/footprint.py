"""Memory, size and build time of the image, from /proc of the host and from the engine."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time
import zlib
from dataclasses import asdict, dataclass, field
from pathlib import Path

from support.boxes import ROOT, Box, command_line
from support.engine import Engine

MB = 1_000_000
_CHUNK = 1 << 20
RESULTS = ROOT / "build"


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Memory of all processes of a box."""

    pss_mb: float
    """Sum of PSS: each shared page is divided among the processes that map it."""
    cgroup_mb: float
    """Memory that the kernel charges to the container, without page cache."""


@dataclass(slots=True, kw_only=True)
class Footprint:
    """Measurements of one image on one engine."""

    engine: str
    image_mb: float = 0
    gzip_mb: float = 0
    ready_seconds: float = 0
    exit_seconds: float = 0
    back_seconds: float = 0
    code_build_seconds: float = 0
    load_average: float = 0
    """Load average of the host over five minutes, to judge the times by."""
    kinds: list[str] = field(default_factory=list)
    memory: dict[int, Memory] = field(default_factory=dict)
    """By number of sessions."""

    def save(self) -> None:
        self.load_average = os.getloadavg()[1]
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"footprint-{self.engine}.json").write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")


def memory_of(box: Box) -> Memory:
    return Memory(pss_mb=sum(_pss_bytes(pid) for pid in box.processes()) / MB, cgroup_mb=_cgroup_bytes(box.pid) / MB)


def kinds_of(box: Box) -> list[str]:
    """Kinds of running programs. All processes of Chromium are one kind."""
    kinds = {
        "/opt/browser-shell/bin/python": "browser-shell (server)",
        "/usr/bin/Xtigervnc": "Xtigervnc",
        "/usr/bin/matchbox-window-manager": "matchbox-window-manager",
        "/usr/lib/chromium/chromium": "chromium",
        "/usr/local/lib/browser-shell/agent-browser": "agent-browser",
    }
    running = set()
    for pid in box.processes():
        command = command_line(pid)
        if command:
            running.add(next((kind for prefix, kind in kinds.items() if command.startswith(prefix)), command[:60]))
    return sorted(running)


def image_bytes(engine: Engine) -> int:
    return int(engine.inspect("image", engine.image)["Size"])


def gzip_bytes(engine: Engine) -> int:
    """Size of the saved image, compressed like in a registry. Cached per image id."""
    digest = str(engine.inspect("image", engine.image)["Id"]).removeprefix("sha256:")
    cached = RESULTS / f"gzip-{digest[:24]}"
    with contextlib.suppress(OSError, ValueError):
        return int(cached.read_text(encoding="ascii"))
    total, compressor = 0, zlib.compressobj(6, wbits=31)
    with subprocess.Popen(engine.argv("save", engine.image), env=engine.env, stdout=subprocess.PIPE) as saving:
        assert saving.stdout is not None
        while part := saving.stdout.read(_CHUNK):
            total += len(compressor.compress(part))
    total += len(compressor.flush())
    assert saving.returncode == 0
    RESULTS.mkdir(exist_ok=True)
    cached.write_text(str(total), encoding="ascii")
    return total


def code_build_seconds(engine: Engine) -> float:
    """Build time after a change of one line of the server."""
    return changed_build_seconds(engine, "src/browser_shell/__init__.py")


def changed_build_seconds(engine: Engine, file: str) -> float:
    """Build time after a comment was added to `file`."""
    with tempfile.TemporaryDirectory(prefix="bsi-") as directory:
        context = Path(directory) / "context"
        shutil.copytree(ROOT, context, ignore=_unneeded)
        changed = context / file
        changed.write_text(f"{changed.read_text()}\n# {time.time_ns()}\n")
        before = str(engine.inspect("image", engine.image)["Id"])
        try:
            started_at = time.monotonic()
            # The script writes the time of the build alone, without the search for engine and base images.
            subprocess.run(
                [context / "scripts" / "image", engine.name], env=engine.env, check=True, capture_output=True
            )
            print(f"scripts/image as a whole: {time.monotonic() - started_at:.1f} s")
            build = json.loads((context / "build" / f"image-build-{engine.name}.json").read_text())
            return float(build["seconds"])
        finally:
            built = str(engine.inspect("image", engine.image)["Id"])
            engine.do("tag", before, engine.image)
            if built != before:
                engine.finish("rmi", built)


def _unneeded(folder: str, names: list[str]) -> set[str]:
    return {name for name in names if name in (".git", ".venv", "build", ".tools", "__pycache__") or "_cache" in name}


def _pss_bytes(pid: int) -> int:
    try:
        lines = (Path("/proc") / str(pid) / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


def _cgroup_bytes(pid: int) -> int:
    """Anonymous, shared and kernel memory of the container, without page cache."""
    for line in (Path("/proc") / str(pid) / "cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        first = Path("/sys/fs/cgroup/memory") / path.lstrip("/")
        second = Path("/sys/fs/cgroup") / path.lstrip("/")
        if controllers == "memory" and (first / "memory.stat").exists():
            stat = _numbers(first / "memory.stat")
            used = int((first / "memory.usage_in_bytes").read_text())
            return used - stat["total_cache"] + stat["total_shmem"]
        if controllers == "" and (second / "memory.current").exists():
            stat = _numbers(second / "memory.stat")
            return int((second / "memory.current").read_text()) - stat["file"] + stat["shmem"]
    raise AssertionError("no memory cgroup of the container was found")


def _numbers(path: Path) -> dict[str, int]:
    return {name: int(value) for name, value in (line.split() for line in path.read_text().splitlines())}
