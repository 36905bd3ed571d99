"""Chromium, its jail and its display."""
