from __future__ import annotations

import re
from pathlib import Path

import pytest

from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.viewer.page_files import load_page_files
from support.live_view import a_novnc


def test_a_missing_novnc_stops_the_start_and_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationInvalid, match="make install"):
        load_page_files(tmp_path)


def test_the_table_holds_the_page_and_the_library_and_nothing_else(tmp_path: Path) -> None:
    novnc = a_novnc(tmp_path / "novnc")
    (novnc / "core" / "notes.md").write_text("not a part of the page", encoding="utf-8")
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


def test_the_page_needs_nothing_from_elsewhere_and_nothing_inline(tmp_path: Path) -> None:
    page_files = load_page_files(a_novnc(tmp_path / "novnc"))
    page = page_files["index.html"].content.decode()
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son[a-z]+=|javascript:", page)
    for name, file in page_files.items():
        text = file.content.decode().replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"(https?:)?//[a-z0-9.-]+\.[a-z]{2,}", text), name
    for wanted in re.findall(r'(?:src|href)="([^"]+)"', page):
        assert wanted in page_files


def test_nothing_of_a_page_is_ever_set_as_markup(tmp_path: Path) -> None:
    page_files = load_page_files(a_novnc(tmp_path / "novnc"))
    for name in ("viewer.js", "connection.js", "lists.js"):
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function",
            page_files[name].content.decode(),
        )
