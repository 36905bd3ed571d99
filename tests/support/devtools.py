"""Bytes of a DevTools connection, for tests of the relay."""

from __future__ import annotations

UPGRADE = b"GET /devtools/browser/x HTTP/1.1\r\nUpgrade: websocket\r\n\r\n"
SWITCHING = b"HTTP/1.1 101 WebSocket Protocol Handshake\r\nUpgrade: WebSocket\r\n\r\n"
