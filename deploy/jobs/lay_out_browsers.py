"""Links Debian's Chromium and ffmpeg where Playwright expects its own downloads, so that projects need no setting."""

import json
import platform
import sys
from pathlib import Path

NODE_PACKAGE = Path("/node_modules/playwright-core")
PYTHON_PACKAGE = Path("/opt/jobs/lib/python3.13/site-packages/playwright/driver/package")
CHROMIUM = Path("/usr/local/bin/chromium-for-playwright")
MACHINE = {"x86_64": "linux64", "aarch64": "linux-arm64"}[platform.machine()]
PATHS = {
    "chromium": (f"chrome-{MACHINE}/chrome", CHROMIUM),
    "chromium-headless-shell": (f"chrome-headless-shell-{MACHINE}/chrome-headless-shell", CHROMIUM),
    "ffmpeg": ("ffmpeg-linux", Path("/usr/bin/ffmpeg")),
}


def lay_out(package: Path, browsers: Path) -> None:
    for entry in json.loads((package / "browsers.json").read_text("utf-8"))["browsers"]:
        if entry["name"] not in PATHS:
            continue
        path, program = PATHS[entry["name"]]
        directory = browsers / f"{entry['name'].replace('-', '_')}-{entry['revision']}"
        link = directory / path
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(program)
        (directory / "INSTALLATION_COMPLETE").touch()


for each in (NODE_PACKAGE, PYTHON_PACKAGE):
    lay_out(each, Path(sys.argv[1]))
