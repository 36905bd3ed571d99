"""The live view: a page around noVNC, its WebSocket, tickets and takeover."""
