from __future__ import annotations

import re
from pathlib import Path

import anyio
import httpx2
import pytest

from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.viewer.app import load_page_files
from support.live_view import LiveView, a_novnc, serving_app


def test_missing_novnc_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationInvalid, match="make install"):
        load_page_files(tmp_path)


def test_only_page_and_library_files_are_loaded(tmp_path: Path) -> None:
    novnc = a_novnc(tmp_path / "novnc")
    (novnc / "core" / "notes.md").write_text("not part of the page", encoding="utf-8")
    (novnc / "core" / "link.js").symlink_to("/etc/passwd")
    assert set(load_page_files(novnc)) == {
        "index.html",
        "viewer.js",
        "connection.js",
        "lists.js",
        "viewer.css",
        "icon.svg",
        "novnc/core/rfb.js",
    }


def test_page_has_no_external_or_inline_resources(tmp_path: Path) -> None:
    page_files = load_page_files(a_novnc(tmp_path / "novnc"))
    page = page_files["index.html"].content.decode()
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son[a-z]+=|javascript:", page)
    for name, file in page_files.items():
        text = file.content.decode().replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"(https?:)?//[a-z0-9.-]+\.[a-z]{2,}", text), name
    for reference in re.findall(r'(?:src|href)="([^"]+)"', page):
        assert reference in page_files


def test_page_scripts_never_set_markup(tmp_path: Path) -> None:
    page_files = load_page_files(a_novnc(tmp_path / "novnc"))
    for name in ("viewer.js", "connection.js", "lists.js"):
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function",
            page_files[name].content.decode(),
        )


async def test_page_files_are_served_without_credentials(tmp_path: Path) -> None:
    view = LiveView(tmp_path, grant=None)
    async with serving_app(view.app()) as address, httpx2.AsyncClient(base_url=f"http://{address}") as http:
        for path, kind in (
            ("/vnc/", "text/html"),
            ("/vnc/index.html?ticket=T&path=websockify%3Fticket%3DT&autoconnect=true", "text/html"),
            ("/vnc/viewer.js", "text/javascript"),
            ("/vnc/viewer.css", "text/css"),
            ("/vnc/novnc/core/rfb.js", "text/javascript"),
        ):
            response = await http.get(path)
            assert response.status_code == 200
            assert response.headers["content-type"].startswith(kind)
            assert "script-src 'self';" in response.headers["content-security-policy"]
            again = await http.get(path, headers={"If-None-Match": response.headers["etag"]})
            assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    "path",
    ["/vnc/novnc", "/vnc/novnc/core/", "/vnc/../settings.py", "/vnc/novnc/../secret", "/vnc/app.py", "/x"],
)
async def test_other_paths_are_not_found(tmp_path: Path, path: str) -> None:
    (tmp_path / "secret").write_text("secret", encoding="utf-8")
    view = LiveView(tmp_path)
    async with serving_app(view.app()) as address:
        host, _, port = address.partition(":")
        async with await anyio.connect_tcp(host, int(port)) as raw:
            await raw.send(f"GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n".encode())
            assert (await raw.receive()).startswith(b"HTTP/1.1 404")


async def test_redirect_adds_the_slash_and_keeps_the_ticket(tmp_path: Path) -> None:
    view = LiveView(tmp_path)
    async with serving_app(view.app()) as address, httpx2.AsyncClient(base_url=f"http://{address}") as http:
        response = await http.get("/vnc?ticket=T")
        assert (response.status_code, response.headers["location"]) == (307, "vnc/?ticket=T")
        assert (await http.post("/vnc/")).status_code == 405
