"""Whether the door and the hub behind it answer: exit code 0 or 1."""

from __future__ import annotations

import http.client
import os
import sys

FORBIDDEN = 403
NOT_ACCEPTABLE = (406, 405, 400)


def status(port: int) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    connection.request("GET", "/mcp" if port != int(os.environ.get("PUBLIC_PORT") or 8080) else "/")
    return connection.getresponse().status


try:
    door = status(int(os.environ.get("PUBLIC_PORT") or 8080)) == FORBIDDEN
    hub = status(int(os.environ.get("MCP_HUB_PORT") or 8079)) in NOT_ACCEPTABLE
except (OSError, ValueError, http.client.HTTPException):
    sys.exit(1)
sys.exit(not (door and hub))
