"""Time limits that allow for other load on the machine."""

from __future__ import annotations

import time

_SAMPLE_SECONDS = 0.2
UNBLOCKED_SECONDS = 10
"""Limit for a call that has nothing to wait for. A blocked call takes 15 s (the driver's timeout) or longer."""
HIDDEN_CLICK_SECONDS = 5
"""Duration of a click in a window that Chromium does not draw."""


def within(seconds: float, limit: float) -> bool:
    """Whether a duration is below the limit, or would be on an otherwise idle machine.

    The load is measured only for a duration above the limit, by the time that a busy loop takes.
    """
    if seconds < limit:
        return True
    slowness = _slowness()
    print(f"{seconds:.1f} s on a machine that load makes {slowness:.1f} times slower; the limit is {limit} s")
    return seconds < limit * slowness


def _slowness() -> float:
    started_at, cpu_started_at = time.monotonic(), time.process_time()
    while time.process_time() - cpu_started_at < _SAMPLE_SECONDS:
        pass
    return (time.monotonic() - started_at) / _SAMPLE_SECONDS
