"""Checks whether the shipped seccomp profile filters the system calls of this process."""

from __future__ import annotations

import ctypes
import errno
import platform
import socket
from collections.abc import Iterator

_SYSCALL_NUMBERS = {
    "x86_64": {"keyctl": 250, "process_vm_readv": 310, "io_uring_setup": 425},
    "aarch64": {"keyctl": 219, "process_vm_readv": 270, "io_uring_setup": 425},
}
# Invalid arguments: without the filter these calls fail with another error and have no effect.
_ARGUMENTS = {"keyctl": (-1, 0, 0, 0, 0), "process_vm_readv": (0, 0, 0, 0, 0, -1), "io_uring_setup": (0, 0)}
# Only the shipped profile refuses the last two. The default profiles of Docker and Podman allow them.
_SOCKETS = {
    "socket(AF_VSOCK)": (40, socket.SOCK_STREAM, 0),
    "socket(NETLINK_NETFILTER)": (socket.AF_NETLINK, socket.SOCK_RAW, 12),
    "socket(IPPROTO_MPTCP)": (socket.AF_INET, socket.SOCK_STREAM, 262),
}


def calls_let_through() -> tuple[str, ...]:
    """Return the calls that did not fail with EPERM as the profile demands.

    On an architecture without known system call numbers, calls that need a number count as let through.
    """
    return tuple(name for name, error in _probe() if error != errno.EPERM)


def _probe() -> Iterator[tuple[str, int]]:
    numbers = _SYSCALL_NUMBERS.get(platform.machine(), {})
    for name, arguments in _ARGUMENTS.items():
        yield name, _errno_of_syscall(numbers[name], arguments) if name in numbers else 0
    for name, (family, kind, protocol) in _SOCKETS.items():
        yield name, _errno_of_socket(family, kind, protocol)


def _errno_of_syscall(number: int, arguments: tuple[int, ...]) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    result: int = libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments))
    return ctypes.get_errno() if result == -1 else 0


def _errno_of_socket(family: int, kind: int, protocol: int) -> int:
    try:
        socket.socket(family, kind, protocol).close()
    except OSError as fault:
        return fault.errno or 0
    return 0
