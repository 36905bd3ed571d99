"""Confinement of the box's processes, ports and files, seen from the kernel."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.live_folders import content, files_below
from support.pages import Site
from support.processes import argv, descendants, listening_ports, program, status
from support.server import Server, Session
from support.time_limits import UNBLOCKED_SECONDS


def processes_of(server: Server, name: str) -> list[int]:
    pids = [pid for pid in descendants(server.process.pid) if program(pid).startswith(name)]
    assert pids, f"no {name} runs"
    return pids


@pytest.mark.promise("processes:chromium-sandboxed")
def test_chromium_runs_without_flags_that_weaken_its_sandbox(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch("").url)
    forbidden = ("--no-sandbox", "--disable-web-security", "--remote-allow-origins", "--disable-setuid-sandbox")
    for pid in processes_of(browser.server, "chromium"):
        command_line = " ".join(argv(pid))
        assert not [flag for flag in forbidden if flag in command_line], command_line


@pytest.mark.promise("processes:chromium-sandboxed")
def test_every_renderer_is_confined_by_the_kernel(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch("").url)
    renderers = [pid for pid in processes_of(browser.server, "chromium") if "--type=renderer" in " ".join(argv(pid))]
    assert renderers
    for pid in renderers:
        assert status(pid, "Seccomp") == "2"
        assert status(pid, "NoNewPrivs") == "1"
        # More than one number: the renderer is in a pid namespace of its own.
        assert len(status(pid, "NSpid").split()) > 1


@pytest.mark.promise("processes:server-not-root")
def test_the_server_is_not_root_and_has_no_capability_but_that_to_read_files(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch("<p>Here").url)
    server = browser.server.process.pid
    for pid in (server, *descendants(server)):
        assert "0" not in status(pid, "Uid").split(), argv(pid)
    cap_dac_read_search = 1 << 2
    assert int(status(server, "CapEff"), 16) in (0, cap_dac_read_search)


# The first group is set by the server, the rest by the CLI for its daemon.
DRIVER_ENVIRONMENT = {
    *("PATH", "HOME", "LC_ALL", "NO_COLOR", "TOKIO_WORKER_THREADS", "MALLOC_ARENA_MAX"),
    *(
        f"AGENT_BROWSER_{name}"
        for name in (
            *("SOCKET_DIR", "CONFIG", "ACTION_POLICY", "PLUGINS", "NO_WEBMCP", "IDLE_TIMEOUT_MS", "DEFAULT_TIMEOUT"),
            *("SCREENSHOT_DIR", "NO_AUTO_DIALOG"),
            *("DAEMON", "SESSION", "CDP", "PIN_TAB", "HIDE_SCROLLBARS"),
        )
    ),
}


def test_the_driver_has_exactly_the_expected_environment_variables(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch("").url)
    for daemon in browser.server.daemons().values():
        entries = Path(f"/proc/{daemon}/environ").read_bytes().decode().rstrip("\0").split("\0")
        environment = dict(entry.split("=", 1) for entry in entries)
        assert environment.keys() == DRIVER_ENVIRONMENT
        # One worker thread, whatever the number of cores.
        assert environment["TOKIO_WORKER_THREADS"] == "1"


@pytest.mark.promise("processes:driver-memory")
def test_the_memory_of_the_drivers_daemons_is_limited(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch("").url)
    for daemon in browser.server.daemons().values():
        # A daemon stores the console output of pages without a limit of its own.
        limits = Path(f"/proc/{daemon}/limits").read_text(encoding="ascii").splitlines()
        (data,) = [line.split() for line in limits if line.startswith("Max data size")]
        assert data[3:] == ["536870912", "536870912", "bytes"]


@pytest.mark.promise("processes:chromium-not-root")
@pytest.mark.parametrize("name", ["chromium", "Xtigervnc", "matchbox", "agent-browser"])
def test_no_process_of_the_browser_is_root(browser: Session, site: Site, name: str) -> None:
    browser.ok("open", site.watch("").url)
    for pid in processes_of(browser.server, name):
        users = status(pid, "Uid").split()
        if users:  # The process may have ended since it was listed.
            assert "0" not in users, (name, users)
        if name != "chromium" and users:  # Processes of Chromium have capabilities in user namespaces of their own.
            assert int(status(pid, "CapEff"), 16) == 0


@pytest.mark.promise("processes:nothing-on-command-lines")
def test_typed_text_is_on_no_command_line_and_in_no_file(browser: Session, site: Site) -> None:
    secret = "correct-horse-battery-staple"
    browser.ok("open", site.watch("<input id=i type=password>").url)
    browser.ok("fill", "#i", secret)
    browser.ok("type", "#i", secret)
    for pid in descendants(browser.server.process.pid):
        assert secret not in " ".join(argv(pid))
    files = list(files_below(browser.server.runtime, browser.server.state, without="profile"))
    assert any(path.name == "audit.jsonl" and content(path) for path in files)
    for path in files:
        assert secret.encode() not in content(path), path


@pytest.mark.promise("processes:no-other-port")
def test_the_only_open_ports_are_the_public_one_and_devtools(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch("").url)
    server = browser.server
    ports = {port for pid in (server.process.pid, *descendants(server.process.pid)) for port in listening_ports(pid)}
    assert ports == {server.port, server.devtools_port}


@pytest.mark.promise("files:no-download")
def test_a_download_writes_no_file_and_blocks_no_call(browser: Session, site: Site) -> None:
    marker = b"downloaded bytes of this very test"
    headers = {"Content-Type": "application/octet-stream", "Content-Disposition": "attachment; filename=evil.bin"}
    file = site.add("/evil.bin", marker * 10, headers)
    page = site.watch(
        f"<a id=plain href='{file}'>plain</a><a id=named href='{file}' download='named.bin'>named</a>"
        "<button id=blob onclick=\"const made = document.createElement('a'); made.download = 'blob.bin';"
        "made.href = URL.createObjectURL(new Blob(['x'])); made.click()\">blob</button>"
        "<button id=b onclick=\"report('alive')\">b</button>"
    )
    browser.ok("open", page.url)
    for selector in ("#plain", "#named", "#blob", "#b"):
        outcome = browser.run("click", selector)
        assert outcome.exit_code == 0
        assert outcome.seconds < UNBLOCKED_SECONDS
    page.wait_for("alive")
    direct = browser.run("open", file)
    assert direct.exit_code == 1
    assert direct.seconds < UNBLOCKED_SECONDS

    names = {"evil.bin", "named.bin", "blob.bin"}
    directories = [browser.server.runtime, browser.server.state, Path.home() / "Downloads"]
    assert [path for path in files_below(*directories) if path.name in names or path.suffix == ".crdownload"] == []


@pytest.mark.promise("files:no-download")
def test_a_refused_download_creates_no_temporary_file(browser: Session, site: Site) -> None:
    """Chromium starts a download with a temporary file before it checks its policy."""
    temporary = browser.server.devtools_directory / "t"
    browser.ok("open", site.watch("<p>text</p>").url)
    entries, changed = list(temporary.iterdir()), temporary.stat().st_mtime_ns
    assert len(entries) == 1, "only the lock that Chromium creates at its start"
    headers = {"Content-Type": "application/octet-stream", "Content-Disposition": "attachment"}
    refused = browser.run("open", site.add("/large.bin", b"x" * 5_000_000, headers))
    assert (refused.exit_code, refused.meta["name"]) == (1, "COMMAND_FAILED")
    assert "ERR_ABORTED" in refused.stderr
    browser.ok("wait", 300)
    # A file that was created and removed would have changed the modification time of the directory.
    assert (list(temporary.iterdir()), temporary.stat().st_mtime_ns) == (entries, changed)


@pytest.mark.promise("files:no-upload")
def test_a_file_field_accepts_no_file_and_blocks_no_call(browser: Session, site: Site) -> None:
    page = site.watch(
        "<input type=file id=f onchange=\"report('chosen')\"><button id=b onclick='report(f.files.length)'>b</button>"
    )
    browser.ok("open", page.url)
    clicked = browser.run("click", "#f")
    assert clicked.seconds < UNBLOCKED_SECONDS
    browser.run("fill", "#f", "/etc/passwd")
    browser.run("type", "#f", "/etc/passwd")
    browser.ok("click", "#b")
    page.wait_for(0)
    assert page.reports == [0]


@pytest.mark.promise("output:no-server-path")
def test_no_result_contains_a_path_of_the_server(browser: Session, site: Site) -> None:
    page = site.watch("<button id=b onclick='confirm(1)'>b</button><select id=s><option>a</select>")
    outcomes = [
        browser.run("open", page.url),
        browser.run("open", f"{site.origin}/none"),
        browser.run("open", page.url),
        *(
            browser.run(*words)
            for words in (("snapshot",), ("screenshot",), ("pdf",), ("get", "url"), ("click", "@e99"))
        ),
        *(browser.run(*words) for words in (("select", "#s", "zzz"), ("tab", "switch", "t9"))),
        *(browser.run(*words) for words in (("click", "#b"), ("snapshot",), ("dialog", "accept"), ("close",))),
    ]
    outcomes.append(browser.run("open", f"{site.origin}/slow/9", timeout=1))
    for outcome in outcomes:
        text = (outcome.stdout + outcome.stderr).replace(site.origin, "")
        assert not re.search(r"(?<![\w:/])/(tmp|run|root|home|var|usr|etc|work|opt)/", text), text
        assert str(browser.server.devtools_port) not in text
