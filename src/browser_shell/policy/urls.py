"""URLs and host names, parsed by the WHATWG rules that browsers use (the ada library); names that are not public.

Text that could be read in two ways is refused here. `rules.py` decides which URLs may be opened.
"""

from __future__ import annotations

import re
import unicodedata
from ipaddress import IPv4Address, IPv6Address

from ada_url import URL, HostType

from browser_shell.core.calls import UrlTarget
from browser_shell.core.decisions import Decision, denied
from browser_shell.core.errors import ArgumentsInvalid, CallRefused, PolicyBlocked
from browser_shell.policy.messages import quoted

MAX_URL_CHARACTERS = 8192
ABOUT_BLANK = "about:blank"
DEFAULT_PORTS = {"http": 80, "https": 443}
BAD_PORTS = frozenset(
    {0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104}
    | {109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526}
    | {530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045}
    | {4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080}
)
"""WHATWG Fetch, "bad port": services that could take an HTTP request for a command of their own protocol."""

_END_OF_HEAD = re.compile(r"[/\\?#]")
_INVISIBLE = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""Unicode categories: control, lone surrogate, line and paragraph separator."""
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


def parse_target(text: str) -> UrlTarget:
    """Parse a URL. A bare host gets the scheme https.

    Raises: ArgumentsInvalid for text that is not a clear URL; PolicyBlocked for a scheme that can never be opened.
    """
    if len(text) > MAX_URL_CHARACTERS:
        raise _invalid_url(f"the URL has more than {MAX_URL_CHARACTERS} characters")
    _refuse_invisible(text)
    return _parse_target(_with_scheme(text))


def is_canonical(target: UrlTarget) -> bool:
    """Return whether the parts of a target agree with its href. A hook may have built the target."""
    try:
        return _parse_target(target.href) == target
    except CallRefused:
        return False


def _parse_target(text: str) -> UrlTarget:
    url = _parse_url(text)
    scheme = url.protocol.removesuffix(":")
    if url.href == ABOUT_BLANK:
        return UrlTarget(href=ABOUT_BLANK, scheme=scheme, host="", port=0)
    if scheme not in DEFAULT_PORTS:
        raise PolicyBlocked(f"{quoted(text)}: only http, https and about:blank can be opened", rule_id="url.scheme")
    if url.username or url.password:
        raise ArgumentsInvalid("the URL carries a user name or password; leave it out", rule_id="url.userinfo")
    return _web_target(url, scheme)


def _refuse_invisible(text: str) -> None:
    # The parser would drop these characters, so the URL that opens would not be the one that a person reads.
    if text != text.strip() or any(unicodedata.category(character) in _INVISIBLE for character in text):
        raise _invalid_url(f"{quoted(text)} holds a control character, a line break, or a space at its start or end")


def _with_scheme(text: str) -> str:
    """Put `https://` before a bare host. The WHATWG rules take `example.com` in `example.com:8080` for a scheme."""
    head = _END_OF_HEAD.split(text, maxsplit=1)[0]
    if not head:
        raise _invalid_url(f"{quoted(text)} has no host; write a full URL such as https://example.com/")
    name, colon, port = head.partition(":")
    host_and_port = port.isascii() and port.isdigit() and ("." in name or name.lower() == "localhost")
    if not colon or head.startswith("[") or host_and_port:
        return f"https://{text}"
    return text


def _parse_url(text: str) -> URL:
    try:
        return URL(text)
    except ValueError as cause:
        raise _invalid_url(f"{quoted(text)} is not a valid URL") from cause


def _web_target(url: URL, scheme: str) -> UrlTarget:
    host = url.hostname.removesuffix(".")
    address = _literal(url, host)
    problem = name_problem(host) if address is None else ""
    if problem:
        raise _invalid_url(f"the host {quoted(host)} {problem}")
    return UrlTarget(
        href=url.href,
        scheme=scheme,
        host=host if address is None else str(address),
        port=int(url.port) if url.port else DEFAULT_PORTS[scheme],
        address=address,
    )


def _literal(url: URL, host: str) -> IPv4Address | IPv6Address | None:
    if url.host_type == HostType.IPV4:
        return IPv4Address(host)
    if url.host_type == HostType.IPV6:
        return IPv6Address(host.strip("[]"))
    return None


def _invalid_url(message: str) -> ArgumentsInvalid:
    return ArgumentsInvalid(message, rule_id="url.syntax")


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


def canonical_origin(text: str) -> str:
    """Return an http or https origin in canonical form, without a slash at its end.

    Raises: ValueError naming the problem.
    """
    try:
        origin = parse_target(text).href.removesuffix("/")
    except CallRefused as refusal:
        raise ValueError(refusal.public_message) from refusal
    if "://" not in text or not origin.startswith("http") or set("?#") & set(origin) or origin.count("/") != 2:
        raise ValueError("must be an origin, for example https://intranet.example.com")
    return origin


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
