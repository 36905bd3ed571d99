"""The display, Chromium, and the sessions in it."""
