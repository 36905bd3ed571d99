"""The server's own work in a page: looks, acts and waits over the session's DevTools connection."""
