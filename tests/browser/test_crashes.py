"""Killed processes of the box are replaced, and the calls that they interrupt fail with a clear error."""

from __future__ import annotations

import http.client
import os
import signal
import time
from pathlib import Path

import pytest

from support.in_flight import InFlight, has_started, opening_slowly
from support.pages import Site, wait_until
from support.processes import alive, descendants, listening_ports, program, zombies
from support.server import Outcome, Server
from support.time_limits import UNBLOCKED_SECONDS

CLEAR = {"SESSION_GONE", "BROWSER_UNAVAILABLE", "DRIVER_UNAVAILABLE", "COMMAND_FAILED", "TIMEOUT"}


def kill(pid: int) -> None:
    """Return when the process has ended: under load that takes longer than the next call."""
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not alive(pid), what="the end of the process")


def clear_error(outcome: Outcome) -> bool:
    return outcome.is_error and outcome.meta["name"] in CLEAR and outcome.stderr.startswith(outcome.meta["name"])


def devtools_answers(server: Server) -> bool:
    """Connect with the server's own account, the only one that the DevTools port accepts."""
    connection = http.client.HTTPConnection("127.0.0.1", server.devtools_port, timeout=2)
    os.seteuid(Path(f"/proc/{server.mark('xvnc')}").stat().st_uid)
    try:
        connection.request("GET", "/json/version")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        os.seteuid(os.getuid())
        connection.close()


def control_ports(server: Server) -> set[int]:
    """Return the ports of the driver's daemons. Each would control the browser without authentication."""
    return {port for pid in server.daemons().values() for port in listening_ports(pid)}


def assert_control_ports_closed(server: Server) -> None:
    assert list((server.devtools_directory / "s").glob("*.stream")) == []
    assert control_ports(server) == set()


def test_a_killed_daemon_is_replaced_with_its_control_port_closed(own_server: Server, site: Site) -> None:
    session = own_server.session("s")
    page = site.watch("<button id=b>b</button><script>report('alive')</script>")
    session.ok("open", page.url)
    assert_control_ports_closed(own_server)
    (old,) = own_server.daemons().values()
    kill(old)
    page.reports.clear()
    after = session.run("reload")
    print(f"killed daemon: next call {after.seconds:.2f} s")
    assert after.exit_code == 0
    assert after.seconds < UNBLOCKED_SECONDS
    page.wait_for("alive")
    assert old not in own_server.daemons().values()
    assert_control_ports_closed(own_server)

    call = opening_slowly(session, site, 30)
    (old,) = own_server.daemons().values()
    killed_at = time.monotonic()
    kill(old)
    outcome = call.outcome()
    seconds = time.monotonic() - killed_at
    print(f"daemon killed during a call: answered after {seconds:.2f} s with {outcome.meta.get('name')}")
    assert clear_error(outcome), outcome
    assert seconds < UNBLOCKED_SECONDS
    after = session.run("open", page.url)
    assert after.exit_code == 0
    assert after.seconds < UNBLOCKED_SECONDS
    session.ok("click", "#b")
    assert_control_ports_closed(own_server)
    wait_until(lambda: zombies(own_server.process.pid) == [], what="the end of zombies")


def test_a_killed_chromium_is_replaced(own_server: Server, site: Site) -> None:
    session, other = own_server.session("s"), own_server.session("other")
    url = site.watch("<p id=p>text</p>").url
    session.ok("open", url)
    other.ok("open", url)
    old = own_server.mark("chromium")
    killed_at = time.monotonic()
    kill(old)
    wait_until(lambda: devtools_answers(own_server), what="DevTools")
    print(f"killed Chromium: DevTools answer again after {time.monotonic() - killed_at:.2f} s")
    refused = session.run("get", "text", "#p")
    assert (refused.exit_code, refused.meta["name"]) == (1, "SESSION_GONE")
    session.ok("open", url)
    print(f"killed Chromium: a page is open again after {time.monotonic() - killed_at:.2f} s")
    assert time.monotonic() - killed_at < 20
    assert session.ok("get", "text", "#p")["text"] == "text"
    reopened = other.run("open", url)
    assert reopened.exit_code == 0
    assert "restarted" in reopened.stderr
    assert own_server.mark("chromium") != old
    assert len(list((own_server.devtools_directory / "t").iterdir())) == 1  # The lock of the new browser.
    assert list(own_server.devtools_directory.glob("t.*")) == []  # The directory of the old one is removed.
    wait_until(lambda: zombies(own_server.process.pid) == [], what="the end of zombies")
    assert_control_ports_closed(own_server)


def test_a_browser_that_replaced_its_temporary_directory_by_a_link_is_restarted(own_server: Server, site: Site) -> None:
    """A compromised browser process can do this, because its account owns the directory."""
    temporary = own_server.devtools_directory / "t"
    old = own_server.mark("chromium")
    temporary.rename(temporary.with_name("elsewhere"))
    temporary.symlink_to("elsewhere")
    kill(old)
    session = own_server.session("s")
    url = site.watch("<p id=p>text</p>").url
    wait_until(lambda: session.run("open", url).exit_code == 0, what="the browser")
    assert own_server.process.poll() is None
    assert not temporary.is_symlink()
    assert len(list(temporary.iterdir())) == 1


def test_calls_in_flight_fail_when_chromium_dies(own_server: Server, site: Site) -> None:
    sessions = [own_server.session(name) for name in ("a", "b")]
    calls = [opening_slowly(session, site, 60) for session in sessions]
    killed_at = time.monotonic()
    kill(own_server.mark("chromium"))
    for call in calls:
        outcome = call.outcome()
        assert clear_error(outcome), outcome
        assert outcome.exit_code in (1, 127), outcome
    print(f"Chromium killed during calls: answered after {time.monotonic() - killed_at:.2f} s")
    assert time.monotonic() - killed_at < UNBLOCKED_SECONDS
    url = site.watch("<p id=p>text</p>").url
    wait_until(lambda: sessions[0].run("open", url).exit_code == 0, what="the browser")
    sessions[1].ok("open", url)
    assert sessions[1].ok("get", "text", "#p")["text"] == "text"
    wait_until(lambda: zombies(own_server.process.pid) == [], what="the end of zombies")


def test_a_call_reports_a_chromium_that_dies_while_the_driver_starts(own_server: Server, site: Site) -> None:
    session = own_server.session("s")
    url = site.watch("<p id=p>text</p>").url
    session.ok("open", url)
    (daemon,) = own_server.daemons().values()
    chromium = own_server.mark("chromium")
    # The new daemon waits for the stopped browser until the browser dies.
    os.kill(chromium, signal.SIGSTOP)
    kill(daemon)
    call = InFlight(session, "reload")
    wait_until(lambda: not set(own_server.daemons().values()) <= {daemon}, what="the new driver")
    kill(chromium)
    outcome = call.outcome()
    assert (outcome.exit_code, outcome.meta["name"]) == (127, "BROWSER_UNAVAILABLE"), outcome
    wait_until(lambda: session.run("open", url).exit_code == 0, what="the browser")


def test_a_daemon_that_ended_is_reaped_when_its_session_is_closed(own_server: Server, site: Site) -> None:
    session = own_server.session("s")
    outcome = session.run("open", site.watch("<script>confirm('enter?')</script>").url)
    assert outcome.meta["name"] == "DIALOG_OPEN"
    (daemon,) = own_server.daemons().values()
    kill(daemon)  # A daemon also ends by itself, after a long idle time.
    session.ok("close")
    wait_until(lambda: zombies(own_server.process.pid) == [], what="the end of zombies")


@pytest.mark.parametrize("argv", [("wait", 20_000), ("wait", "#never"), ("wait", "--text", "never")])
def test_a_wait_fails_when_chromium_dies(own_server: Server, site: Site, argv: tuple[str | int, ...]) -> None:
    session = own_server.session("s")
    session.ok("open", site.watch("<p>here</p>").url)
    call = InFlight(session, *argv)
    wait_until(lambda: has_started(session, "wait"), what="the wait")
    time.sleep(1)  # The record is written before the driver gets the command, which no event reports.
    assert call.running
    kill(own_server.mark("chromium"))
    outcome = call.outcome()
    assert (outcome.exit_code, outcome.meta["name"]) == (127, "BROWSER_UNAVAILABLE"), outcome


def test_a_killed_display_is_replaced_with_its_browser(own_server: Server, site: Site) -> None:
    session = own_server.session("s")
    page = site.watch("<button id=b onclick=\"report('alive')\">b</button>")
    session.ok("open", page.url)
    old = own_server.mark("xvnc"), own_server.mark("chromium")
    kill(old[0])
    wait_until(lambda: not any(map(alive, old)), what="the end of display and browser")
    wait_until(lambda: session.run("open", page.url).exit_code == 0, what="the browser")
    session.ok("click", "#b")
    page.wait_for("alive")
    assert session.run("screenshot").exit_code == 0
    assert own_server.mark("xvnc") != old[0]
    wait_until(lambda: zombies(own_server.process.pid) == [], what="the end of zombies")

    # The end of the window manager does not affect sessions.
    def managers() -> list[int]:
        return [
            pid for pid in descendants(own_server.process.pid) if program(pid).startswith("matchbox") and alive(pid)
        ]

    wait_until(lambda: len(managers()) == 1, what="the window manager")
    (manager,) = managers()
    kill(manager)
    page.reports.clear()
    session.ok("click", "#b")
    page.wait_for("alive")
    wait_until(lambda: len(managers()) == 1 and managers() != [manager], what="another window manager")
    assert session.run("screenshot").exit_code == 0
