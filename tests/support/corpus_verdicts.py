"""Verdicts of `policy check` on rows of the attack corpus."""

from __future__ import annotations

import io
import json
from typing import Any

from browser_shell.commands.policy import run_check


def verdict(row: dict[str, Any]) -> dict[str, Any]:
    # Rows without DNS answers get none, so that no test contacts a real name server.
    line = json.dumps({"dns": {}, **row}).encode()
    output = io.StringIO()
    assert run_check(io.BytesIO(line), output, policy_path=None, explain=False) == 0
    (answer,) = output.getvalue().splitlines()
    result: dict[str, Any] = json.loads(answer)
    assert result["id"] == row["id"]
    assert result["rule"]
    assert result["reason"]
    return result
