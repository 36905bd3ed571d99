"""Helpers that tests share: a real server, a real client, and pages to visit."""
