"""Test jobs: disposable containers, their output and their evidence."""
