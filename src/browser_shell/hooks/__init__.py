"""Hooks around every call: plugins, normalisation, redaction, truncation."""
