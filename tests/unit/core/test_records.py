from __future__ import annotations

import pytest

from browser_shell.core.records import trace_id_of


@pytest.mark.parametrize(
    ("traceparent", "trace_id"),
    [
        ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "4bf92f3577b34da6a3ce929d0e0e4736"),
        ("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more", "4bf92f3577b34da6a3ce929d0e0e4736"),
        ("ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", ""),
        ("00-00000000000000000000000000000000-00f067aa0ba902b7-01", ""),
        ("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01", ""),
        ("00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", ""),
        ("4bf92f3577b34da6a3ce929d0e0e4736", ""),
        (None, ""),
        (7, ""),
    ],
)
def test_a_trace_id_is_read_from_a_traceparent(traceparent: object, trace_id: str) -> None:
    assert trace_id_of(traceparent) == trace_id
