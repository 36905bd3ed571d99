"""What the kernel says about the running box, and what pages and commands cannot make it do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.live_folders import content, files_below
from support.pages import Site
from support.processes import argv, descendants, listening_ports, program, status
from support.server import Server, Session


def family_of(server: Server, name: str) -> list[int]:
    found = [pid for pid in descendants(server.process.pid) if program(pid).startswith(name)]
    assert found, f"no {name} runs"
    return found


@pytest.mark.promise("processes:chromium-sandboxed")
def test_chromium_runs_without_flags_that_weaken_it(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch("").url)
    weak = ("--no-sandbox", "--disable-web-security", "--remote-allow-origins", "--disable-setuid-sandbox")
    for pid in family_of(browser.server, "chromium"):
        words = " ".join(argv(pid))
        assert not [flag for flag in weak if flag in words], words


@pytest.mark.promise("processes:chromium-sandboxed")
def test_every_renderer_is_confined_by_the_kernel(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch("").url)
    renderers = [pid for pid in family_of(browser.server, "chromium") if "--type=renderer" in " ".join(argv(pid))]
    assert renderers
    for pid in renderers:
        assert status(pid, "Seccomp") == "2"
        assert status(pid, "NoNewPrivs") == "1"
        # Its own process namespace: the last number is the one that it sees of itself.
        assert len(status(pid, "NSpid").split()) > 1


@pytest.mark.promise("processes:server-not-root")
def test_the_server_itself_is_not_root_and_can_only_read_more_than_others(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch("<p>Here").url)
    server = browser.server.process.pid
    for pid in (server, *descendants(server)):
        assert "0" not in status(pid, "Uid").split(), argv(pid)
    may_read_anything = 1 << 2
    assert int(status(server, "CapEff"), 16) in (0, may_read_anything)


# What our server sets, and then what the CLI adds for its daemon from our options.
DRIVERS_ENVIRONMENT = {
    *("PATH", "HOME", "LC_ALL", "NO_COLOR", "TOKIO_WORKER_THREADS", "MALLOC_ARENA_MAX"),
    *(
        f"AGENT_BROWSER_{name}"
        for name in (
            *("SOCKET_DIR", "CONFIG", "ACTION_POLICY", "PLUGINS", "NO_WEBMCP", "IDLE_TIMEOUT_MS", "DEFAULT_TIMEOUT"),
            "SCREENSHOT_DIR",
            *("DAEMON", "SESSION", "CDP", "PIN_TAB", "HIDE_SCROLLBARS"),
        )
    ),
}


def test_the_drivers_environment_is_pinned_in_full(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch("").url)
    for daemon in browser.server.daemons().values():
        entries = Path(f"/proc/{daemon}/environ").read_bytes().decode().rstrip("\0").split("\0")
        environment = dict(entry.split("=", 1) for entry in entries)
        assert environment.keys() == DRIVERS_ENVIRONMENT
        # One thread beside the first, on a machine with many cores too.
        assert environment["TOKIO_WORKER_THREADS"] == "1"


@pytest.mark.promise("processes:driver-memory")
def test_pages_cannot_fill_the_machines_memory_through_the_driver(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch("").url)
    for daemon in browser.server.daemons().values():
        # It keeps what pages write to their consoles, as much as they write.
        limits = Path(f"/proc/{daemon}/limits").read_text(encoding="ascii").splitlines()
        (data,) = [line.split() for line in limits if line.startswith("Max data size")]
        assert data[3:] == ["536870912", "536870912", "bytes"]


@pytest.mark.promise("processes:chromium-not-root")
@pytest.mark.parametrize("name", ["chromium", "Xtigervnc", "matchbox", "agent-browser"])
def test_nothing_of_the_browser_is_root(browser: Session, site: Site, name: str) -> None:
    browser.ok("open", site.watch("").url)
    for pid in family_of(browser.server, name):
        users = status(pid, "Uid").split()
        if users:  # It may have ended since it was listed.
            assert "0" not in users, (name, users)
        if name != "chromium" and users:  # Chromium's helpers have capabilities, in user namespaces of their own.
            assert int(status(pid, "CapEff"), 16) == 0


@pytest.mark.promise("processes:nothing-on-command-lines")
def test_typed_text_is_on_no_command_line_and_in_no_file(browser: Session, site: Site) -> None:
    secret = "correct-horse-battery-staple"
    browser.ok("open", site.watch("<input id=i type=password>").url)
    browser.ok("fill", "#i", secret)
    browser.ok("type", "#i", secret)
    for pid in descendants(browser.server.process.pid):
        assert secret not in " ".join(argv(pid))
    ours = list(files_below(browser.server.runtime, browser.server.state, without="profile"))
    assert any(path.name == "audit.jsonl" and content(path) for path in ours)
    for path in ours:
        assert secret.encode() not in content(path), path


@pytest.mark.promise("processes:no-other-port")
def test_the_only_open_ports_are_the_public_one_and_devtools(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch("").url)
    server = browser.server
    opened = {port for pid in (server.process.pid, *descendants(server.process.pid)) for port in listening_ports(pid)}
    assert opened == {server.port, server.devtools_port}


@pytest.mark.promise("files:no-download")
def test_a_download_writes_no_file_and_hangs_nothing(browser: Session, site: Site) -> None:
    marker = b"downloaded bytes of this very test"
    headers = {"Content-Type": "application/octet-stream", "Content-Disposition": "attachment; filename=evil.bin"}
    file = site.add("/evil.bin", marker * 10, headers)
    page = site.watch(
        f"<a id=plain href='{file}'>plain</a><a id=named href='{file}' download='named.bin'>named</a>"
        "<button id=blob onclick=\"const made = document.createElement('a'); made.download = 'blob.bin';"
        "made.href = URL.createObjectURL(new Blob(['x'])); made.click()\">blob</button>"
        "<button id=b onclick=\"tell('alive')\">b</button>"
    )
    browser.ok("open", page.url)
    for selector in ("#plain", "#named", "#blob", "#b"):
        outcome = browser.run("click", selector)
        assert outcome.exit_code == 0
        assert outcome.seconds < 4
    page.saw("alive")
    direct = browser.run("open", file)
    assert direct.exit_code == 1
    assert direct.seconds < 5

    names = {"evil.bin", "named.bin", "blob.bin"}
    places = [browser.server.runtime, browser.server.state, Path.home() / "Downloads"]
    found = [path for path in files_below(*places) if path.name in names or path.suffix == ".crdownload"]
    assert found == []


@pytest.mark.promise("files:no-download")
def test_not_even_the_beginning_of_a_download_comes_to_the_disk(browser: Session, site: Site) -> None:
    """Chromium begins one before it asks whether it may: with a file, which it removes a moment later, or too late."""
    temporary = browser.server.devtools_directory / "t"
    browser.ok("open", site.watch("<p>text</p>").url)
    entries, changed = list(temporary.iterdir()), temporary.stat().st_mtime_ns
    assert len(entries) == 1, "the lock that Chromium makes at its start, and nothing else"
    headers = {"Content-Type": "application/octet-stream", "Content-Disposition": "attachment"}
    refused = browser.run("open", site.add("/large.bin", b"x" * 5_000_000, headers))
    assert (refused.exit_code, refused.meta["name"]) == (1, "COMMAND_FAILED")
    assert "ERR_ABORTED" in refused.stderr
    browser.ok("wait", 300)
    # A file that came and went has left its trace in the folder's time.
    assert (list(temporary.iterdir()), temporary.stat().st_mtime_ns) == (entries, changed)


@pytest.mark.promise("files:no-upload")
def test_a_file_field_neither_hangs_nor_takes_a_file(browser: Session, site: Site) -> None:
    page = site.watch(
        "<input type=file id=f onchange=\"tell('chosen')\"><button id=b onclick='tell(f.files.length)'>b</button>"
    )
    browser.ok("open", page.url)
    clicked = browser.run("click", "#f")
    assert clicked.seconds < 4
    browser.run("fill", "#f", "/etc/passwd")
    browser.run("type", "#f", "/etc/passwd")
    browser.ok("click", "#b")
    page.saw(0)
    assert page.told == [0]


@pytest.mark.promise("output:no-server-path")
def test_no_answer_names_a_path_of_the_server(browser: Session, site: Site) -> None:
    page = site.watch("<button id=b onclick='confirm(1)'>b</button><select id=s><option>a</select>")
    answers = [
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
    answers.append(browser.run("open", f"{site.origin}/slow/9", timeout=1))
    for answer in answers:
        told = (answer.stdout + answer.stderr).replace(site.origin, "")
        assert not re.search(r"(?<![\w:/])/(tmp|run|root|home|var|usr|etc|work|opt)/", told), told
        assert str(browser.server.devtools_port) not in told
