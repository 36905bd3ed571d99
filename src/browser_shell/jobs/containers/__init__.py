"""Disposable containers for test jobs, through the API of Docker or Podman."""
