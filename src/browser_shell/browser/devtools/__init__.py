"""The DevTools protocol: our own connection and the driver's relay."""
