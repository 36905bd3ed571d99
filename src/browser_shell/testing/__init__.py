"""A fake for every port, misbehaving ones included."""
