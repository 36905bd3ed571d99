"""Host names: the canonical form, and names that are not on the public web."""

from __future__ import annotations

import re

from ada_url import URL, HostType

from browser_shell.core.decisions import Decision, denied

MAX_NAME_OCTETS = 253
MAX_LABEL_OCTETS = 63

_LABEL = re.compile(r"[a-z0-9_-]+")
_ENCODED = "xn--"
_CONTROL = re.compile(r"[\x00-\x20\x7f-\x9f]")
_NOT_A_NAME = re.compile(r"[\s/\\?#@%*\[\]\x00-\x1f\x7f]")

METADATA_NAMES = frozenset(
    {
        "api.metadata.cloud.ibm.com",
        "data-server",
        "instance-data",
        "instance-data.ec2.internal",
        "metadata",
        "metadata.aws.internal",
        "metadata.azure.internal",
        "metadata.exoscale.com",
        "metadata.goog",
        "metadata.google.internal",
        "metadata.packet.net",
        "metadata.platformequinix.com",
        "metadata.tencentyun.com",
        "rancher-metadata",
    }
)

LOOPBACK_NAMES = frozenset(
    {
        "broadcasthost",
        "ip6-allnodes",
        "ip6-allrouters",
        "ip6-localhost",
        "ip6-localnet",
        "ip6-loopback",
        "ip6-mcastprefix",
        "localhost",
        "localhost4",
        "localhost6",
        "loopback",
    }
)
"""Names of the machine and its link in /etc/hosts of common systems."""

LOOPBACK_SUFFIXES = ("localhost", "localdomain", "localdomain4", "localdomain6")

LOCAL_SUFFIXES = ("corp", "home", "home.arpa", "internal", "intranet", "lan", "local", "private", "svc")
"""Domains that only private name servers answer: RFC 6762, RFC 8375, ICANN's .internal, Kubernetes, home routers."""

LOCAL_NAMES = frozenset({"kubernetes", "kubernetes.default"})


def canonical_host(text: str) -> str:
    """Return the ASCII form of a host name in a policy.

    Raises: ValueError naming the problem.
    """
    if not text or text == ".":
        raise ValueError("must not be empty")
    if "*" in text:
        raise ValueError("must not hold a wildcard; allow_host_suffixes covers subdomains")
    if ":" in text or _NOT_A_NAME.search(text):
        raise ValueError("must be a host name alone: no scheme, port, path, user or space")
    try:
        url = URL(f"https://{text}/")
    except ValueError as cause:
        raise ValueError("is not a valid host name") from cause
    if url.host_type != HostType.DEFAULT:
        raise ValueError("must be a name, not an address")
    host = url.hostname.removesuffix(".")
    problem = name_problem(host)
    if problem:
        raise ValueError(problem)
    return host


def canonical_suffix(text: str) -> str:
    """Return a suffix entry with exactly one leading dot.

    Raises: ValueError naming the problem.
    """
    return "." + canonical_host(text.removeprefix("."))


def name_problem(host: str) -> str:
    """Return why this is not a valid DNS name, or ''."""
    if len(host) > MAX_NAME_OCTETS:
        return f"is longer than {MAX_NAME_OCTETS} octets"
    for label in host.split("."):
        if not label:
            return "has an empty label"
        if len(label) > MAX_LABEL_OCTETS:
            return f"has a label longer than {MAX_LABEL_OCTETS} octets"
        if not _LABEL.fullmatch(label):
            return "holds a character that is not allowed in host names"
        if label.startswith(_ENCODED) and not _decodes(label):
            return "has a label that begins with xn-- and is not valid Punycode"
    return ""


def _decodes(label: str) -> bool:
    """Return whether a label is Punycode of text that is not ASCII."""
    try:
        decoded = label.removeprefix(_ENCODED).encode("ascii").decode("punycode")
    except UnicodeError:
        return False
    return not decoded.isascii() and not _CONTROL.search(decoded)


def judge_machine_name(host: str) -> Decision | None:
    """Deny the names of this machine and of metadata services. No policy can exempt them."""
    if host in METADATA_NAMES:
        return denied("host.metadata", f"{host} is a cloud metadata service")
    if host in LOOPBACK_NAMES or _ends_with(host, LOOPBACK_SUFFIXES):
        return denied("host.local", f"{host} names the machine itself")
    return None


def judge_local_name(host: str) -> Decision | None:
    """Deny names of private networks."""
    if host in LOCAL_NAMES or _ends_with(host, LOCAL_SUFFIXES):
        return denied("host.local", f"{host} is a name of a private network")
    return None


def _ends_with(host: str, suffixes: tuple[str, ...]) -> bool:
    return any(host == suffix or host.endswith("." + suffix) for suffix in suffixes)
