"""scripts/check-docs accepts sound pages and reports each kind of breach. The repository's own pages pass it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROMISES = "| id | promise |\n|---|---|\n| `a:b` | It holds. |\n"
PAGES = {
    "README.md": "[tour](docs/index.md) [part](docs/index.md#the-second-part) [web](https://example.com/)\n",
    "docs/index.md": "# Tour\n\n## The `second` part\n\nSee `core/errors.py` and ![](../picture.png).\n",
    "docs/explanation/promises.md": PROMISES,
    "docs/troubleshooting.md": "### `port … is taken`\n\n### `SESSION_GONE`\n",
    "picture.png": "",
    "src/browser_shell/core/errors.py": 'SESSION_GONE = 1\nx = f"port {1} is taken; choose another"\n',
    "tests/test_a.py": '@pytest.mark.promise("a:b")\ndef test_a(): ...\n',
}


def check(tmp_path: Path, changed: dict[str, str]) -> tuple[int, str]:
    for name, text in {**PAGES, **changed}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    for command in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    script = str(ROOT / "scripts" / "check-docs")
    done = subprocess.run([sys.executable, script, str(tmp_path)], capture_output=True, encoding="utf-8", check=False)
    return done.returncode, done.stdout + done.stderr


def fenced(language: str, text: str) -> dict[str, str]:
    return {"docs/page.md": f"```{language}\n{text}\n```\n"}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"docs/page.md": "[a](missing.md)\n"}, "docs/page.md: link to missing.md: there is no such file"),
        ({"docs/page.md": "[a](index.md#third)\n"}, "link to index.md#third: there is no such heading"),
        ({"docs/page.md": "`core/missing.py`\n"}, "docs/page.md: `core/missing.py` does not exist"),
        (fenced("sh", "if true; then"), "sh snippet"),
        (fenced("python", "def f(:"), "python snippet"),
        (fenced("json", "{'a': 1}"), "json snippet"),
        (fenced("toml", "a ="), "toml snippet"),
        (fenced("json", '{"open": {"allow_host": []}}'), "unknown key"),
        ({"docs/explanation/promises.md": PROMISES + "| `c:d` | It holds. |\n"}, "c:d has no test"),
        ({"tests/test_b.py": '@pytest.mark.promise("e:f")\n'}, "tests/test_b.py: promise 'e:f' is not listed"),
        ({"docs/troubleshooting.md": "### `port … is free`\n"}, "no message matches 'port … is free'"),
    ],
)
def test_breach_is_reported(tmp_path: Path, changed: dict[str, str], expected: str) -> None:
    code, output = check(tmp_path, changed)
    assert code == 1
    assert expected in output


@pytest.mark.parametrize(
    "changed",
    [
        {},
        fenced("json", '{"open": {"allow_hosts": ["example.com"]}}'),
        fenced("json", '{"session_id": "a", "argv": ["close"]}'),
        fenced("", "[a](missing.md) is not a link in a code block"),
        fenced("sh", "export TOKEN=eyJ…\nmake up   # a comment"),
    ],
)
def test_sound_pages_pass(tmp_path: Path, changed: dict[str, str]) -> None:
    _, output = check(tmp_path, changed)
    assert output.splitlines()[-1] == "check-docs: 0 problems"
