"""Subjects of the benchmark. Each step performs one action of the task, checks it and returns its milliseconds."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

from bench.boxes import OurServer, Setup, acting_as, chromium_box, end_daemon, our_server
from bench.pages import TITLE
from bench.wire import CALL_SECONDS, Cdp, HttpMcp, StdioMcp
from browser_shell.process.accounts import make_private_directory

STEPS = ("open", "snapshot", "fill", "click", "wait", "screenshot")
_JPEG = b"\xff\xd8\xff"
_MIN_IMAGE_BYTES = 2000


class StepFailed(Exception):
    """A step did not have its effect."""


class Subject(Protocol):
    """One way to drive the browser."""

    name: str

    def open(self, url: str) -> float: ...
    def snapshot(self) -> float: ...
    def fill(self, label: str, text: str) -> float: ...
    def click(self, label: str) -> float: ...
    def wait(self, text: str) -> float: ...
    def screenshot(self) -> float: ...


def run_task(subject: Subject, url: str, number: int, *, pause: float = 0) -> dict[str, list[float]]:
    """Run the login task once. Each run has its own user name, so the result of an earlier run cannot pass."""
    user, password = f"user{number}", "s3cret-word"
    durations: dict[str, list[float]] = {step: [] for step in STEPS}
    actions: tuple[tuple[str, Callable[[], float]], ...] = (
        ("open", lambda: subject.open(f"{url}?{number}")),
        ("snapshot", subject.snapshot),
        ("fill", lambda: subject.fill("Username", user)),
        ("fill", lambda: subject.fill("Password", password)),
        ("click", lambda: subject.click("Sign in")),
        ("wait", lambda: subject.wait(f"Welcome, {user} ({len(password)})")),
        ("screenshot", subject.screenshot),
    )
    for step, action in actions:
        time.sleep(pause)
        durations[step].append(action())
    return durations


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    """Return the milliseconds that the action took, and its result."""
    start = time.perf_counter_ns()
    result = action()
    return (time.perf_counter_ns() - start) / 1e6, result


def expect(condition: bool, message: str) -> None:
    if not condition:
        raise StepFailed(message)


def expect_jpeg(content: bytes) -> None:
    expect(content.startswith(_JPEG) and len(content) > _MIN_IMAGE_BYTES, f"not a JPEG image: {content[:20]!r}")


class _SnapshotRefs:
    """Refs of the controls in the last snapshot."""

    _snapshot = ""

    def _keep_snapshot(self, text: str) -> None:
        self._snapshot = text
        for label in ("Username", "Password", "Sign in"):
            self._ref(label)

    def _ref(self, label: str) -> str:
        match = re.search(rf'(?:textbox|button) "{label}" \[.*?ref=(e\d+)', self._snapshot)
        if match is None:
            raise StepFailed(f"{label!r} is not in the snapshot: {self._snapshot[:300]!r}")
        return f"@{match[1]}"


class Ours(_SnapshotRefs):
    """This server, over HTTP."""

    def __init__(self, name: str, server: OurServer, era: str) -> None:
        self.name = name
        self.server = server
        self.client = HttpMcp(server.port, era, server.token)

    def _call(self, *argv: str) -> tuple[float, Any, list[Any]]:
        params = {"name": "browser-shell", "arguments": {"session_id": "bench", "argv": list(argv)}}
        duration, result = timed(lambda: self.client.call("tools/call", params))
        self.client.finish()
        output = result["structuredContent"]
        expect(output["exit_code"] == 0, f"{argv[0]}: {output['stderr'][:300]}")
        return duration, json.loads(output["stdout"]), result["content"]

    def list_tools(self) -> tuple[float, Any]:
        duration, result = timed(lambda: self.client.call("tools/list", {}))
        self.client.finish()
        return duration, result

    def open(self, url: str) -> float:
        duration, data, _ = self._call("open", url)
        expect(data["title"] == TITLE, f"open: {data}")
        return duration

    def snapshot(self) -> float:
        duration, data, _ = self._call("snapshot", "-i")
        self._keep_snapshot(data["snapshot"])
        return duration

    def fill(self, label: str, text: str) -> float:
        return self._call("fill", self._ref(label), text)[0]

    def click(self, label: str) -> float:
        return self._call("click", self._ref(label))[0]

    def wait(self, text: str) -> float:
        return self._call("wait", "--text", text)[0]

    def screenshot(self) -> float:
        duration, _, content = self._call("screenshot")
        expect_jpeg(base64.b64decode(content[1]["data"]))
        return duration


class DriverCli(_SnapshotRefs):
    """The agent-browser CLI: one process per call, a running daemon and a window of its own."""

    name = "cli"

    def __init__(self, setup: Setup, port: int, target: str) -> None:
        self._setup = setup
        self._sockets, self._env, self._files = _driver_files(setup, self.name, target)
        self._argv = [str(setup.settings.driver), "--json", "--cdp", str(port), "--session", "bench", "--pin-tab"]

    def run(self, *command: str) -> tuple[float, Any]:
        def action() -> Any:
            process = subprocess.run(
                [*self._argv, *command],
                env=self._env,
                cwd=self._files,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=CALL_SECONDS,
                check=False,
            )
            return json.loads(process.stdout or b"{}")

        with acting_as(self._setup.account):
            duration, reply = timed(action)
        expect(reply.get("success") is True, f"{command[0]}: {reply}")
        return duration, reply["data"]

    def open(self, url: str) -> float:
        duration, data = self.run("open", url)
        expect(data["title"] == TITLE, f"open: {data}")
        return duration

    def snapshot(self) -> float:
        duration, data = self.run("snapshot", "-i")
        self._keep_snapshot(data["snapshot"])
        return duration

    def fill(self, label: str, text: str) -> float:
        return self.run("fill", self._ref(label), text)[0]

    def click(self, label: str) -> float:
        return self.run("click", self._ref(label))[0]

    def wait(self, text: str) -> float:
        return self.run("wait", "--text", text)[0]

    def screenshot(self) -> float:
        path = self._files / "shot.jpg"
        duration, _ = self.run("screenshot", str(path))
        read_duration, content = timed(path.read_bytes)  # An agent needs the image, not its path.
        path.unlink()
        expect_jpeg(content)
        return duration + read_duration

    def close(self) -> None:
        end_daemon(self._sockets, self._setup.settings.driver)


class DriverMcp(_SnapshotRefs):
    """agent-browser's own MCP server, over standard input and output."""

    name = "ab-mcp"

    def __init__(self, setup: Setup, port: int, target: str) -> None:
        self._setup = setup
        self._sockets, env, files = _driver_files(setup, self.name, target)
        env |= {"AGENT_BROWSER_CDP": str(port), "AGENT_BROWSER_SESSION": "bench", "AGENT_BROWSER_PIN_TAB": "1"}
        account = setup.account
        self.client = StdioMcp(
            [str(setup.settings.driver), "mcp"],
            env=env,
            cwd=files,
            user=account.uid if account else None,
            group=account.gid if account else None,
        )

    def _call(self, tool: str, **arguments: Any) -> tuple[float, Any, str]:
        params = {"name": f"agent_browser_{tool}", "arguments": arguments}
        duration, result = timed(lambda: self.client.call("tools/call", params))
        content = result["content"]
        text = "".join(block.get("text", "") for block in content)
        expect(not result.get("isError"), f"{tool}: {text[:300]}")
        return duration, result, text

    def list_tools(self) -> tuple[float, Any]:
        return timed(lambda: self.client.call("tools/list", {}))

    def open(self, url: str) -> float:
        duration, _, text = self._call("open", url=url)
        expect(TITLE in text, f"open: {text[:300]}")
        return duration

    def snapshot(self) -> float:
        duration, result, _ = self._call("snapshot", interactive=True)
        self._keep_snapshot(_find(result["structuredContent"], "snapshot"))
        return duration

    def fill(self, label: str, text: str) -> float:
        return self._call("fill", selector=self._ref(label), text=text)[0]

    def click(self, label: str) -> float:
        return self._call("click", selector=self._ref(label))[0]

    def wait(self, text: str) -> float:
        return self._call("wait_for_text", text=text)[0]

    def screenshot(self) -> float:
        duration, result, _ = self._call("screenshot")
        expect_jpeg(base64.b64decode(next(block["data"] for block in result["content"] if block["type"] == "image")))
        return duration

    def close(self) -> None:
        self.client.close()
        end_daemon(self._sockets, self._setup.settings.driver)


def _find(value: Any, key: str) -> str:
    """Return the first string under this key at any depth."""
    if isinstance(value, dict):
        if isinstance(value.get(key), str):
            return str(value[key])
        return next((found for inner in value.values() if (found := _find(inner, key))), "")
    return ""


_WAIT_FOR_TEXT = """new Promise((done) => {
  const present = () => document.body.innerText.includes(WANTED);
  if (present()) return done(true);
  const observer = new MutationObserver(() => { if (present()) { observer.disconnect(); done(true); } });
  observer.observe(document.body, {subtree: true, childList: true, characterData: true});
})"""


class RawCdp:
    """The same task as DevTools commands over one WebSocket: the cost of the browser itself."""

    name = "raw-cdp"

    def __init__(self, cdp: Cdp) -> None:
        self._cdp = cdp
        self._nodes: dict[str, int] = {}
        cdp.call("Page.enable")

    def open(self, url: str) -> float:
        def action() -> str:
            self._cdp.clear_events()
            self._cdp.call("Page.navigate", url=url)
            self._cdp.wait_event("Page.loadEventFired")
            return str(self._cdp.call("Runtime.evaluate", expression="document.title")["result"]["value"])

        duration, title = timed(action)
        expect(title == TITLE, f"open: {title}")
        return duration

    def snapshot(self) -> float:
        def action() -> None:
            self._nodes = {
                node["name"]["value"]: node["backendDOMNodeId"]
                for node in self._cdp.call("Accessibility.getFullAXTree")["nodes"]
                if node.get("role", {}).get("value") in ("textbox", "button")
            }

        duration, _ = timed(action)
        expect({"Username", "Password", "Sign in"} <= set(self._nodes), f"snapshot: {self._nodes}")
        return duration

    def fill(self, label: str, text: str) -> float:
        def action() -> None:
            node = self._cdp.call("DOM.resolveNode", backendNodeId=self._nodes[label])["object"]["objectId"]
            focus = "function(){this.focus();this.select();}"
            self._cdp.call("Runtime.callFunctionOn", objectId=node, functionDeclaration=focus)
            self._cdp.call("Input.insertText", text=text)

        return timed(action)[0]

    def click(self, label: str) -> float:
        def action() -> None:
            node = self._nodes[label]
            scroll = self._cdp.post("DOM.scrollIntoViewIfNeeded", backendNodeId=node)
            quads = self._cdp.post("DOM.getContentQuads", backendNodeId=node)
            self._cdp.take(scroll)
            quad = self._cdp.take(quads)["quads"][0]
            at = {"x": sum(quad[0::2]) / 4, "y": sum(quad[1::2]) / 4}
            button = {"button": "left", "clickCount": 1}
            events = [
                self._cdp.post("Input.dispatchMouseEvent", type="mouseMoved", **at),
                self._cdp.post("Input.dispatchMouseEvent", type="mousePressed", **at, **button),
                self._cdp.post("Input.dispatchMouseEvent", type="mouseReleased", **at, **button),
            ]
            for number in events:
                self._cdp.take(number)

        return timed(action)[0]

    def wait(self, text: str) -> float:
        script = _WAIT_FOR_TEXT.replace("WANTED", json.dumps(text))
        duration, reply = timed(lambda: self._cdp.call("Runtime.evaluate", expression=script, awaitPromise=True))
        expect(reply["result"].get("value") is True, f"wait: {reply}")
        return duration

    def screenshot(self) -> float:
        def action() -> bytes:
            return base64.b64decode(self._cdp.call("Page.captureScreenshot", format="jpeg", quality=80)["data"])

        duration, content = timed(action)
        expect_jpeg(content)
        return duration


def _driver_files(setup: Setup, name: str, target: str) -> tuple[Path, dict[str, str], Path]:
    """Create the socket directory, environment and working directory of agent-browser as this server does."""
    base = setup.folder / name
    sockets = make_private_directory(base / "s", owner=setup.account)
    files = make_private_directory(base / "f", owner=setup.account)
    with acting_as(setup.account):
        (sockets / "bench.target").write_text(json.dumps({"targetId": target, "url": "about:blank", "pinned": True}))
        (files / "config.json").write_text("{}")
    output = setup.settings.policy.output
    env = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(files),
        "LC_ALL": "C.UTF-8",
        "NO_COLOR": "1",
        "AGENT_BROWSER_SOCKET_DIR": str(sockets),
        "AGENT_BROWSER_CONFIG": str(files / "config.json"),
        "AGENT_BROWSER_PLUGINS": "[]",
        "AGENT_BROWSER_NO_WEBMCP": "1",
        "AGENT_BROWSER_SCREENSHOT_DIR": str(files),
        "AGENT_BROWSER_SCREENSHOT_FORMAT": output.screenshot_format,
        "AGENT_BROWSER_SCREENSHOT_QUALITY": str(output.screenshot_quality),
        "AGENT_BROWSER_IDLE_TIMEOUT_MS": "600000",
        "AGENT_BROWSER_DEFAULT_TIMEOUT": "15000",
    }
    return sockets, env, files


@contextmanager
def ours(setup: Setup, name: str, command: Path, era: str) -> Iterator[Ours]:
    policy = setup.folder / f"{name}-policy.json"
    addresses = [f"127.0.0.1:{setup.page_port}"]
    policy.write_text(
        json.dumps(
            {"version": 1, "open": {"unsafe_allow_addresses": addresses}, "limits": {"calls_per_minute": 100_000}}
        )
    )
    with our_server(setup, name, command, policy) as server:
        subject = Ours(name, server, era)
        try:
            yield subject
        finally:
            subject.client.close()


PEERS: dict[str, type[DriverCli] | type[DriverMcp]] = {"cli": DriverCli, "ab-mcp": DriverMcp}


@contextmanager
def peer(setup: Setup, name: str) -> Iterator[Subject]:
    """Yield a subject with its own Chromium and window."""
    with ExitStack() as stack:
        port = stack.enter_context(chromium_box(setup, name))
        cdp = Cdp(port)
        stack.callback(cdp.close)
        target = cdp.open_window()
        if name == "raw-cdp":
            cdp.attach(target)
            yield RawCdp(cdp)
            return
        subject = PEERS[name](setup, port, target)
        stack.callback(subject.close)
        yield subject
