"""The README's client works as printed."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

from support.pages import Site
from support.server import Server

README = Path(__file__).parents[2] / "README.md"


def test_client_in_the_readme_works(server: Server, site: Site, tmp_path: Path) -> None:
    found = re.search(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert found
    page = site.add("/readme", "<title>Readme</title><button>Here</button>")
    script = found[1].replace("127.0.0.1:8080", f"127.0.0.1:{server.port}").replace('"example.com"', f'"{page}"')
    client = tmp_path / "client.py"
    client.write_text(script, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(client), server.token], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    opened, seen, closed = map(ast.literal_eval, done.stdout.splitlines())
    assert json.loads(opened["stdout"])["title"] == "Readme"
    assert 'button "Here"' in json.loads(seen["stdout"])["snapshot"]
    assert json.loads(closed["stdout"]) == {"closed": True}
