"""scripts/engine with slow, dead and foreign engines: a private /run and a stand-in for dockerd."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TOOLS = (
    *("bash", "cat", "cut", "env", "flock", "grep", "head", "id", "kill", "mkdir", "mount", "readlink"),
    *("rm", "sed", "seq", "setsid", "sleep", "tail", "touch", "tr"),
)
# Answers /_ping at the socket of `--host` after DOCKERD_SILENCE seconds. Writes its pid to DOCKERD_STARTS.
DOCKERD = """#!{python}
import os, pathlib, socket, sys, time
with open(os.environ["DOCKERD_STARTS"], "a") as starts:
    print(os.getpid(), file=starts)
path = sys.argv[sys.argv.index("--host") + 1].removeprefix("unix://")
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
listener.listen()
if "--no-pid-file" not in sys.argv:
    pathlib.Path("/run/docker.pid").write_text(str(os.getpid()))
time.sleep(float(os.environ.get("DOCKERD_SILENCE", "0")))
while True:
    link, _ = listener.accept()
    try:
        link.recv(1000)
        link.sendall(b"HTTP/1.0 200 OK\\r\\n\\r\\nOK")
    except OSError:
        pass
    link.close()
"""
LEAVE_A_DEAD_SOCKET = "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"/run/docker.sock\")'\n"
APT_GET = """#!/bin/bash
echo "$*" >>"$APT_LOG"
case "$*" in *" install "*" $CLIENT_COMES_WITH") ln -s /bin/true "$TOOLS/docker" ;; esac
"""
APT_CACHE = """#!/bin/bash
[ "$2" = docker-cli ] && [ "$CLIENT_COMES_WITH" = docker.io ] && exit
printf '%s:\\n  Installed: (none)\\n  Candidate: 1.0\\n' "$2"
"""


class Machine:
    def __init__(self, folder: Path) -> None:
        self.tools = folder / "tools"
        self.tools.mkdir()
        for name in TOOLS:
            (self.tools / name).symlink_to(str(shutil.which(name)))
        (self.tools / "python3").symlink_to(sys.executable)
        self.add("dockerd", DOCKERD.format(python=sys.executable))
        self.add("docker", "#!/bin/sh\n")
        self.starts = folder / "starts"
        self.apt_log = folder / "apt"

    def add(self, name: str, text: str) -> None:
        (self.tools / name).write_text(text, encoding="utf-8")
        (self.tools / name).chmod(0o755)

    def run(self, script: str, *, pass_fds: tuple[int, ...] = (), **env: str) -> subprocess.CompletedProcess[str]:
        """Run a bash script with an empty /run, and kill every stand-in that it started."""
        private = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
        prologue = f'set -e\nmount -t tmpfs none /run\nengine() {{ "{ROOT}/scripts/engine" "$@"; }}\n'
        try:
            return subprocess.run(
                [str(shutil.which(private[0])), *private[1:], "bash", "-c", prologue + script],
                env={
                    "PATH": str(self.tools),
                    "TOOLS": str(self.tools),
                    "DOCKERD_STARTS": str(self.starts),
                    "APT_LOG": str(self.apt_log),
                    **env,
                },
                capture_output=True,
                text=True,
                timeout=100,
                check=False,
                pass_fds=pass_fds,
            )
        finally:
            for pid in self.started():
                if "dockerd" in _command_line(pid):
                    os.kill(pid, 9)

    def started(self) -> list[int]:
        return [int(line) for line in self.starts.read_text().split()] if self.starts.exists() else []


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize("flag", ["", "--no-pid-file"])
def test_a_slow_engine_is_awaited_and_keeps_its_socket(machine: Machine, flag: str) -> None:
    ended = machine.run(
        f"DOCKERD_SILENCE=7 dockerd --host unix:///run/docker.sock {flag} >/dev/null 2>&1 &\n"
        "while [ ! -S /run/docker.sock ]; do sleep 0.1; done\nengine docker; engine started docker"
    )
    assert ended.stdout.split() == ["unix:///var/run/docker.sock", "no"], ended.stderr
    assert len(machine.started()) == 1


def test_a_dead_socket_is_kept_while_the_process_in_the_pid_file_lives(machine: Machine) -> None:
    ended = machine.run(
        LEAVE_A_DEAD_SOCKET + "sleep 4 & echo $! >/run/docker.pid\nengine docker >/run/output 2>&1 &\n"
        '[ -z "$(sleep 2; cat "$DOCKERD_STARTS" 2>/dev/null)" ] && [ -S /run/docker.sock ] && echo waits\n'
        "wait; tail -n 1 /run/output"
    )
    assert ended.stdout.split() == ["waits", "unix:///var/run/docker.sock"], ended.stderr
    assert len(machine.started()) == 1


def test_a_started_engine_inherits_no_descriptor_and_can_be_stopped(machine: Machine) -> None:
    reading, writing = os.pipe()
    script = LEAVE_A_DEAD_SOCKET + (
        "engine docker; engine started docker\n"
        "id=$(tail -n 1 \"$DOCKERD_STARTS\"); cut -d ' ' -f 6 /proc/$id/stat; echo $id\n"
        f"for fd in /proc/$id/fd/*; do case $(readlink $fd) in *{os.fstat(writing).st_ino}?) echo open ;; esac; done\n"
        "engine stop docker; engine started docker; [ ! -d /proc/$id ] && echo ended"
    )
    ended = machine.run(script, pass_fds=(writing,))
    os.close(writing)
    os.close(reading)
    address, running, session, process, *rest = ended.stdout.split()
    assert (address, running) == ("unix:///var/run/docker.sock", "yes"), ended.stderr
    assert session == process
    assert rest == ["no", "ended"]


def test_an_engine_that_the_script_did_not_start_is_never_stopped(machine: Machine) -> None:
    ended = machine.run(
        "dockerd --host unix:///run/docker.sock >/dev/null 2>&1 & id=$!\n"
        "while [ ! -e /run/docker.pid ]; do sleep 0.1; done\nengine docker; engine stop docker\n"
        # A pid file of this script whose process id now belongs to another process.
        'echo "$id 1" >/run/browser-shell-engine/docker.pid; engine started docker; engine stop docker\n'
        "kill -0 $id && echo lives"
    )
    assert ended.stdout.split() == ["unix:///var/run/docker.sock", "no", "lives"], ended.stderr


@pytest.mark.parametrize("package", ["docker-cli", "docker.io"])
def test_a_missing_client_is_installed_when_an_engine_answers(machine: Machine, package: str) -> None:
    for name, text in (("apt-get", APT_GET), ("apt-cache", APT_CACHE), ("dpkg-query", "#!/bin/sh\n")):
        machine.add(name, text)
    (machine.tools / "docker").unlink()
    (machine.tools / "ln").symlink_to(str(shutil.which("ln")))
    ended = machine.run(
        "dockerd --host unix:///run/docker.sock >/dev/null 2>&1 &\n"
        "while [ ! -e /run/docker.pid ]; do sleep 0.1; done\nengine docker",
        CLIENT_COMES_WITH=package,
    )
    assert ended.stdout.split() == ["unix:///var/run/docker.sock"], ended.stderr
    installs = [line.split()[-1] for line in machine.apt_log.read_text().splitlines() if " install " in line]
    assert installs == [package]
