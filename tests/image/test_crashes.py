"""Recovery of killed parts without a restart of the container, and a quick and clean shutdown."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest

from support.boxes import Box, command_line, lock_flags, running_box
from support.engine import Engine, Network
from support.pages import Site, wait_until
from support.processes import alive, state
from support.time_limits import within

BACK_SECONDS = 3
END_SECONDS = 3
DRIVER = "/usr/local/lib/browser-shell/agent-browser"


@pytest.fixture(scope="module")
def fragile(engine: Engine, network: Network, policy: dict[str, Any]) -> Iterator[Box]:
    """A box whose parts the tests kill."""
    with running_box(engine, network=network.name, policy=policy) as running:
        yield running


def part(box: Box, name: str) -> int:
    if name == "chromium":
        return box.browser_pid()
    words = {"Xvnc": "/usr/bin/Xtigervnc", "window manager": "/usr/bin/matchbox"}
    (pid,) = [pid for pid in box.running(words[name]) if command_line(pid).startswith(words[name])]
    return pid


@pytest.mark.parametrize("name", ["chromium", "Xvnc", "window manager"])
def test_a_killed_part_is_restarted(fragile: Box, site: Site, name: str) -> None:
    first = fragile.pid
    fragile.session("before").ok("open", site.watch("").url)
    killed, browser = part(fragile, name), fragile.browser_pid()
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: not alive(killed), what="the end of the part")
    if name != "window manager":
        wait_until(lambda: not alive(browser), what="the old browser's end")
        started_at = time.monotonic()
        fragile.wait_healthy(seconds=20)
        assert within(time.monotonic() - started_at, BACK_SECONDS)
    wait_until(lambda: bool(fragile.running("/usr/bin/matchbox")), what="the window manager")
    page = site.watch("<p>Back")
    assert fragile.session("after").ok("open", page.url)["title"] == "watched"
    assert fragile.pid == first


def test_a_killed_driver_daemon_is_replaced(fragile: Box, site: Site) -> None:
    session = fragile.session("driver")
    session.ok("open", site.watch("<p>Here").url)
    browser = fragile.browser_pid()
    drivers = [pid for pid in fragile.running(DRIVER) if command_line(pid).startswith(DRIVER)]
    assert drivers
    for pid in drivers:
        os.kill(pid, signal.SIGKILL)
    session.ok("open", site.watch("<p>There").url)
    assert "There" in str(session.ok("get", "text", "p"))
    assert fragile.browser_pid() == browser


def test_no_zombie_is_left_after_the_crashes(fragile: Box) -> None:
    wait_until(
        lambda: not [pid for pid in fragile.processes() if state(pid) == "Z"], seconds=10, what="every child collected"
    )


def test_a_box_with_sessions_ends_within_three_seconds_with_a_complete_audit_log(
    engine: Engine, network: Network, policy: dict[str, Any], site: Site
) -> None:
    volume = f"bsb-state-{os.getpid()}"
    engine.do("volume", "create", volume)
    try:
        state = ("--volume", f"{volume}:/var/lib/browser-shell")
        with running_box(engine, network=network.name, policy=policy, state=state) as box:
            for name in ("one", "two", "three"):
                box.session(name).ok("open", site.watch("").url)
            exit_code, seconds = box.terminate()
        assert exit_code == 0
        assert within(seconds, END_SECONDS)
        verified = engine.finish(
            *("run", "--rm", "--network", "none", *lock_flags(), *engine.run_flags),
            *("--volume", f"{volume}:/var/lib/browser-shell", engine.image, "audit", "verify"),
        )
        assert verified.returncode == 0, verified.stdout + verified.stderr
        assert "not signed yet" not in verified.stdout
    finally:
        engine.finish("volume", "rm", "--force", volume)


@pytest.mark.parametrize("after_seconds", [0.1, 0.6])
def test_a_starting_box_can_be_stopped(engine: Engine, network: Network, after_seconds: float) -> None:
    """The kernel ignores signals without a handler for the first process of a container."""
    name = f"bsb-early-{os.getpid()}"
    engine.do(
        "run", "--detach", "--name", name, "--network", network.name, *lock_flags(), *engine.run_flags, engine.image
    )
    try:
        time.sleep(after_seconds)  # Stop at this stage of the start.
        started_at = time.monotonic()
        engine.do("kill", "--signal", "TERM", name)
        engine.do("wait", name, seconds=20)
        assert within(time.monotonic() - started_at, END_SECONDS)
    finally:
        engine.finish("rm", "--force", "--volumes", name)


def test_a_full_state_volume_refuses_calls_until_there_is_space(
    engine: Engine, network: Network, policy: dict[str, Any], site: Site
) -> None:
    python = "/opt/browser-shell/bin/python"
    fill = (
        "file = open('/var/lib/browser-shell/filler', 'wb', 0)\n"
        "try:\n    while True: file.write(bytes(1024))\nexcept OSError: pass"
    )
    owner = "uid=1000,gid=1000" if engine.name == "docker" else "U"
    small = ("--tmpfs", f"/var/lib/browser-shell:size=4m,{owner}")
    with running_box(engine, network=network.name, policy=policy, state=small) as box:
        session = box.session("disk")
        session.ok("open", site.watch("<p>Here").url)
        assert box.inside(python, "-c", fill).returncode == 0
        # The last block of the log file has space for a few more records.
        answers = [session.run("get", "title") for _ in range(30)]
        assert (answers[-1].exit_code, answers[-1].stderr.split(":")[0]) == (75, "AUDIT_UNAVAILABLE")
        box.inside(python, "-c", "import os; os.remove('/var/lib/browser-shell/filler')")
        wait_until(lambda: session.run("get", "title").exit_code == 0, seconds=10, what="calls again")
