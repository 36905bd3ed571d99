"""The DevTools protocol: the server's own connection, and the relay for the driver."""
