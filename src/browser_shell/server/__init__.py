"""Assembly: builds every part of one profile and runs it."""
