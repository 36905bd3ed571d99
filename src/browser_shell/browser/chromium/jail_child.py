"""The jail's maker: makes a network namespace with nothing in it but loopback, and becomes one program there.

It is started as source text by the system's Python, as an unprivileged account, so it imports only the standard
library. Before it becomes the program it opens the one listener that the program may reach, and two sockets of which
the server makes its own connections to the program, and hands them over: sockets of the inner namespace in the hands
of a process outside are the only doors.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import socket
import struct
import sys

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x00020000, 0x10000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 24, 38, 47, 4
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
CAPABILITY_VERSION_3 = 0x20080522
HIGHEST_CAPABILITY = 63

libc = ctypes.CDLL(None, use_errno=True)


def check(result: int, step: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{step}: {os.strerror(number)}")


def enter_namespaces() -> None:
    uid, gid = os.getuid(), os.getgid()
    check(libc.unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS), "unshare")
    for name, content in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as entry:  # noqa: PTH123  without the megabyte of pathlib
            entry.write(content)


def raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(any_socket, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    arguments = [text.encode() if text else None for text in (source, target, kind)]
    check(libc.mount(*arguments, ctypes.c_ulong(flags), options.encode() if options else None), f"mount {target}")


def arrange_files(hidden: list[str], overlays: dict[str, str]) -> bool:
    """Hides folders and puts others in their place. False where a container forbids mounting."""
    try:
        mount("", "/", "", MS_REC | MS_PRIVATE)
    except OSError:
        return False
    for place, folder in overlays.items():
        mount(folder, place, "", MS_BIND)
        mount("", place, "", MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC)
    for folder in hidden:
        if os.path.isdir(folder):  # noqa: PTH112  what cannot even be looked at needs no hiding, and is no error
            mount("none", folder, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, "size=4k,mode=0755")
    return True


def drop_capabilities() -> None:
    """The maker of a user namespace has every capability in it. Nothing is left to use them for."""
    for number in range(HIGHEST_CAPABILITY + 1):
        libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0)
    libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    header = struct.pack("Ii", CAPABILITY_VERSION_3, 0)
    check(libc.capset(header, struct.pack("6I", 0, 0, 0, 0, 0, 0)), "capset")
    check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")


def listening(address: str, port: int, *, waiting: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, port))
    listener.listen(waiting)
    return listener


def send(control: socket.socket, message: dict[str, object], handles: list[int]) -> None:
    socket.send_fds(control, [json.dumps(message).encode()], handles)


def become(argv: list[str], env: dict[str, str]) -> int:
    """Returns only when there is no such program."""
    try:
        os.execve(argv[0], argv, env)  # noqa: S606  no shell is the point
    except OSError as error:
        print(f"{argv[0]}: {error.strerror}", file=sys.stderr)
    return 127


def main() -> int:
    control = socket.socket(fileno=int(sys.argv[1]))
    # Nothing of what is opened here may be open in the program, and all else that is opened is so by itself.
    control.set_inheritable(False)
    config = json.loads(sys.argv[2])
    try:
        enter_namespaces()
        raise_loopback()
        # Every 127.x.y.z is this machine in here: each session dials an address of its own.
        proxy = listening("0.0.0.0", config["proxy_port"], waiting=1024)  # noqa: S104  there is no other interface
        # Not on 127.0.0.1: there its port might be the one that the program is to have.
        doors = [listening("127.0.0.2", 0, waiting=16), socket.socket(socket.AF_INET, socket.SOCK_STREAM)]
        arranged = arrange_files(config["hidden"], config["overlays"])
        if config["must_hide"] and not arranged:
            send(control, {"error": "mounting is forbidden", "arranged": False}, [])
            return 1
        # Chromium's own sandbox needs this call; where it is filtered, better said here than by a browser that dies.
        check(libc.chroot(b"/"), "chroot")
        drop_capabilities()
    except OSError as error:
        send(control, {"error": str(error)}, [])
        return 1
    send(control, {"ok": True, "arranged": arranged}, [each.fileno() for each in (proxy, *doors)])
    return become(config["argv"], config["env"])


if __name__ == "__main__":
    sys.exit(main())
