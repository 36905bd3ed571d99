"""Chromium's processes, its jail and its display."""
