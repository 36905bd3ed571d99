"""Real applications on loopback, installed by `scripts/test-apps`."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[2]
SOURCES = REPOSITORY / "tests/data/apps"
TOOLS = REPOSITORY / ".tools/apps"
PYTHON = TOOLS / "python/bin/python"
NODE_MODULES = TOOLS / "node/node_modules"
USER, PASSWORD = "admin", "correct horse"
"""Account in the Django site and in DokuWiki."""
_START_SECONDS = 120
_FOLDERS = {
    "pages": SOURCES / "pages",
    "built": TOOLS / "built",
    "vendor/tinymce": NODE_MODULES / "tinymce",
    "vendor/ckeditor5": NODE_MODULES / "ckeditor5",
    "vendor/shoelace": NODE_MODULES / "@shoelace-style/shoelace/cdn",
    "vendor/sortablejs": NODE_MODULES / "sortablejs",
    "vendor/konva": NODE_MODULES / "konva",
}
_TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".json": "application/json",
}


@dataclass(slots=True)
class WidgetSite:
    """Pages with widget libraries; a page stores its state with POST /store/NAME."""

    port: int
    stored: dict[str, list[Any]] = field(default_factory=dict)
    """All values that pages have stored, by name."""

    def url(self, page: str) -> str:
        return f"http://127.0.0.1:{self.port}/pages/{page}"

    def last(self, name: str) -> Any:
        return self.stored.get(name, [None])[-1]

    def forget(self, name: str) -> None:
        """Remove the stored values, so that those of an earlier run cannot pass for new ones."""
        self.stored.pop(name, None)


@dataclass(frozen=True, slots=True)
class Applications:
    """The running applications and their server-side state."""

    folder: Path
    ports: Mapping[str, int]
    widgets: WidgetSite

    @property
    def policy(self) -> dict[str, Any]:
        """Policy that allows exactly these applications. Frames have other host names, so they are cross-site."""
        ports = [*self.ports.values(), self.widgets.port]
        return {
            "open": {
                "unsafe_allow_addresses": [f"127.0.0.1:{port}" for port in ports],
                "unsafe_resolve": {
                    f"{name}.test": f"127.0.0.1:{self.ports[name]}" for name in ("streamlit", "gradio", "nicegui")
                }
                | {"widgets.test": f"127.0.0.1:{self.widgets.port}"},
            }
        }

    def url(self, name: str, path: str = "/") -> str:
        return f"http://127.0.0.1:{self.ports[name]}{path}"

    def query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Read from the database of the Django site."""
        with closing(sqlite3.connect(self.folder / "site.sqlite3", timeout=10)) as database, database:
            return database.execute(sql, values).fetchall()

    def records(self, name: str) -> list[Any]:
        """Return the records that an application has written, oldest first."""
        path = self.folder / f"{name}.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def fetch(self, name: str, path: str) -> Any:
        """Return the JSON answer of an application's own interface."""
        return json.loads(_get(self.ports[name], path)[1])

    @property
    def wiki(self) -> Path:
        """Folder with the pages of DokuWiki."""
        return self.folder / "wiki/data/pages"

    @property
    def notebooks(self) -> Path:
        """Root folder of JupyterLab."""
        return self.folder / "notebooks"


def _get(port: int, path: str) -> tuple[int, bytes]:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read()


def _free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running_applications() -> Iterator[Applications]:
    """Start all applications at the same time; end them and remove their files afterwards."""
    assert PYTHON.exists(), "the applications are not installed: run scripts/test-apps --install"
    folder = Path(tempfile.mkdtemp(prefix="bsh-apps-"))
    ports = {name: _free_port() for name in _COMMANDS}
    processes = {name: _start(name, port, folder) for name, port in ports.items()}
    try:
        with running_widgets() as widgets:
            for name, process in processes.items():
                _wait_ready(name, ports[name], process, folder)
            yield Applications(folder=folder, ports=ports, widgets=widgets)
    finally:
        for process in processes.values():
            _stop(process)
        shutil.rmtree(folder, ignore_errors=True)


def _jupyter(port: int, folder: Path) -> list[str]:
    (folder / "notebooks").mkdir()
    (folder / "notebooks/notes.txt").write_text("first line\nsecond line\nthird line\n")
    options = {
        "port": port,
        "root_dir": folder / "notebooks",
        "ip": "127.0.0.1",
        "open_browser": False,
        "allow_root": True,
    }
    server = [f"--ServerApp.{name}={value}" for name, value in options.items()]
    return [
        *(str(PYTHON), "-m", "jupyterlab", *server, "--IdentityProvider.token=", "--ServerApp.password="),
        "--LabApp.news_url=",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]


def _django(port: int, folder: Path) -> list[str]:
    shutil.copy(TOOLS / "django_site/site.sqlite3", folder / "site.sqlite3")
    return [
        *(str(PYTHON), "-m", "django", "runserver", "--noreload", f"127.0.0.1:{port}"),
        *("--settings", "settings", "--pythonpath", str(TOOLS / "django_site")),
    ]


def _streamlit(port: int, folder: Path) -> list[str]:
    options = {
        "server.port": port,
        "server.address": "127.0.0.1",
        "server.headless": "true",
        "server.enableCORS": "false",
        "server.enableXsrfProtection": "false",
        "server.fileWatcherType": "none",
        "browser.gatherUsageStats": "false",
    }
    arguments = [f"--{name}={value}" for name, value in options.items()]
    return [str(PYTHON), "-m", "streamlit", "run", str(SOURCES / "streamlit_app.py"), *arguments]


def _node_red(port: int, folder: Path) -> list[str]:
    user = folder / "node_red"
    user.mkdir()
    settings = {
        "uiHost": "127.0.0.1",
        "uiPort": port,
        "flowFile": "flows.json",
        "userDir": str(user),
        "credentialSecret": False,
        "editorTheme": {"tours": False},
        "telemetry": {"enabled": False, "updateNotification": False},
        "externalModules": {"palette": {"allowInstall": False}},
    }
    (user / "settings.js").write_text(f"module.exports = {json.dumps(settings)}\n")
    return ["node", str(NODE_MODULES / "node-red/red.js"), "--settings", str(user / "settings.js")]


def _dokuwiki(port: int, folder: Path) -> list[str]:
    wiki = folder / "wiki"
    shutil.copytree("/var/lib/dokuwiki/data", wiki / "data")
    (wiki / "conf").mkdir()
    settings = {
        "title": "Handbook",
        "useacl": 1,
        "superuser": "@admin",
        "updatecheck": 0,
        "savedir": str(wiki / "data"),
    }
    lines = [f"$conf['{name}'] = {json.dumps(value)};" for name, value in settings.items()]
    (wiki / "conf/local.php").write_text("\n".join(["<?php", *lines, ""]))
    (wiki / "conf/acl.auth.php").write_text("*\t@ALL\t1\n*\t@user\t8\n")
    digest = hashlib.md5(PASSWORD.encode(), usedforsecurity=False).hexdigest()
    (wiki / "conf/users.auth.php").write_text(f"{USER}:{digest}:Admin:admin@example.com:admin,user\n")
    prepend = f"auto_prepend_file={SOURCES / 'dokuwiki_prepend.php'}"
    return ["php", "-d", prepend, "-S", f"127.0.0.1:{port}", "-t", "/usr/share/dokuwiki"]


_COMMANDS = {
    "dokuwiki": _dokuwiki,
    "jupyter": _jupyter,
    "node_red": _node_red,
    "streamlit": _streamlit,
    "gradio": lambda _port, _folder: [str(PYTHON), str(SOURCES / "gradio_app.py")],
    "nicegui": lambda _port, _folder: [str(PYTHON), str(SOURCES / "nicegui_app.py")],
    "django": _django,
}
_READY_PATHS = {"jupyter": "/api", "django": "/admin/login/", "streamlit": "/_stcore/health", "dokuwiki": "/doku.php"}


def _start(name: str, port: int, folder: Path) -> subprocess.Popen[bytes]:
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "APP_PORT": str(port),
        "APP_RECORDS": str(folder / f"{name}.jsonl"),
        "WIKI_FOLDER": str(folder / "wiki"),
        "SITE_DATABASE": str(folder / "site.sqlite3"),
        "GRADIO_ANALYTICS_ENABLED": "False",
        "HF_HUB_OFFLINE": "1",
    }
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(
            _COMMANDS[name](port, folder),
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _wait_ready(name: str, port: int, process: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        log = folder / f"{name}.log"
        assert process.poll() is None, f"{name} ended:\n{log.read_text()[-2000:]}"
        assert time.monotonic() < deadline, f"{name} did not start:\n{log.read_text()[-2000:]}"
        try:
            if _get(port, _READY_PATHS.get(name, "/"))[0] == 200:
                return
        except OSError:
            time.sleep(0.1)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End an application with its child processes, which are in its process group."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(5)
        except ProcessLookupError:
            break
        except subprocess.TimeoutExpired:
            continue
    process.wait(5)


@contextmanager
def running_widgets() -> Iterator[WidgetSite]:
    """Serve the pages and the libraries, and keep what pages store."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path = self.path.partition("?")[0].lstrip("/")
            for prefix, folder in _FOLDERS.items():
                file = folder / path.removeprefix(f"{prefix}/")
                if path.startswith(f"{prefix}/") and file.resolve().is_relative_to(folder.resolve()) and file.is_file():
                    return self._answer(200, file.read_bytes(), _TYPES.get(file.suffix, "application/octet-stream"))
            if path.startswith("frame/"):
                return self._answer(200, _FRAME_PAGE % path.removeprefix("frame/").encode(), "text/html")
            return self._answer(404, b"", "text/plain")

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            site.stored.setdefault(self.path.removeprefix("/store/"), []).append(json.loads(body))
            self._answer(200, b"{}", "application/json")

        def _answer(self, status: int, body: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    class QuietServer(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 64

        def handle_error(self, request: object, client_address: object) -> None:
            return  # A page that navigates away resets its connections.

    server = QuietServer(("127.0.0.1", 0), Handler)
    site = WidgetSite(port=server.server_address[1])
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()


_FRAME_PAGE = b"""<!doctype html>
<html lang="en">
<title>Portal</title>
<h1>Portal</h1>
<p>The application below belongs to another site.</p>
<iframe title="Application" src="http://%s.test/" style="width: 900px; height: 620px; margin: 20px 40px"></iframe>
"""
