"""The disconnect signal. Refusals and security headers are tested with the gateway."""

from __future__ import annotations

from browser_shell.asgi import DISCONNECT_SIGNAL, DisconnectSignal, disconnect_signal


def test_callback_runs_only_for_a_disconnect_inside_its_block() -> None:
    signal, fired = DisconnectSignal(), list[str]()
    signal.fire()
    with signal.on_disconnect(lambda: fired.append("inside")):
        signal.fire()
    signal.fire()
    assert fired == ["inside"]


def test_request_that_ends_late_does_not_remove_the_callback_of_the_next() -> None:
    signal, fired = DisconnectSignal(), list[str]()
    first = signal.on_disconnect(lambda: fired.append("first"))
    first.__enter__()
    with signal.on_disconnect(lambda: fired.append("second")):
        first.__exit__(None, None, None)
        signal.fire()
    assert fired == ["second"]


def test_signal_is_found_in_the_state_of_a_request() -> None:
    signal = DisconnectSignal()
    assert disconnect_signal({"state": {DISCONNECT_SIGNAL: signal}}) is signal
    assert disconnect_signal({}) is None
