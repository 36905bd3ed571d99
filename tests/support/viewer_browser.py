"""The browser of a viewer: a second, headless Chromium, driven over plain DevTools."""

from __future__ import annotations

import base64
import io
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from PIL import Image
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

CHROMIUM = Path("/usr/lib/chromium/chromium")
ACCOUNT = "browser-shell"
_START_SECONDS = 30
_CALL_SECONDS = 20
_WAIT_SECONDS = 30


@dataclass
class ViewerPage:
    """One page in that browser."""

    socket: ClientConnection
    console: list[str] = field(default_factory=list)
    """Exceptions, errors and violations of the content security policy."""
    requests: list[str] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self.numbers)
        self.socket.send(json.dumps({"id": number, "method": method, "params": params}))
        deadline = time.monotonic() + _CALL_SECONDS
        while True:
            message = json.loads(self.socket.recv(timeout=deadline - time.monotonic()))
            if message.get("id") == number:
                assert "error" not in message, f"{method}: {message['error']}"
                result: dict[str, Any] = message["result"]
                return result
            self._collect(message)

    def _collect(self, event: dict[str, Any]) -> None:
        match event.get("method"):
            case "Runtime.exceptionThrown":
                self.console.append(json.dumps(event["params"]["exceptionDetails"])[:500])
            case "Log.entryAdded" if event["params"]["entry"]["level"] == "error":
                self.console.append(event["params"]["entry"]["text"])
            case "Runtime.consoleAPICalled" if event["params"]["type"] == "error":
                self.console.append(json.dumps(event["params"]["args"])[:500])
            case "Network.requestWillBeSent":
                self.requests.append(event["params"]["request"]["url"])
            case _:
                pass

    def resize(self, width: int, height: int, *, phone: bool = False) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2 if phone else 1,
            mobile=phone,
        )
        if phone:
            self.call("Emulation.setTouchEmulationEnabled", enabled=True)

    def visit(self, url: str) -> None:
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)

    def evaluate(self, script: str) -> Any:
        return self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)["result"].get(
            "value"
        )

    def wait_for(self, script: str, what: str, *, seconds: float = _WAIT_SECONDS) -> Any:
        """Poll until a script in the page returns a true value."""
        return eventually(lambda: self.evaluate(script), f"{what}; errors of the page: {self.console}", seconds)

    def wait_until_live(self) -> None:
        self.wait_for("document.body.dataset.state === 'connected'", "the page never showed a picture")

    def text(self, selector: str) -> str:
        return str(self.evaluate(f"document.querySelector({json.dumps(selector)}).innerText"))

    def click_element(self, selector: str) -> None:
        """Click the middle of an element with the mouse."""
        x, y = self.evaluate(
            f"(() => {{ const box = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
            "return [box.x + box.width / 2, box.y + box.height / 2] })()"
        )
        self.click(x, y)

    def click(self, x: float, y: float) -> None:
        self.call("Page.bringToFront")
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def type(self, text: str) -> None:
        for letter in text:
            key = {"key": letter, "text": letter, "code": f"Key{letter.upper()}"}
            self.call("Input.dispatchKeyEvent", type="keyDown", **key)
            self.call("Input.dispatchKeyEvent", type="keyUp", **key)

    def display_point(self, x: float, y: float) -> tuple[float, float]:
        """Return the position in this page of a point of the remote display."""
        box = self.evaluate(
            "(() => { const c = document.querySelector('#screen canvas'); const b = c.getBoundingClientRect();"
            "return [b.x, b.y, b.width / c.width, b.height / c.height] })()"
        )
        return box[0] + x * box[2], box[1] + y * box[3]

    def picture(self) -> Image.Image:
        """Return the remote display as the canvas shows it."""
        data = self.evaluate("document.querySelector('#screen canvas').toDataURL('image/png')")
        return Image.open(io.BytesIO(base64.b64decode(data.partition(",")[2]))).convert("RGB")

    def screenshot(self) -> bytes:
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])


def eventually(check: Callable[[], Any], what: str, seconds: float = _WAIT_SECONDS) -> Any:
    """Poll until `check` returns a true value, and return it."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = check()
        if value:
            return value
        time.sleep(0.1)
    raise AssertionError(what)


@dataclass(frozen=True)
class ViewerBrowser:
    port: int

    @contextmanager
    def page(self) -> Iterator[ViewerPage]:
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/json/new?about:blank", method="PUT")
        with urllib.request.urlopen(request, timeout=_CALL_SECONDS) as response:  # noqa: S310
            target = json.loads(response.read())
        with connect(target["webSocketDebuggerUrl"], max_size=None, compression=None, proxy=None) as socket:
            page = ViewerPage(socket)
            for domain in ("Page", "Runtime", "Log", "Network"):
                page.call(f"{domain}.enable")
            page.resize(1400, 900)
            yield page
            try:
                page.call("Page.close")
            except ConnectionClosed:
                return


@contextmanager
def running_viewer_browser() -> Iterator[ViewerBrowser]:
    directory = Path(tempfile.mkdtemp(prefix="viewer-", dir="/tmp"))
    drop: list[str] = []
    if os.geteuid() == 0:
        # Chromium does not run as root, and its sandbox stays on.
        shutil.chown(directory, ACCOUNT, ACCOUNT)
        drop = ["setpriv", f"--reuid={ACCOUNT}", f"--regid={ACCOUNT}", "--clear-groups", "--"]
    argv = [
        *drop,
        str(CHROMIUM),
        "--headless=new",
        "--remote-debugging-port=0",
        f"--user-data-dir={directory}/profile",
        "--no-first-run",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-dev-shm-usage",
        "--force-color-profile=srgb",
    ]
    env = {"HOME": str(directory), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(argv, env=env, stdout=log, stderr=log, start_new_session=True)
    try:
        port_file = directory / "profile" / "DevToolsActivePort"
        text = eventually(
            lambda: port_file.read_text(encoding="ascii") if port_file.exists() else "",
            "the second browser did not start",
            _START_SECONDS,
        )
        yield ViewerBrowser(port=int(text.split()[0]))
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)
        shutil.rmtree(directory, ignore_errors=True)
