"""Mechanisms by which a page makes a browser open connections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote


@dataclass(frozen=True, kw_only=True)
class Mechanism:
    """A page that connects to a target.

    In the HTML, TARGET stands for the target's origin, such as `http://10.0.0.1:80`, SOCKET for the same origin with
    the scheme ws, and REDIRECT for a path of the site that redirects to the target.
    """

    name: str
    html: str
    alone: bool = False
    """The mechanism leaves the page, so a page can try one target only."""
    secure: bool = False
    """Only secure origins have it. Loopback is one."""
    clicked: bool = False
    """The mechanism starts with a click on #go."""
    happens: bool = True
    """False when this browser never connects, not even to an allowed host."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers of the page. TARGET is replaced here too."""

    def page(self, targets: Sequence[str]) -> str:
        return f"<!doctype html><title>{self.name}</title><body>{''.join(map(self._html_for, targets))}"

    def _html_for(self, target: str) -> str:
        socket = target.replace("http", "ws", 1)
        return self.html.replace("TARGET", target).replace("SOCKET", socket).replace("REDIRECT", redirect_path(target))


def redirect_path(target: str) -> str:
    return f"/to/{quote(target, safe='')}"


def _script(code: str) -> str:
    return f"<script>{{ {code} }}</script>"


def _worker(code: str) -> str:
    return f"URL.createObjectURL(new Blob([`{code}`], {{type: 'text/javascript'}}))"


_FETCH = "fetch('TARGET/x', {mode: 'no-cors'}).catch(() => 0)"

MECHANISMS = (
    # Leaving the page
    Mechanism(name="navigation", html=_script("location.href = 'TARGET/x'"), alone=True),
    Mechanism(name="meta-refresh", html="<meta http-equiv=refresh content='0;url=TARGET/x'>", alone=True),
    Mechanism(
        name="form-post",
        html="<form id=f method=post action='TARGET/x' enctype=text/plain><input name=a value=b></form>"
        + _script("f.submit()"),
        alone=True,
    ),
    Mechanism(name="redirect", html="", headers={"Location": "TARGET/x"}, alone=True),
    Mechanism(name="refresh-header", html="", headers={"Refresh": "0;url=TARGET/x"}, alone=True),
    Mechanism(
        name="popup", html="<button id=go onclick=\"window.open('TARGET/x')\">go</button>", alone=True, clicked=True
    ),
    Mechanism(name="link-click", html="<a id=go href='TARGET/x'>go</a>", alone=True, clicked=True),
    Mechanism(
        name="document-write",
        html=_script("document.open(); document.write(\"<img src='TARGET/x'>\"); document.close()"),
        alone=True,
    ),
    # Scripts
    Mechanism(name="fetch", html=_script(_FETCH)),
    Mechanism(
        name="fetch-keepalive", html=_script("fetch('TARGET/x', {mode: 'no-cors', keepalive: true}).catch(() => 0)")
    ),
    Mechanism(name="xhr", html=_script("const r = new XMLHttpRequest(); r.open('GET', 'TARGET/x'); r.send()")),
    Mechanism(name="websocket", html=_script("new WebSocket('SOCKET/x')")),
    Mechanism(name="event-source", html=_script("new EventSource('TARGET/x')")),
    Mechanism(name="beacon", html=_script("navigator.sendBeacon('TARGET/x', 'data')")),
    Mechanism(name="module-import", html=_script("import('TARGET/x').catch(() => 0)")),
    Mechanism(name="wasm", html=_script("WebAssembly.instantiateStreaming(fetch('TARGET/x')).catch(() => 0)")),
    Mechanism(name="worker-fetch", html=_script(f"new Worker({_worker(_FETCH)})")),
    Mechanism(name="worker-import", html=_script("new Worker(" + _worker("importScripts('TARGET/x')") + ")")),
    Mechanism(name="shared-worker", html=_script(f"new SharedWorker({_worker(_FETCH)})")),
    Mechanism(
        name="service-worker",
        html=_script("navigator.serviceWorker.register('/worker.js?' + encodeURIComponent('TARGET/x'))"),
        secure=True,
    ),
    Mechanism(
        name="turn-over-tcp",
        html=_script(
            "const c = new RTCPeerConnection({iceTransportPolicy: 'relay', iceServers: [{urls: 'turn:' + "
            "'TARGET'.slice(7) + '?transport=tcp', username: 'u', credential: 'p'}]}); c.createDataChannel('d');"
            "c.createOffer().then(o => c.setLocalDescription(o))"
        ),
        happens=False,
    ),
    # Elements
    Mechanism(name="iframe", html="<iframe src='TARGET/x'></iframe>"),
    Mechanism(name="iframe-srcdoc", html='<iframe srcdoc="' + _script(_FETCH) + '"></iframe>'),
    Mechanism(name="iframe-data", html='<iframe src="data:text/html,' + _script(_FETCH) + '"></iframe>', happens=False),
    Mechanism(
        name="iframe-blob",
        html=_script(
            "const f = document.createElement('iframe'); document.body.append(f);"
            "f.src = URL.createObjectURL(new Blob(['<img src=TARGET/x>'], {type: 'text/html'}))"
        ),
    ),
    Mechanism(name="image", html="<img src='TARGET/x'>"),
    Mechanism(name="srcset", html="<img srcset='TARGET/x 1x, TARGET/x 2x'>"),
    Mechanism(name="svg-image", html="<svg><image href='TARGET/x' /></svg>"),
    Mechanism(name="audio", html="<audio src='TARGET/x' autoplay></audio>"),
    Mechanism(name="video", html="<video src='TARGET/x' autoplay muted></video>"),
    Mechanism(name="poster", html="<video poster='TARGET/x'></video>"),
    Mechanism(name="track", html="<video crossorigin><track default src='TARGET/x'></video>"),
    Mechanism(name="object", html="<object data='TARGET/x'></object>"),
    Mechanism(name="embed", html="<embed src='TARGET/x'>"),
    Mechanism(name="script", html="<script src='TARGET/x'></script>"),
    Mechanism(name="stylesheet", html="<link rel=stylesheet href='TARGET/x'>"),
    Mechanism(name="css-import", html="<style>@import 'TARGET/x';</style>"),
    Mechanism(name="css-url", html="<style>div { background: url(TARGET/x) }</style><div>text</div>", alone=True),
    Mechanism(
        name="font",
        html="<style>@font-face { font-family: f; src: url(TARGET/x) } p { font-family: f }</style><p>text</p>",
        alone=True,
    ),
    Mechanism(name="preload", html="<link rel=preload as=image href='TARGET/x'>"),
    Mechanism(name="module-preload", html="<link rel=modulepreload href='TARGET/x'>"),
    Mechanism(name="icon", html="<link rel=icon href='TARGET/x'>", alone=True, happens=False),
    Mechanism(
        name="csp-report",
        html="<img src=data:,>",
        headers={"Content-Security-Policy-Report-Only": "img-src 'none'; report-uri TARGET/x"},
        alone=True,
    ),
    Mechanism(name="fetch-redirect", html=_script("fetch('REDIRECT', {mode: 'no-cors'}).catch(() => 0)")),
    Mechanism(name="iframe-redirect", html="<iframe src='REDIRECT'></iframe>"),
    # Mostly disabled in this browser
    Mechanism(name="prefetch", html="<link rel=prefetch href='TARGET/x'>"),
    Mechanism(name="preconnect", html="<link rel=preconnect href='TARGET'>", happens=False),
    Mechanism(name="dns-prefetch", html="<link rel=dns-prefetch href='TARGET'>", happens=False),
    Mechanism(name="manifest", html="<link rel=manifest href='TARGET/x'>", happens=False),
    Mechanism(
        name="speculation-rules",
        html='<script type=speculationrules>{"prefetch": [{"source": "list", "urls": ["TARGET/x"]}],'
        ' "prerender": [{"source": "list", "urls": ["TARGET/x"]}]}</script>',
        happens=False,
    ),
    Mechanism(name="ping", html="<a id=go href='#' ping='TARGET/x'>go</a>", alone=True, clicked=True, happens=False),
    Mechanism(
        name="stun",
        html=_script(
            "const c = new RTCPeerConnection({iceServers: [{urls: 'stun:' + 'TARGET'.slice(7)}]});"
            "c.createDataChannel('d'); c.createOffer().then(o => c.setLocalDescription(o))"
        ),
        happens=False,
    ),
    Mechanism(
        name="web-transport",
        html=_script("new WebTransport('TARGET/x'.replace('http', 'https'))"),
        secure=True,
        happens=False,
    ),
    Mechanism(name="xslt", html="", headers={"Content-Type": "application/xml"}, happens=False, alone=True),
)
