"""Strict HTTP/1.1 parsing without I/O, for the public listener and for the egress proxy."""
