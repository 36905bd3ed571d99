"""Files of the image: pins, marker, and the permitted system calls of the seccomp profile."""

from __future__ import annotations

import json
import re
import socket
from pathlib import Path
from typing import Any

import pytest

from browser_shell.browser.chromium import jail_child as jail_helper
from browser_shell.settings import DRIVER_VERSION, IMAGE_MARKER, NOVNC_VERSION

ROOT = Path(__file__).parents[3]
IMAGE = ROOT / "deploy" / "image"
PIN = re.compile(r"^((?:agent_browser|novnc)_(?:version|integrity))=(\S+)$", re.MULTILINE)
# Access to other processes, kernel programs and keys, other namespaces, and ways around the filter.
NEVER = (
    *("ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "kcmp", "process_madvise"),
    *("bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register"),
    *("keyctl", "add_key", "request_key", "setns", "pivot_root", "umount2", "move_mount", "open_tree", "fsopen"),
    *("init_module", "finit_module", "kexec_load", "reboot", "swapon", "settimeofday", "clock_settime", "quotactl"),
    *("open_by_handle_at", "fanotify_init", "mount_setattr", "iopl", "ioperm", "modify_ldt", "execveat"),
)


@pytest.fixture(scope="module")
def rules() -> list[dict[str, Any]]:
    profile = json.loads((IMAGE / "seccomp.json").read_text(encoding="utf-8"))
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    return list(profile["syscalls"])


def test_image_and_installation_pin_the_same_versions() -> None:
    installed = dict(PIN.findall((ROOT / "scripts" / "install").read_text(encoding="utf-8")))
    assert len(installed) == 4
    assert dict(PIN.findall((IMAGE / "fetch-npm-parts.sh").read_text(encoding="utf-8"))) == installed
    dockerfile = (IMAGE / "Dockerfile").read_text(encoding="utf-8")
    assert f"/agent-browser-{DRIVER_VERSION} " in dockerfile
    assert f"/novnc-{NOVNC_VERSION} " in dockerfile


def test_the_image_contains_the_marker_file() -> None:
    assert f" /dev/null /code{IMAGE_MARKER}\n" in (IMAGE / "Dockerfile").read_text(encoding="utf-8")


def test_no_file_of_the_image_names_a_registry() -> None:
    for path in IMAGE.rglob("*"):
        if path.is_file():
            assert "https://" not in path.read_text(encoding="utf-8"), path


@pytest.mark.promise("container:filter-is-minimal")
def test_the_filter_permits_no_dangerous_system_call(rules: list[dict[str, Any]]) -> None:
    allowed = {name for rule in rules for name in rule["names"] if rule["action"] == "SCMP_ACT_ALLOW"}
    assert allowed & set(NEVER) == set()
    assert len(allowed) < 260


@pytest.mark.promise("container:filter-is-minimal")
def test_calls_beyond_dockers_default_are_limited_to_the_jails_arguments(rules: list[dict[str, Any]]) -> None:
    added = {(rule["names"][0], json.dumps(rule.get("args"))) for rule in rules if rule["comment"].startswith("ADDED")}
    namespaces = jail_helper.CLONE_NEWUSER | jail_helper.CLONE_NEWNET | jail_helper.CLONE_NEWNS
    read_only = jail_helper.MS_RDONLY | jail_helper.MS_NOSUID | jail_helper.MS_NODEV | jail_helper.MS_NOEXEC
    mounts = (
        jail_helper.MS_REC | jail_helper.MS_PRIVATE,
        jail_helper.MS_BIND,
        jail_helper.MS_BIND | jail_helper.MS_REMOUNT | read_only,
        read_only,
    )

    def equal(index: int, value: int) -> str:
        return json.dumps([{"index": index, "value": value, "op": "SCMP_CMP_EQ"}])

    other_namespaces = 0x02000000 | 0x04000000 | 0x08000000 | jail_helper.CLONE_NEWNS
    not_these = [{"index": 0, "value": other_namespaces, "op": "SCMP_CMP_MASKED_EQ", "valueTwo": 0}]
    assert added == {
        ("clone", json.dumps(not_these)),
        ("unshare", equal(0, namespaces)),
        ("unshare", equal(0, jail_helper.CLONE_NEWUSER)),
        ("chroot", "null"),
        *(("mount", equal(3, flags)) for flags in mounts),
    }


@pytest.mark.promise("container:filter-is-minimal")
def test_new_sockets_are_limited_by_family_type_and_protocol(rules: list[dict[str, Any]]) -> None:
    def conditions(name: str) -> set[tuple[tuple[int, int, int], ...]]:
        """Index, mask and value of each argument, by rule."""
        found = set()
        for rule in rules:
            if name in rule["names"]:
                masked = [(one["index"], one["value"], one.get("valueTwo", -1)) for one in rule["args"]]
                found.add(tuple(masked))
        return found

    internet = {
        ((0, family, -1), (1, 0xF, kind), (2, protocol, -1))
        for family in (socket.AF_INET, socket.AF_INET6)
        for kind, protocols in ((socket.SOCK_STREAM, (0, 6)), (socket.SOCK_DGRAM, (0, 17)))
        for protocol in protocols
    }
    assert conditions("socket") == {((0, socket.AF_UNIX, -1),), ((0, socket.AF_NETLINK, -1), (2, 0, -1)), *internet}
    assert conditions("socketpair") == {((0, socket.AF_UNIX, -1),)}


@pytest.mark.promise("container:filter-is-minimal")
def test_socket_options_exclude_the_firewall_and_ipsec(rules: list[dict[str, Any]]) -> None:
    found = [rule["args"] for rule in rules if "setsockopt" in rule["names"]]
    seen = {tuple((one["index"], one["op"].removeprefix("SCMP_CMP_"), one["value"]) for one in args) for args in found}
    first_forbidden = {socket.IPPROTO_IP: 16, socket.IPPROTO_TCP: 31, socket.IPPROTO_IPV6: 34}
    assert seen == {
        ((1, "EQ", socket.SOL_SOCKET),),
        *(((1, "EQ", level), (2, "LT", option)) for level, option in first_forbidden.items()),
        *(((1, "EQ", socket.IPPROTO_IPV6), (2, "EQ", option)) for option in (66, 67)),
    }


def test_every_call_beyond_dockers_default_is_documented() -> None:
    text = (ROOT / "docs" / "reference" / "image.md").read_text(encoding="utf-8")
    for name in ("clone", "unshare", "chroot", "mount"):
        assert re.search(rf"(?m)^\| `{name}` \|", text), name
