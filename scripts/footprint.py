"""Write the measurements of tests/image/test_budgets.py to docs/reference/footprint.md, and print the table."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
_COLD_SECONDS = 180


@dataclass(frozen=True)
class Row:
    """One budget."""

    what: str
    limit: str
    goal: str
    found: str

    def __str__(self) -> str:
        return f"| {self.what} | {self.limit} | {self.goal} | {self.found} |"


def rows(found: dict[str, Any], cold_seconds: float) -> list[Row]:
    idle = found["memory"]["0"]
    return [
        Row("image, uncompressed", "700 MB", "600 MB", f"{found['image_mb']:.0f} MB"),
        Row("image, gzip", "300 MB", "260 MB", f"{found['gzip_mb']:.0f} MB"),
        Row("idle memory, cgroup without page cache", "260 MB", "180 MB", f"{idle['cgroup_mb']:.0f} MB"),
        Row("idle memory, sum of PSS", "430 MB", "360 MB", f"{idle['pss_mb']:.0f} MB"),
        Row("kinds of resident process", "6", "5", str(len(found["kinds"]))),
        Row("`docker run` to ready", "5 s", "2 s", f"{found['ready_seconds']:.1f} s"),
        Row("SIGTERM to exit, 8 sessions open", "3 s", "1 s", f"{found['exit_seconds']:.1f} s"),
        Row("Chromium killed to everything healthy", "3 s", "1 s", f"{found['back_seconds']:.1f} s"),
        Row("build, nothing cached", f"{_COLD_SECONDS} s", "", f"{cold_seconds:.0f} s"),
        Row("build, one line of code changed", "5 s", "", f"{found['code_build_seconds']:.1f} s"),
    ]


def page(found: dict[str, Any], cold_seconds: float, machine: str) -> str:
    sessions = "\n".join(
        f"| {number} | {memory['cgroup_mb']:.0f} MB | {memory['pss_mb']:.0f} MB |"
        for number, memory in found["memory"].items()
    )
    table = "\n".join(map(str, rows(found, cold_seconds)))
    return f"""# Footprint

Measured by `make image-report` on {machine}, engine {found["engine"]},
load average {found["load_average"]:.1f}. `tests/image/test_budgets.py` fails when a limit is exceeded. It
scales times by the slowdown of a busy loop, so run it on a quiet machine before quoting them.

| what | limit | goal | measured |
|---|---|---|---|
{table}

Memory with sessions, each on a local page, two seconds after the last was opened:

| sessions | cgroup without page cache | sum of PSS |
|---|---|---|
{sessions}

Resident processes of an idle box: {", ".join(found["kinds"])}.
Each session adds one small agent-browser and a renderer of Chromium.

The cgroup figure is what the kernel charges to the container without cached files: anonymous,
shared and kernel memory. PSS also counts mapped program files, each page divided among the
processes that map it. A sum of RSS counts Chromium's shared code once for each of its processes.
"""


def main() -> None:
    engine = sys.argv[1]
    found = json.loads((ROOT / "build" / f"footprint-{engine}.json").read_text(encoding="utf-8"))
    cold = json.loads((ROOT / "build" / f"image-cold-{engine}.json").read_text(encoding="utf-8"))["seconds"]
    processors = Path("/proc/cpuinfo").read_text(encoding="utf-8").count("processor\t")
    written = page(found, cold, f"a machine with {processors} processors")
    (ROOT / "docs" / "reference" / "footprint.md").write_text(written, encoding="utf-8")
    print("\n".join(["| what | limit | goal | measured |", "|---|---|---|---|", *map(str, rows(found, cold))]))
    if cold > _COLD_SECONDS:
        sys.exit(f"the cold build took {cold} s, more than {_COLD_SECONDS} s")


if __name__ == "__main__":
    main()
