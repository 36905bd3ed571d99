"""Contents of the image."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from support.boxes import Box, running_box
from support.engine import Engine, Network
from support.pages import Site

PYTHON = "/opt/browser-shell/bin/python"
WALK = """
import json, os, stat
found = []
for folder, folders, files in os.walk("/"):
    folders[:] = [name for name in folders if os.path.join(folder, name) not in ("/proc", "/sys", "/dev")]
    for name in files:
        path = os.path.join(folder, name)
        about = os.lstat(path)
        found.append((path, about.st_mode, about.st_size))
print(json.dumps(found))
"""
TOOLS = (
    *("gcc", "cc", "g++", "ld", "make", "node", "npm", "pip", "pip3", "curl", "wget", "git", "ssh", "sudo", "perl5"),
    *("uv", "hatch", "hatchling", "nc", "gdb", "strace"),
)
NOTES = "/tmp/other-words"  # noqa: S108  of the container
STAND_IN = f"""#!/usr/bin/python3 -I
import os, shlex, sys
words = shlex.split(sys.argv[2])
if words[0] == "/usr/bin/xkbcomp":
    os.execv(words[0], words)
with open("{NOTES}", "a") as notes:
    notes.write(sys.argv[2])
sys.exit(127)
"""
SECRET = re.compile(
    rb"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----\s+[A-Za-z0-9+/]{40}"
    rb"|eyJhbGciOi[\w-]{20,}\.eyJ|npm_[A-Za-z0-9]{36}|gh[pousr]_[A-Za-z0-9]{36}"
)


@pytest.fixture(scope="module")
def files(engine: Engine) -> dict[str, tuple[int, int]]:
    """Mode and size of every file."""
    return {path: (mode, size) for path, mode, size in json.loads(engine.in_image(PYTHON, "-c", WALK))}


def test_no_file_has_a_set_user_id_or_set_group_id_bit(files: dict[str, tuple[int, int]]) -> None:
    assert len(files) > 3000
    assert [path for path, (mode, _) in files.items() if mode & 0o6000] == []


def test_the_image_contains_no_build_or_network_tools(files: dict[str, tuple[int, int]]) -> None:
    names = {Path(path).name for path, (mode, _) in files.items() if "bin" in Path(path).parent.name and mode & 0o111}
    assert "Xtigervnc" in names
    assert names & set(TOOLS) == set()


def test_the_image_contains_no_caches_or_build_files(files: dict[str, tuple[int, int]]) -> None:
    left = [
        path
        for path in files
        if re.search(
            r"^/(tmp|build|root|var/cache/apt|var/lib/apt/lists|var/log)/|\.(deb|whl|tgz)$|\.cache/|\.orig$", path
        )
    ]
    assert left == []


def test_only_packages_that_the_server_needs_are_installed(files: dict[str, tuple[int, int]]) -> None:
    packages = {
        match[1].lower()
        for path in files
        if (match := re.search(r"/site-packages/([\w.]+?)-[\d.]+\.dist-info/METADATA", path))
    }
    assert {"browser_shell", "mcp", "pydantic", "cryptography"} <= packages
    assert (
        packages & {"pip", "setuptools", "hatchling", "editables", "tomlkit", "pathspec", "trove_classifiers"} == set()
    )


def test_the_driver_is_included_once_for_this_platform(files: dict[str, tuple[int, int]]) -> None:
    drivers = [path for path, (_, size) in files.items() if "agent-browser" in path and size > 1_000_000]
    assert drivers == ["/usr/local/lib/browser-shell/agent-browser-0.41.0"]


@pytest.mark.promise("container:no-secret")
def test_no_file_and_no_setting_contains_a_secret(engine: Engine) -> None:
    code = (
        "import os, re\n"
        f"secret = re.compile({SECRET.pattern!r})\n"
        "for root in ('/etc', '/opt', '/usr/local', '/home', '/root', '/var/lib/browser-shell'):\n"
        "    for folder, _, names in os.walk(root):\n"
        "        for name in names:\n"
        "            path = os.path.join(folder, name)\n"
        "            if os.path.isfile(path) and not os.path.islink(path) and name != 'METADATA':\n"
        "                with open(path, 'rb') as file:\n"
        "                    if secret.search(file.read()): print(path)\n"
    )
    assert engine.in_image(PYTHON, "-c", code) == ""
    about = json.dumps(engine.inspect("image", engine.image))
    history = engine.do("history", "--no-trunc", engine.image)
    for text in (about, history):
        assert not SECRET.search(text.encode())
        assert not re.search(r"(?i)password|passwd|api_key|secret[^c]", text)


def test_no_certificate_of_the_building_machine_is_left(engine: Engine) -> None:
    """Only the stages that download may know them."""
    code = (
        "import pathlib\n"
        "bundle = pathlib.Path('/etc/ssl/certs/ca-certificates.crt').read_text().count('BEGIN CERTIFICATE')\n"
        "known = len(list(pathlib.Path('/usr/share/ca-certificates/mozilla').iterdir()))\n"
        "print(bundle, known)"
    )
    bundle, known = engine.in_image(PYTHON, "-c", code).split()
    assert bundle == known


def test_everything_that_is_shipped_has_its_licence_beside_it(engine: Engine) -> None:
    packages = engine.in_image("/usr/bin/dpkg-query", "--show", "--showformat", "${Package}\\n").split()
    code = (
        "import json, os\n"
        "names = os.listdir('/usr/share/doc')\n"
        "print(json.dumps([name for name in names if os.path.exists(f'/usr/share/doc/{name}/copyright')]))"
    )
    licensed = set(json.loads(engine.in_image(PYTHON, "-c", code)))
    assert len(packages) > 100
    assert set(packages) - licensed == {"browser-shell-unused"}
    notices = engine.in_image("/usr/bin/cat", "/usr/share/doc/browser-shell/NOTICE-python")
    for name in ("mcp", "pydantic", "cryptography", "ada-url", "uvicorn"):
        assert re.search(rf"(?m)^{name} \d", notices), name
    for path in ("browser-shell/LICENSE", "agent-browser/LICENSE", "novnc/LICENSE.txt"):
        assert len(engine.in_image("/usr/bin/cat", f"/usr/share/doc/{path}")) > 1000


def test_the_image_has_labels_user_and_health_check(engine: Engine) -> None:
    about = engine.inspect("image", engine.image)
    config = about["Config"]
    labels = config["Labels"]
    assert labels["org.opencontainers.image.title"] == "browser-shell"
    assert labels["org.opencontainers.image.licenses"] == "Apache-2.0"
    assert re.fullmatch(r"\d+\.\d+\.\d+", labels["org.opencontainers.image.version"])
    assert config["User"] == "1000:1000"
    check = config.get("Healthcheck") or about["Healthcheck"]  # Podman reports it one level higher.
    assert check["Test"][:3] == ["CMD", "/opt/browser-shell/bin/browser-shell", "health"]


@pytest.mark.promise("container:no-shell")
def test_no_part_of_the_server_starts_a_shell(
    engine: Engine, network: Network, policy: dict[str, Any], site: Site, tmp_path: Path
) -> None:
    """Only the X server uses a shell, to run xkbcomp. A stand-in runs xkbcomp and records every other command."""
    stand_in = tmp_path / "shell"
    stand_in.write_text(STAND_IN, encoding="utf-8")
    stand_in.chmod(0o755)
    tmp_path.chmod(0o755)
    masks = [word for name in ("dash", "bash") for word in ("--volume", f"{stand_in}:/usr/bin/{name}:ro")]
    with running_box(engine, network=network.name, policy=policy, flags=masks) as box:
        session = box.session("shell")
        session.ok("open", site.watch("<button id=b onclick=\"report('clicked')\">b</button>").url)
        session.ok("click", "#b")
        assert session.run("screenshot").attachments
        assert box.inside("browser-shell", "health", "--ready").returncode == 0
        assert box.inside("/usr/bin/cat", NOTES).returncode != 0
        assert box.inside("/bin/sh", "-c", "echo alive").stdout == ""
        assert "echo alive" in box.inside("/usr/bin/cat", NOTES).stdout


def test_the_health_check_of_the_image_passes(box: Box) -> None:
    checked = box.inside("/opt/browser-shell/bin/browser-shell", "health", "--ready")
    assert checked.returncode == 0
    assert checked.stdout.startswith("live, ready")
