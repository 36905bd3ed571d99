"""A second seccomp filter on top of the engine's default one, which depends on the engine and its version.

Engines of 2022 still allow io_uring, some allow user namespaces, and all allow ptrace. All allow vsock, which reaches
the host even without a network. Filters only remove rights, so the engine's own filter stays in force.
"""

import ctypes
import platform
import struct

_EPERM = 1
_ENOSYS = 38
_LOAD = 0x20
_EQUAL = 0x15
_AT_LEAST = 0x35
_ANY_BIT = 0x45
_RETURN = 0x06
_ALLOW = 0x7FFF0000
_FAIL = 0x00050000
_NUMBER, _ARCHITECTURE, _FIRST, _THIRD = 0, 4, 16, 32
_X32_NUMBERS = 0x40000000
_NEW_NAMESPACES = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET."""
_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER_MODE = 38, 22, 2

# System calls added after 2018 have the same number on all architectures.
_EVERYWHERE = (425, 426, 427, 428, 429, 430, 431, 432, 433, 438, 442, 447)
"""io_uring_*, open_tree, move_mount, fsopen, fsconfig, fsmount, fspick, pidfd_getfd, mount_setattr, memfd_secret."""
_CLONE3 = 435
_MACHINES = {
    "x86_64": {
        "architecture": 0xC000003E,
        "clone": 56,
        "socket": 41,
        "prlimit": 302,
        # unshare setns mount umount pivot_root bpf userfaultfd perf_event_open add_key request_key keyctl ptrace
        # process_vm_* kcmp *_module kexec_* *_handle_at modify_ldt iopl ioperm
        "denied": (
            *(272, 308, 165, 166, 155, 321, 323, 298, 248, 249, 250, 101),
            *(310, 311, 312, 175, 176, 313, 246, 320, 303, 304, 154, 172, 173),
        ),
    },
    "aarch64": {
        "architecture": 0xC00000B7,
        "clone": 220,
        "socket": 198,
        "prlimit": 261,
        "denied": (
            *(97, 268, 40, 39, 41, 280, 282, 241, 217, 218, 219, 117),
            *(270, 271, 272, 105, 106, 273, 104, 294, 264, 265),
        ),
    },
}


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _fail(error: int) -> bytes:
    return _op(_RETURN, _FAIL | error)


def program(machine: str) -> bytes:
    """Return the filter as classic BPF. The operands of a jump are instructions to skip."""
    numbers = _MACHINES[machine]
    allow = _op(_RETURN, _ALLOW)
    parts = [
        _op(_LOAD, _ARCHITECTURE),
        # Calls of another architecture have other numbers: refuse all of them.
        _op(_EQUAL, numbers["architecture"], 1, 0) + _fail(_EPERM),
        _op(_LOAD, _NUMBER),
        _op(_AT_LEAST, _X32_NUMBERS, 0, 1) + _fail(_EPERM),
        # The C library falls back to clone, whose flags a filter can inspect.
        _op(_EQUAL, _CLONE3, 0, 1) + _fail(_ENOSYS),
        *(_op(_EQUAL, number, 0, 1) + _fail(_EPERM) for number in (*numbers["denied"], *_EVERYWHERE)),
        _op(_EQUAL, numbers["clone"], 0, 4),
        _op(_LOAD, _FIRST) + _op(_ANY_BIT, _NEW_NAMESPACES, 0, 1) + _fail(_EPERM) + allow,
        # A process may change its own limits (pid 0), but not those of process 1, which has the same uid.
        _op(_EQUAL, numbers["prlimit"], 0, 4),
        _op(_LOAD, _FIRST) + _op(_EQUAL, 0, 0, 1) + allow + _fail(_EPERM),
        _op(_EQUAL, numbers["socket"], 1, 0) + allow,
        _op(_LOAD, _FIRST),
        *(_op(_EQUAL, family, 0, 1) + allow for family in (_UNIX, _INET, _INET6)),
        _op(_EQUAL, _NETLINK, 1, 0) + _fail(_EPERM),
        # NETLINK_ROUTE, which lists the interfaces, is the only netlink protocol allowed.
        _op(_LOAD, _THIRD) + _op(_EQUAL, 0, 0, 1) + allow + _fail(_EPERM),
    ]
    return b"".join(parts)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def install() -> None:
    """Filter this process and its descendants. Raises: OSError, KeyError for an unsupported machine."""
    code = program(platform.machine())
    library = ctypes.CDLL(None, use_errno=True)
    filter_program = _Program(len(code) // 8, code)
    if library.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0 or library.prctl(
        _SET_SECCOMP, _FILTER_MODE, ctypes.byref(filter_program), 0, 0
    ):
        raise OSError(ctypes.get_errno(), "the system call filter cannot be installed")
