"""scripts/check-prose accepts plain English and reports each kind of breach with its line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "scripts" / "check-prose"


def check(path: Path, text: str) -> tuple[int, str]:
    path.write_text(text, encoding="utf-8")
    done = subprocess.run([sys.executable, str(SCRIPT), str(path)], capture_output=True, encoding="utf-8", check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.py", '"""Of those that are left."""\n', "a.py:1: a docstring starts with 'Of'"),
        ("a.py", 'def f():\n    """What is left."""\n', "a.py:2: a docstring starts with 'What'"),
        ("a.py", 'X = 1\n"""Whoever counts."""\n', "a.py:2: a docstring starts with 'Whoever'"),
        ("a.py", '"""One.\n\nThe server is told."""\n', "a.py:3: 'told'"),
        ("a.py", "x = 1  # nobody waits\n", "a.py:1: 'nobody'"),
        ("a.py", "# What is left.\n", "a.py:1: a comment starts with 'What'"),
        ("a.py", f'"""Read {"very " * 40}much."""\n', "a.py:1: a sentence of 42 words"),
        ("a.py", "def test_nobody_waits(): ...\n", "a.py:1: 'nobody'"),
        ("a.py", "class Patience: ...\n", "a.py:1: the name 'Patience'"),
        ("a.py", "def f(told): ...\n", "a.py:1: the name 'told'"),
        ("a.py", "said = 1\n", "a.py:1: the name 'said'"),
        ("a.js", "let x = 1; // nobody waits\n", "a.js:1: 'nobody'"),
        ("a.js", "/*\n * Somebody waits.\n */\n", "a.js:2: 'Somebody'"),
        ("a.sh", "#!/bin/sh\ntrue # whoever waits\n", "a.sh:2: 'whoever'"),
        ("script", "#!/usr/bin/env python3\n# nobody waits\n", "script:2: 'nobody'"),
        ("a.md", "# Title\n\nNobody waits in vain.\n", "a.md:3: 'in vain'"),
        ("a.md", "word " * 21 + "\n", "a.md:1: 105 columns"),
    ],
)
def test_breach_is_reported_with_its_line(tmp_path: Path, name: str, text: str, expected: str) -> None:
    code, output = check(tmp_path / name, text)
    assert code == 1
    assert expected in output


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", '"""Kill a process that did not exit in time.\n\nRaises:\n    OSError: the kernel refused.\n"""\n'),
        ("a.py", 'x = "nobody says a word"\n'),
        ("a.py", '"""Run as the account `nobody`."""\n'),
        ("a.py", "# Which of the two is older? The first.\n# What follows is the second line of a comment.\n"),
        ("a.py", "def f(time_asked, known): ...\n"),
        ("a.js", 'let x = "nobody"; // See https://example.com/nobody\n'),
        ("a.sh", 'echo "nobody"\n'),
        ("a.md", "```\nnobody\n" + "word " * 30 + "\n```\n"),
        ("a.md", "| " + "word " * 30 + "|\n"),
        ("a.json", '{"a": "nobody"}\n'),
    ],
)
def test_plain_text_and_quoted_words_pass(tmp_path: Path, name: str, text: str) -> None:
    assert check(tmp_path / name, text) == (0, "check-prose: 0 problems\n")


def test_folder_is_checked_with_its_tracked_files(tmp_path: Path) -> None:
    (tmp_path / "tracked.md").write_text("Nobody.\n", encoding="utf-8")
    (tmp_path / "untracked.md").write_text("Somebody.\n", encoding="utf-8")
    for command in (["init", "-q"], ["add", "tracked.md"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    done = subprocess.run(
        [sys.executable, str(SCRIPT)], cwd=tmp_path, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "tracked.md:1: 'Nobody' is not plain technical English here",
        "check-prose: 1 problems",
    ]


def test_unknown_path_is_an_error(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, str(SCRIPT), "missing.py"], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode != 0
