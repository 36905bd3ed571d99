"""Strict HTTP/1.1 parsing without I/O."""
