"""The probe tells the shipped filter from any other, with real filters around it."""

from __future__ import annotations

import errno
import platform

import pytest

from browser_shell.process import seccomp_probe as filter_probe
from support.call_filters import output_behind_filter

NUMBERS = {
    "x86_64": {"socket": 41, "keyctl": 250, "process_vm_readv": 310, "io_uring_setup": 425},
    "aarch64": {"socket": 198, "keyctl": 219, "process_vm_readv": 270, "io_uring_setup": 425},
}
SOCKETS = ["socket(AF_VSOCK)", "socket(NETLINK_NETFILTER)", "socket(IPPROTO_MPTCP)"]
SCRIPT = """
import json
from browser_shell.process.seccomp_probe import calls_let_through
print(json.dumps(calls_let_through()))
"""


@pytest.fixture(scope="module")
def numbers() -> dict[str, int]:
    return NUMBERS[platform.machine()]


def test_behind_a_filter_that_refuses_everything_asked_nothing_is_let_through(numbers: dict[str, int]) -> None:
    assert output_behind_filter(numbers.values(), SCRIPT, error=errno.EPERM) == []


@pytest.mark.promise("container: it starts behind all its locks or not at all")
@pytest.mark.parametrize(
    ("name", "named"),
    [("keyctl", ["keyctl"]), ("process_vm_readv", ["process_vm_readv"]), ("socket", SOCKETS)],
)
def test_a_filter_that_lets_one_call_through_is_another_filter(
    numbers: dict[str, int], name: str, named: list[str]
) -> None:
    others = [number for call, number in numbers.items() if call != name]
    assert output_behind_filter(others, SCRIPT, error=errno.EPERM) == named


def test_an_answer_that_is_not_the_filters_does_not_count(numbers: dict[str, int]) -> None:
    """A kernel without such a call says ENOSYS; that says nothing about a filter."""
    seen = output_behind_filter(numbers.values(), SCRIPT, error=errno.ENOSYS)
    assert seen == ["keyctl", "process_vm_readv", "io_uring_setup", *SOCKETS]


def test_on_an_unknown_machine_no_filter_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert {"keyctl", "process_vm_readv", "io_uring_setup"} <= set(filter_probe.calls_let_through())
