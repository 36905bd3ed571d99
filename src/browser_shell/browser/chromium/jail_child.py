"""Child process of the jail: enters new namespaces and executes Chromium there.

The server runs this file under an unprivileged account with the system's Python. It passes the text of the file on the
command line (`python3 -I -S -c`), because the account may be unable to read the file. For the same reason, nothing but
the standard library is imported.

Arguments: the file descriptor of a Unix socket to the server, and a JSON object with the keys

- `argv`, `env`: the program to execute;
- `proxy_port`: the port of the egress proxy inside the jail;
- `hidden_directories`: directories that the program must find empty;
- `pinned_directory`: a directory that the program must not be able to rename;
- `chromium_policies`: the directory that is mounted read-only over /etc/chromium;
- `must_hide`: whether it is an error when mounting is forbidden.

The child answers with one JSON message on the Unix socket. After a success the message is
`{"ok": true, "mounted": BOOL}`, with the descriptors of three sockets; `mounted` is false when the container forbids
mounting. After a failure it is `{"error": TEXT}`, with `"mounted": false` when `must_hide` is the reason.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import socket
import struct
import sys

# From linux/sched.h, linux/mount.h, linux/prctl.h, linux/sockios.h, linux/if.h and linux/capability.h.
CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x00020000, 0x10000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 24, 38, 47, 4
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
LINUX_CAPABILITY_VERSION_3 = 0x20080522
MAX_CAPABILITY = 63

IFREQ_FORMAT = "16sh14x"
"""struct ifreq with the fields `ifr_name` and `ifr_flags`."""

libc = ctypes.CDLL(None, use_errno=True)


def check(result: int, operation: str) -> None:
    """Raise OSError when a C function has failed."""
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{operation}: {os.strerror(number)}")


def enter_namespaces() -> None:
    """Create user, network and mount namespaces. Inside, user and group have the same numbers as outside."""
    uid, gid = os.getuid(), os.getgid()
    check(libc.unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS), "unshare")
    # user_namespaces(7): an unprivileged process may write gid_map only after "deny" in setgroups.
    for name, content in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:  # noqa: PTH123  avoids the import of pathlib
            file.write(content)


def bring_up_loopback() -> None:
    """Set IFF_UP on `lo`, which is down in a new network namespace."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack(IFREQ_FORMAT, b"lo", 0)
        _, flags = struct.unpack(IFREQ_FORMAT, fcntl.ioctl(any_socket, SIOCGIFFLAGS, request))
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack(IFREQ_FORMAT, b"lo", flags | IFF_UP))


def mount(source: str, target: str, filesystem: str, flags: int, options: str = "") -> None:
    """Call mount(2); an empty string stands for NULL."""
    arguments = [text.encode() if text else None for text in (source, target, filesystem)]
    check(libc.mount(*arguments, ctypes.c_ulong(flags), options.encode() if options else None), f"mount {target}")


def set_up_mounts(hidden_directories: list[str], pinned_directory: str, chromium_policies: str) -> bool:
    """Mount over directories of this namespace. Return False when the container forbids mounting."""
    try:
        mount("", "/", "", MS_REC | MS_PRIVATE)  # The mounts below must not propagate to other namespaces.
    except OSError:
        return False
    mount(chromium_policies, "/etc/chromium", "", MS_BIND)
    mount("", "/etc/chromium", "", MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC)
    mount(pinned_directory, pinned_directory, "", MS_BIND)  # A mount point cannot be renamed.
    for directory in hidden_directories:
        # isdir is False for a directory that this account cannot see, which needs no hiding.
        if os.path.isdir(directory):  # noqa: PTH112  avoids the import of pathlib
            mount("none", directory, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, "size=4k,mode=0755")
    return True


def drop_capabilities() -> None:
    """Give up all capabilities, which the creator of a user namespace has in it, and the means to gain new ones."""
    for capability in range(MAX_CAPABILITY + 1):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)  # Fails for numbers that this kernel does not define.
    libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    header = struct.pack("Ii", LINUX_CAPABILITY_VERSION_3, 0)
    check(libc.capset(header, struct.pack("6I", 0, 0, 0, 0, 0, 0)), "capset")
    check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")


def open_listener(address: str, port: int, *, backlog: int) -> socket.socket:
    """Open a TCP listener; port 0 stands for any free port."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, port))
    listener.listen(backlog)
    return listener


def send(control: socket.socket, message: dict[str, object], sockets: tuple[socket.socket, ...] = ()) -> None:
    """Send a message to the server, with the descriptors of these sockets."""
    socket.send_fds(control, [json.dumps(message).encode()], [each.fileno() for each in sockets])


def execute(argv: list[str], env: dict[str, str]) -> int:
    """Replace this process by a program. Return an exit code only when the program cannot be executed."""
    try:
        os.execve(argv[0], argv, env)  # noqa: S606  starts no shell
    except OSError as error:
        print(f"{argv[0]}: {error.strerror}", file=sys.stderr)
    return 127


def main() -> int:
    control = socket.socket(fileno=int(sys.argv[1]))
    # The server made this descriptor inheritable. Descriptors that Python opens are not (PEP 446).
    control.set_inheritable(False)
    config = json.loads(sys.argv[2])
    try:
        enter_namespaces()
        bring_up_loopback()
        # All addresses, because each session connects to the proxy at its own address in 127.0.0.0/8.
        proxy_listener = open_listener("0.0.0.0", config["proxy_port"], backlog=1024)  # noqa: S104  loopback only
        # Not 127.0.0.1, where the free port could be the one that Chromium needs for DevTools.
        listener = open_listener("127.0.0.2", 0, backlog=16)
        client = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        mounted = set_up_mounts(config["hidden_directories"], config["pinned_directory"], config["chromium_policies"])
        if config["must_hide"] and not mounted:
            send(control, {"error": "mounting is forbidden", "mounted": False})
            return 1
        # Chromium's sandbox needs chroot. If a seccomp filter forbids it, an error here is clearer than a crash later.
        check(libc.chroot(b"/"), "chroot")
        drop_capabilities()
    except OSError as error:
        send(control, {"error": str(error)})
        return 1
    send(control, {"ok": True, "mounted": mounted}, (proxy_listener, listener, client))
    return execute(config["argv"], config["env"])


if __name__ == "__main__":
    sys.exit(main())
