"""The jail of a running server: its state in /proc, killed processes, a stopped proxy and a full disk."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from websockets.sync.client import connect

from support.canaries import AuditReader, Canary, running_canary
from support.jails import in_same_network, network_of
from support.pages import Site, running_site, wait_until
from support.processes import alive, argv, descendants, state, status
from support.server import Outcome, Server, Session, running_server

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can look into another account's processes"),
]

_RECOVERY_SECONDS = 20
_LOOP = """<title>loop</title><script>
setInterval(() => { for (const url of URLS) fetch(url + '/?' + Math.random(), {mode: 'no-cors'}).catch(() => 0) }, 50)
</script>"""


@dataclass
class Box:
    server: Server
    site: Site
    allowed: Canary
    forbidden: Canary

    @property
    def chromium(self) -> int:
        """The pid of the browser's main process."""
        return self.server.mark("chromium")

    def renderers(self) -> list[int]:
        return [pid for pid in descendants(self.chromium) if "--type=renderer" in command_line(pid)]

    def open_loop(self, session: Session) -> None:
        """Open a page that requests both canaries many times a second."""
        urls = json.dumps([self.allowed.origin, self.forbidden.origin])
        session.ok("open", self.site.add("/loop", _LOOP.replace("URLS", urls)))
        self.wait_for_requests()

    def wait_for_requests(self) -> None:
        before = self.allowed.connections
        wait_until(lambda: self.allowed.connections > before + 2, seconds=10, what="requests of the page")

    def wait_for_attempts(self, count: int = 3) -> None:
        """Wait until the page has tried again to connect to the proxy."""
        before = opened_connections(self.chromium)
        wait_until(lambda: opened_connections(self.chromium) >= before + count, what="attempts of the page")


@contextmanager
def running_box(env: dict[str, str] | None = None) -> Iterator[Box]:
    with ExitStack() as stack:
        site = stack.enter_context(running_site())
        allowed, forbidden = stack.enter_context(running_canary()), stack.enter_context(running_canary())
        addresses = [f"127.0.0.1:{site.port}", f"127.0.0.1:{allowed.port}"]
        server = stack.enter_context(running_server({"open": {"unsafe_allow_addresses": addresses}}, env=env))
        yield Box(server, site, allowed, forbidden)


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    with running_box() as running:
        yield running


@pytest.fixture
def browser(box: Box) -> Iterator[Session]:
    session = box.server.session("jail")
    wait_for_recovery(session, box.site)
    yield session
    session.run("close")


def command_line(pid: int) -> str:
    """Return the arguments separated by spaces, as Chromium's children already write them."""
    return " ".join(argv(pid))


def wait_for_recovery(session: Session, site: Site) -> None:
    """Open a page, and try again while the call fails with an error of the browser."""
    url = site.add("/fine", "<title>fine</title>")
    deadline = time.monotonic() + _RECOVERY_SECONDS
    while True:
        outcome = session.run("open", url, timeout=10)
        if outcome.exit_code == 0:
            assert outcome.data["title"] == "fine"
            return
        assert is_clear(outcome), outcome
        assert time.monotonic() < deadline, outcome
        time.sleep(0.2)


def is_clear(outcome: Outcome) -> bool:
    """Check that an error names the cause and is no internal error of the server."""
    return outcome.meta["name"] in ("BROWSER_UNAVAILABLE", "DRIVER_UNAVAILABLE", "SESSION_GONE", "COMMAND_FAILED")


@pytest.mark.promise("jail:sandbox-on")
def test_every_process_is_unprivileged_and_renderers_are_sandboxed(box: Box, browser: Session) -> None:
    processes = descendants(box.server.process.pid)
    assert {box.chromium, *box.renderers()} <= set(processes)
    assert program_name(box.chromium) == "chromium"
    for pid in processes:
        arguments = command_line(pid)
        assert "no-sandbox" not in arguments
        assert "disable-seccomp" not in arguments
        users, groups = status(pid, "Uid").split(), status(pid, "Gid").split()
        if not alive(pid):
            continue
        assert users, arguments
        assert "0" not in users + groups, arguments
        assert status(pid, "Groups") in ("", groups[0]), arguments
    assert box.renderers()
    for pid in box.renderers():
        assert status(pid, "Seccomp") == "2"
        assert len(status(pid, "NSpid").split()) > 1
    for pid in (box.chromium, *box.renderers()):
        assert status(pid, "CapEff") == status(pid, "CapPrm") == "0" * 16
        assert status(pid, "NoNewPrivs") == "1"


@pytest.mark.promise("jail:no-way-out")
def test_the_browsers_network_has_no_interface_but_loopback(box: Box, browser: Session) -> None:
    ours = network_of("self")
    inside = [box.chromium, *descendants(box.chromium)]
    assert len(inside) > 4
    for pid in inside:
        assert network_of(pid) != ours
        assert interfaces(pid) == ["lo"]
        assert Path(f"/proc/{pid}/net/route").read_text(encoding="ascii").splitlines()[1:] == []
        assert not [line for line in _lines(f"/proc/{pid}/net/ipv6_route") if not line.endswith("lo")]
    # Zygotes and renderers are in network namespaces of their own, without any interface that is up.
    assert {program_name(pid) for pid in in_same_network(box.chromium)} <= {"chromium", "chrome_crashpad_handler"}


def program_name(pid: int) -> str:
    return Path(f"/proc/{pid}/exe").readlink().name


def interfaces(pid: int) -> list[str]:
    return [line.partition(":")[0].strip() for line in _lines(f"/proc/{pid}/net/dev")[2:]]


def _lines(path: str) -> list[str]:
    return Path(path).read_text(encoding="ascii").splitlines()


@pytest.mark.promise("jail:files-hidden")
def test_home_directories_are_hidden_and_the_servers_policy_is_mounted(box: Box, browser: Session) -> None:
    root = Path(f"/proc/{box.chromium}/root")
    for hidden in ("home", "root", "srv", "mnt", "media"):
        assert list((root / hidden).iterdir()) == []
    policy = json.loads((root / "etc/chromium/policies/managed/browser-shell.json").read_text(encoding="utf-8"))
    assert policy["DownloadRestrictions"] == 3
    assert not Path("/etc/chromium/policies/managed/browser-shell.json").exists()


@pytest.mark.parametrize("name", ["s", "etc", "out", "identities", "log", "empty"])
def test_the_browser_finds_no_file_of_the_driver_and_the_server(box: Box, browser: Session, name: str) -> None:
    """Chromium shares the account of the driver, whose daemons obey every client of their sockets."""
    directory = box.server.devtools_directory / name
    assert list(Path(f"/proc/{box.chromium}/root{directory}").iterdir()) == []


def test_the_browsers_environment_holds_no_secret_of_the_server(box: Box, browser: Session) -> None:
    names = {entry.partition("=")[0] for entry in _environment(box.chromium)}
    assert names <= {"HOME", "LANG", "PATH", "TMPDIR", "TZ", "DISPLAY", "XAUTHORITY", "CHROME_DEVEL_SANDBOX"}, names


def _environment(pid: int) -> list[str]:
    return [entry for entry in Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0") if entry]


@pytest.mark.promise("jail:direct-context")
def test_a_direct_context_reaches_nothing(box: Box, browser: Session) -> None:
    """Create the context with DevTools, as a deceived driver could. Only the missing network stops it."""
    port, owner = box.server.devtools_port, Path(f"/proc/{box.chromium}").stat().st_uid
    # The DevTools port accepts sockets of the server's own account only.
    os.seteuid(owner)
    try:
        with urlopen(f"http://127.0.0.1:{port}/json/version", timeout=10) as response:
            version = json.load(response)
        connection = socket.create_connection(("127.0.0.1", port))
    finally:
        os.seteuid(os.getuid())
    with connect(version["webSocketDebuggerUrl"], proxy=None, max_size=None, sock=connection) as devtools:
        context = _call(devtools, "Target.createBrowserContext", {"proxyServer": "direct://"})["browserContextId"]
        for url in (box.allowed.origin, box.forbidden.origin, f"http://127.0.0.1:{box.server.port}/mcp"):
            before = box.allowed.connections
            target = _call(devtools, "Target.createTarget", {"url": f"{url}/direct", "browserContextId": context})
            session = _call(devtools, "Target.attachToTarget", {"targetId": target["targetId"], "flatten": True})
            reply = _call(devtools, "Page.navigate", {"url": f"{url}/direct"}, session["sessionId"])
            assert reply["errorText"] == "net::ERR_CONNECTION_REFUSED"
            assert box.allowed.connections == before
        _call(devtools, "Target.disposeBrowserContext", {"browserContextId": context})
    assert box.forbidden.connections == 0


def _call(devtools: Any, method: str, params: dict[str, Any], session: str = "") -> Any:
    message = {"id": 1, "method": method, "params": params}
    devtools.send(json.dumps({**message, "sessionId": session} if session else message))
    while True:
        reply = json.loads(devtools.recv(10))
        if reply.get("id") == 1:
            assert "error" not in reply, reply
            return reply["result"]


@pytest.mark.promise("egress:proxy-down")
def test_a_stopped_proxy_means_no_network(box: Box, browser: Session) -> None:
    box.open_loop(browser)
    chromium = box.chromium
    box.server.process.send_signal(signal.SIGSTOP)
    try:
        wait_until(lambda: state(box.server.process.pid) == "T", what="the stop of the server")
        # The canary counts a connection that the proxy opened before the stop within one attempt of the page.
        box.wait_for_attempts(1)
        before = box.allowed.connections
        box.wait_for_attempts(1)
        assert box.allowed.connections == before
        assert interfaces(chromium) == ["lo"]
        # Apart from connections to the proxy and to DevTools, there is the listener of `NamespaceSockets`.
        expected = {3128, box.server.devtools_port}
        others = [(local, remote) for local, remote in tcp_ports(chromium) if not {local, remote} & expected]
        assert [remote for _, remote in others] == [0], others
    finally:
        box.server.process.send_signal(signal.SIGCONT)
    box.wait_for_requests()
    assert box.forbidden.connections == 0
    wait_for_recovery(browser, box.site)


def opened_connections(pid: int) -> int:
    """Return how often programs in this namespace have tried to connect."""
    names, values = (line.split() for line in _lines(f"/proc/{pid}/net/snmp") if line.startswith("Tcp:"))
    return int(values[names.index("ActiveOpens")])


def tcp_ports(pid: int) -> set[tuple[int, int]]:
    rows = [line.split() for name in ("tcp", "tcp6") for line in _lines(f"/proc/{pid}/net/{name}")[1:]]
    assert all(row[1][:8].endswith("7F") or set(row[1].partition(":")[0]) == {"0"} for row in rows), rows
    return {(int(row[1].partition(":")[2], 16), int(row[2].partition(":")[2], 16)) for row in rows}


@pytest.mark.promise("faults:killed-part")
@pytest.mark.parametrize("victim", ["chromium", "network service", "zygote", "inner zygote", "daemon"])
def test_a_killed_process_is_replaced_and_no_old_process_is_left(box: Box, browser: Session, victim: str) -> None:
    old = [box.chromium, *descendants(box.chromium)]
    lines = {pid: command_line(pid) for pid in old}
    network = next(pid for pid in old if "network.mojom" in lines[pid])
    zygotes = [pid for pid in old if "--type=zygote" in lines[pid] and "--no-zygote-sandbox" not in lines[pid]]
    # Right after its fork, a renderer has the command line of a zygote, but no children.
    zygotes = [pid for pid in zygotes if descendants(pid)]
    (daemon,) = box.server.daemons().values()
    victims = {"chromium": box.chromium, "network service": network, "daemon": daemon}
    os.kill((victims | {"zygote": zygotes[0], "inner zygote": zygotes[-1]})[victim], 9)

    outcome = browser.run("get", "url", timeout=10)
    assert outcome.exit_code == 0 or is_clear(outcome), outcome
    assert outcome.seconds < 15
    wait_for_recovery(browser, box.site)

    if victim != "daemon":
        wait_until(lambda: not any(alive(pid) for pid in old), what="the end of the old browser")
        assert network_of(box.chromium) != network_of("self")
    if victim == "daemon":
        assert not alive(daemon)
    box.open_loop(browser)
    assert box.forbidden.connections == 0


@pytest.mark.promise("faults:idle-proxy-connections")
def test_idle_connections_to_the_proxy_block_no_session(box: Box, browser: Session) -> None:
    script = (
        "import socket, sys\n"
        "idle = [socket.create_connection(('127.0.0.1', 3128)) for _ in range(200)]\n"
        "idle += [socket.create_connection(('127.77.7.7', 3128)) for _ in range(200)]\n"
        "print('ready', flush=True); sys.stdin.read()"
    )
    inside = [*("nsenter", f"--net=/proc/{box.chromium}/ns/net"), sys.executable, "-c", script]
    with subprocess.Popen(inside, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as idle:
        assert idle.stdout is not None
        assert idle.stdin is not None
        assert idle.stdout.readline() == "ready\n"
        outcome = browser.run("open", box.site.add("/idle", "<title>idle</title>"), timeout=10)
        other = box.server.session("other")
        assert other.ok("open", box.site.add("/idle2", "<title>idle</title>"))["title"] == "idle"
        other.run("close")
        idle.stdin.close()
    assert outcome.exit_code == 0


@contextmanager
def small_disk() -> Iterator[Path]:
    place = Path(tempfile.mkdtemp(prefix="bsh-disk-", dir="/tmp"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "none", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)
        place.rmdir()


def fill(path: Path) -> None:
    """Write a file until the disk is full."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    with suppress(OSError):
        while os.write(descriptor, b"x" * 1024):
            pass
    os.close(descriptor)


@pytest.mark.promise("audit:full-disk")
def test_a_full_disk_stops_calls_and_connections_until_there_is_space() -> None:
    with small_disk() as disk, running_box({"BROWSER_SHELL_STATE_DIR": str(disk)}) as box:
        box.server.state = disk
        browser = box.server.session("disk")
        box.open_loop(browser)
        filler = disk / "filler"
        fill(filler)
        wait_until(lambda: browser.run("get", "url").exit_code == 75, what="a refusal")
        outcome = browser.run("get", "url")
        assert (outcome.exit_code, outcome.meta["name"]) == (75, "AUDIT_UNAVAILABLE")
        box.wait_for_attempts()
        before = box.allowed.connections
        box.wait_for_attempts()
        assert box.allowed.connections == before

        filler.unlink()
        wait_for_recovery(browser, box.site)
        box.open_loop(browser)
        assert box.forbidden.connections == 0
        numbers = [record["seq"] for record in AuditReader(box.server).records()]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


@pytest.mark.promise("faults:killed-server")
def test_a_killed_server_leaves_no_browser() -> None:
    with running_box() as box:
        browser = box.server.session("kill")
        box.open_loop(browser)
        inside = [box.chromium, *descendants(box.chromium)]
        box.server.process.kill()
        wait_until(lambda: not any(alive(pid) for pid in inside), what="the end of the browser")
        # The next server ends the daemons of the driver.
        daemons = [pid for pid in box.server.daemons().values() if alive(pid)]
        with running_server({}, env=_same_directories(box.server)):
            wait_until(lambda: not any(alive(pid) for pid in daemons), what="the end of the daemons")


def _same_directories(server: Server) -> dict[str, str]:
    return {
        "BROWSER_SHELL_RUNTIME_DIR": str(server.runtime),
        "BROWSER_REMOTE_DEBUGGING_PORT": str(server.devtools_port),
    }


@pytest.mark.promise("jail:no-jail-no-start")
def test_without_user_namespaces_the_server_exits_with_advice() -> None:
    folder = Path(tempfile.mkdtemp(prefix="bsh-nojail-", dir="/tmp"))
    folder.chmod(0o711)
    env = {
        **{"PATH": "/usr/bin:/bin", "HOME": "/root", "PYTHONPATH": os.environ.get("PYTHONPATH", "")},
        **{"BROWSER_SHELL_RUNTIME_DIR": str(folder / "r"), "BROWSER_SHELL_STATE_DIR": str(folder / "state")},
        **{"BROWSER_REMOTE_DEBUGGING_PORT": "0", "PUBLIC_PORT": "0"},
    }
    wrapper = Path(__file__).parent.parent / "support" / "without_namespaces.py"
    command = Path(sys.executable).with_name("browser-shell")
    try:
        ended = subprocess.run(
            [sys.executable, wrapper, command, "serve"],
            env=env,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert ended.returncode == 2, ended.stderr
        assert "unshare: No space left on device" in ended.stderr
        assert "sysctl kernel.unprivileged_userns_clone=1" in ended.stderr
        assert "is ready" not in ended.stdout
        assert not [path for path in Path("/proc").glob("[0-9]*/cmdline") if _mentions(path, str(folder))]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _mentions(path: Path, text: str) -> bool:
    try:
        return text in path.read_bytes().decode(errors="replace")
    except OSError:
        return False
