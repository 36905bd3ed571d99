"""Deadlines in seconds, on machines that are busy with other things as well."""

from __future__ import annotations

import time

_SAMPLE_SECONDS = 0.2


def within(seconds: float, limit: float) -> bool:
    """Whether something took less than the limit, or would have on a machine of its own.

    Only when it did not is the machine asked how much longer than its own work a busy loop takes on it.
    """
    if seconds < limit:
        return True
    slowness = _slowness()
    print(f"{seconds:.1f} s on a machine that is {slowness:.1f} times slower than by itself; the limit is {limit} s")
    return seconds < limit * slowness


def _slowness() -> float:
    began, worked = time.monotonic(), time.process_time()
    while time.process_time() - worked < _SAMPLE_SECONDS:
        pass
    return (time.monotonic() - began) / _SAMPLE_SECONDS
