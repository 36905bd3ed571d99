"""Asks the kernel whether this process stands behind the shipped system call filter, by calls that it must refuse."""

from __future__ import annotations

import ctypes
import errno
import platform
import socket
from collections.abc import Iterator

_NUMBERS = {
    "x86_64": {"keyctl": 250, "process_vm_readv": 310, "io_uring_setup": 425},
    "aarch64": {"keyctl": 219, "process_vm_readv": 270, "io_uring_setup": 425},
}
# Wrong on purpose: a kernel without the filter finds fault with them and does nothing.
_ARGUMENTS = {"keyctl": (-1, 0, 0, 0, 0), "process_vm_readv": (0, 0, 0, 0, 0, -1), "io_uring_setup": (0, 0)}
# Without the filter these are open, or the kernel knows no such protocol. The last two are the filter's own: engines'
# default profiles let them through.
_SOCKETS = {
    "socket(AF_VSOCK)": (40, socket.SOCK_STREAM, 0),
    "socket(NETLINK_NETFILTER)": (socket.AF_NETLINK, socket.SOCK_RAW, 12),
    "socket(IPPROTO_MPTCP)": (socket.AF_INET, socket.SOCK_STREAM, 262),
}


def calls_let_through() -> tuple[str, ...]:
    """Those that the filter should have refused with EPERM, and did not. On a machine that nobody knows, all."""
    return tuple(name for name, error in _answers() if error != errno.EPERM)


def _answers() -> Iterator[tuple[str, int]]:
    numbers = _NUMBERS.get(platform.machine(), {})
    for name, arguments in _ARGUMENTS.items():
        yield name, _error_of_call(numbers[name], arguments) if name in numbers else 0
    for name, words in _SOCKETS.items():
        yield name, _error_of_socket(*words)


def _error_of_call(number: int, arguments: tuple[int, ...]) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    result: int = libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments))
    return ctypes.get_errno() if result == -1 else 0


def _error_of_socket(family: int, kind: int, protocol: int) -> int:
    try:
        socket.socket(family, kind, protocol).close()
    except OSError as fault:
        return fault.errno or 0
    return 0
