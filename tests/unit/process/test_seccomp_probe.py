"""The probe distinguishes the shipped seccomp profile from others. Real filters are installed around it."""

from __future__ import annotations

import errno
import platform

import pytest

from browser_shell.process import seccomp_probe
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


def test_nothing_is_let_through_by_a_filter_that_refuses_all_probed_calls(numbers: dict[str, int]) -> None:
    assert output_behind_filter(numbers.values(), SCRIPT, error=errno.EPERM) == []


@pytest.mark.promise("container:all-locks-or-no-start")
@pytest.mark.parametrize(
    ("name", "reported"),
    [("keyctl", ["keyctl"]), ("process_vm_readv", ["process_vm_readv"]), ("socket", SOCKETS)],
)
def test_each_call_that_a_filter_lets_through_is_reported(
    numbers: dict[str, int], name: str, reported: list[str]
) -> None:
    others = [number for call, number in numbers.items() if call != name]
    assert output_behind_filter(others, SCRIPT, error=errno.EPERM) == reported


def test_a_call_that_the_kernel_lacks_counts_as_let_through(numbers: dict[str, int]) -> None:
    assert output_behind_filter(numbers.values(), SCRIPT, error=errno.ENOSYS) == [
        "keyctl",
        "process_vm_readv",
        "io_uring_setup",
        *SOCKETS,
    ]


def test_on_an_unknown_architecture_calls_by_number_count_as_let_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert {"keyctl", "process_vm_readv", "io_uring_setup"} <= set(seccomp_probe.calls_let_through())
