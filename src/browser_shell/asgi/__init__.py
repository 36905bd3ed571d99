"""Small ASGI parts shared by every endpoint."""
