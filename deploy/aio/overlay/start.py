"""The overlay's entry point: judges settings, writes nginx's and the hub's files, takes back AIO's gifts, starts AIO.

Runs as root, before any program of AIO. An unknown or unusable setting stops the start with a message.
"""

from __future__ import annotations

import base64
import binascii
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

OURS = Path("/opt/browser-shell/aio")
GEM = Path("/opt/gem")
RUNTIME = Path("/run/browser-shell-aio")

PORTS = {"PUBLIC_PORT": 8080, "GEM_SERVER_PORT": 8088, "MCP_HUB_PORT": 8079, "WEBSOCKET_PROXY_PORT": 6080}
DEVTOOLS_PORT = "BROWSER_REMOTE_DEBUGGING_PORT"
LARGEST_PORT = 65535
LONGEST_TICKET_SECONDS = 300
SMALLEST_KEY_BITS = 2048
UNSAFE_NO_AUTH = "BROWSER_SHELL_UNSAFE_NO_AUTH"
WITHOUT_EFFECT = ("DISABLE_JUPYTER", "DISABLE_CODE_SERVER", "MCP_HUB_WAIT_PORTS", "WAIT_PORTS")

# With the first two any page reads any other site and every local server; with the third every page drives the browser.
TAKEN_BACK = frozenset(
    {
        "--disable-web-security",
        "--disable-site-isolation-trials",
        "--remote-allow-origins=*",
        "--allow-running-insecure-content",
        "--allow-file-access-from-files",
    }
)
FEATURES_KEPT = frozenset({"isolateorigins", "site-per-process"})
# Sessions have a proxy of their own, which judges. Whatever is left is the browser's own business, or a window that a
# person opened by hand, and goes nowhere: nothing listens on port 1.
ADDED = (
    "--proxy-server=http://127.0.0.1:1",
    "--proxy-bypass-list=<-loopback>",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-quic",
    "--dns-prefetch-disable",
)


class Unusable(Exception):
    """A setting with which nothing is started."""


def ports(env: Mapping[str, str]) -> dict[str, int]:
    """Read the ports of nginx and of the programs behind it. Raises: Unusable."""
    found = {}
    for name, default in {**PORTS, DEVTOOLS_PORT: 9222}.items():
        text = env.get(name, "").strip() or str(default)
        if not (text.isascii() and text.isdigit() and 1 <= int(text) <= LARGEST_PORT):
            raise Unusable(f"{name}: must be a whole number from 1 to {LARGEST_PORT}, not {text[:40]!r}")
        found[name] = int(text)
    if len(set(found.values())) < len(found):
        raise Unusable(f"{', '.join(found)}: must be different ports")
    return found


def asks_for_credentials(env: Mapping[str, str]) -> bool:
    """Return whether there is a key. Without one AIO is open, which must be requested here. Raises: Unusable."""
    text = env.get("JWT_PUBLIC_KEY", "").strip()
    unsafe = env.get(UNSAFE_NO_AUTH, "")
    if unsafe not in ("", "0", "1"):
        raise Unusable(f"{UNSAFE_NO_AUTH}: must be 1 or 0, not {unsafe[:40]!r}")
    if not text:
        if unsafe != "1":
            raise Unusable(
                f"JWT_PUBLIC_KEY: is empty; give the base64 of a PEM, or set {UNSAFE_NO_AUTH}=1 for open access"
            )
        return False
    if unsafe == "1":
        raise Unusable(f"{UNSAFE_NO_AUTH}: contradicts JWT_PUBLIC_KEY; give one of them")
    try:
        key = load_pem_public_key(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, UnsupportedAlgorithm) as cause:
        raise Unusable("JWT_PUBLIC_KEY: must be the base64 of a public key in PEM") from cause
    if not isinstance(key, RSAPublicKey) or key.key_size < SMALLEST_KEY_BITS:
        raise Unusable(
            f"JWT_PUBLIC_KEY: AIO knows RS256 only, so it must be an RSA key of {SMALLEST_KEY_BITS} bits or more"
        )
    return True


def check_ticket_seconds(env: Mapping[str, str]) -> None:
    """AIO reads 0 as for ever, and what it cannot read as 30. Raises: Unusable."""
    text = env.get("TICKET_TTL_SECONDS", "").strip()
    if text and not (text.isascii() and text.isdigit() and 1 <= int(text) <= LONGEST_TICKET_SECONDS):
        raise Unusable(
            f"TICKET_TTL_SECONDS: must be a whole number from 1 to {LONGEST_TICKET_SECONDS}, not {text[:40]!r}"
        )


def check_proxy(env: Mapping[str, str]) -> None:
    """Raises: Unusable."""
    if env.get("PROXY_SERVER", "").strip():
        raise Unusable("PROXY_SERVER: AIO's proxy is not in this image; sessions go out through browser-shell's own")


def without_gifts(flags: str) -> str:
    """Chromium's flags less those that switch the separation of sites off."""
    return " ".join(kept for word in flags.split() if (kept := _without_gift(word)))


def _without_gift(word: str) -> str:
    if word in TAKEN_BACK:
        return ""
    name, equals, value = word.partition("=")
    if name != "--disable-features" or not equals:
        return word
    features = [feature for feature in value.split(",") if feature.lower() not in FEATURES_KEPT]
    return f"{name}={','.join(features)}" if features else ""


def browser_flags(env: Mapping[str, str]) -> dict[str, str]:
    """The two variables by which AIO hands flags to Chromium. Of a flag that is there twice the last one counts."""
    extra = " ".join([without_gifts(env.get("BROWSER_EXTRA_ARGS", "")), *ADDED])
    return {
        "BROWSER_COMMANDLINE_ARGS": without_gifts(env.get("BROWSER_COMMANDLINE_ARGS", "")),
        "BROWSER_EXTRA_ARGS": extra.strip(),
    }


def nginx_configuration(template: str, *, ports: Mapping[str, int], with_credentials: bool, with_ipv6: bool) -> str:
    """Fill in a template. Raises: Unusable when a placeholder has no value."""
    values = {name: str(port) for name, port in ports.items()}
    values["LISTEN_IPV6"] = f"listen [::]:{ports['PUBLIC_PORT']} default_server ipv6only=on;" if with_ipv6 else ""
    values["ASK_FOR_TOKEN"] = "auth_request /_token;" if with_credentials else ""
    values["ASK_FOR_TICKET"] = "auth_request /_ticket;" if with_credentials else ""
    for name, value in values.items():
        template = template.replace(f"@{name}@", value)
    if "@" in template:
        raise Unusable("nginx.conf: a word between at signs has no value")
    return template


def main() -> None:
    env = dict(os.environ)
    try:
        found = ports(env)
        with_credentials = asks_for_credentials(env)
        check_ticket_seconds(env)
        check_proxy(env)
        configuration = nginx_configuration(
            (OURS / "nginx.conf").read_text(encoding="utf-8"),
            ports=found,
            with_credentials=with_credentials,
            with_ipv6=Path("/proc/net/if_inet6").exists(),
        )
    except Unusable as reason:
        sys.exit(f"browser-shell: {reason}")
    for name in WITHOUT_EFFECT:
        if name in env:
            print(f"browser-shell: {name} has no effect in this image", file=sys.stderr)
            del env[name]
    if not with_credentials:
        print(
            f"UNSAFE: {UNSAFE_NO_AUTH}: everyone who reaches the port may drive and watch the browser", file=sys.stderr
        )
    RUNTIME.mkdir(mode=0o755, exist_ok=True)
    (RUNTIME / "nginx.conf").write_text(configuration, encoding="utf-8")
    # AIO renders its template at its first start only, and only beside a route that is gone here.
    hub = (OURS / "mcp-hub.json.template").read_text(encoding="utf-8")
    (GEM / "mcp-hub.json.template").write_text(hub, encoding="utf-8")
    (GEM / "mcp-hub.json").write_text(hub.replace(f"${{{DEVTOOLS_PORT}}}", str(found[DEVTOOLS_PORT])), encoding="utf-8")
    env.update({name: str(port) for name, port in found.items()}, **browser_flags(env))
    env["JWT_PUBLIC_KEY"] = env.get("JWT_PUBLIC_KEY", "").strip()
    os.execve(GEM / "run.sh", [str(GEM / "run.sh")], env)


if __name__ == "__main__":
    main()
