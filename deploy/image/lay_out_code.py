"""Run in the build: install the package, its command, its licence and the managed policy into the image."""

from __future__ import annotations

import compileall
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

# -I: the working directory and the environment do not change the import path.
_COMMAND = """#!/opt/browser-shell/bin/python -I
from browser_shell.__main__ import main

main()
"""


def main() -> None:
    root = Path(sys.argv[1])
    site = root / sysconfig.get_paths()["purelib"].lstrip("/")
    site.mkdir(parents=True)
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel"], check=True, stdout=subprocess.DEVNULL)
    (wheel,) = Path("dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    compileall.compile_dir(site, quiet=1, stripdir=str(root), workers=0)

    command = root / "opt/browser-shell/bin/browser-shell"
    command.parent.mkdir(parents=True)
    command.write_text(_COMMAND, encoding="utf-8")
    command.chmod(0o755)
    notices = root / "usr/share/doc/browser-shell"
    notices.mkdir(parents=True)
    (notices / "LICENSE").write_bytes(Path("LICENSE").read_bytes())

    # The jail mounts the server's own policy over this one. It applies where the host forbids mounting.
    sys.path.insert(0, str(site))
    from browser_shell.browser.chromium.managed_policy import managed_policy, write_managed_policy

    write_managed_policy(root / "etc/chromium", managed_policy(("http", "https")))


if __name__ == "__main__":
    main()
