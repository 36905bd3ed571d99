"""The things compared. Each step takes the words of the task, checks that it was done, and returns milliseconds."""

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
_SMALLEST_PICTURE = 2000


class StepFailed(Exception):
    """The step did not do what it should."""


class Subject(Protocol):
    """One way to drive the browser."""

    name: str

    def open(self, url: str) -> float: ...
    def snapshot(self) -> float: ...
    def fill(self, label: str, text: str) -> float: ...
    def click(self, label: str) -> float: ...
    def wait(self, text: str) -> float: ...
    def screenshot(self) -> float: ...


def loop(subject: Subject, url: str, number: int, *, pause: float = 0) -> dict[str, list[float]]:
    """The login task once. The name is new each time, so that nothing left over from before can pass for success."""
    user, password = f"user{number}", "s3cret-word"
    spent: dict[str, list[float]] = {step: [] for step in STEPS}
    acts: tuple[tuple[str, Callable[[], float]], ...] = (
        ("open", lambda: subject.open(f"{url}?{number}")),
        ("snapshot", subject.snapshot),
        ("fill", lambda: subject.fill("Username", user)),
        ("fill", lambda: subject.fill("Password", password)),
        ("click", lambda: subject.click("Sign in")),
        ("wait", lambda: subject.wait(f"Welcome, {user} ({len(password)})")),
        ("screenshot", subject.screenshot),
    )
    for step, act in acts:
        time.sleep(pause)
        spent[step].append(act())
    return spent


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter_ns()
    result = action()
    return (time.perf_counter_ns() - start) / 1e6, result


def expect(holds: bool, what: str) -> None:
    if not holds:
        raise StepFailed(what)


def picture(content: bytes) -> None:
    expect(content.startswith(_JPEG) and len(content) > _SMALLEST_PICTURE, f"not a picture: {content[:20]!r}")


class _ByReferences:
    """Finds the controls in the text of the last snapshot."""

    _snapshot = ""

    def _keep(self, text: str) -> None:
        self._snapshot = text
        for label in ("Username", "Password", "Sign in"):
            self._reference(label)

    def _reference(self, label: str) -> str:
        found = re.search(rf'(?:textbox|button) "{label}" \[.*?ref=(e\d+)', self._snapshot)
        if found is None:
            raise StepFailed(f"{label!r} is not in the snapshot: {self._snapshot[:300]!r}")
        return f"@{found[1]}"


class Ours(_ByReferences):
    """This server, over HTTP."""

    def __init__(self, name: str, server: OurServer, era: str) -> None:
        self.name = name
        self.server = server
        self.client = HttpMcp(server.port, era, server.token)

    def _call(self, *argv: str) -> tuple[float, Any, list[Any]]:
        params = {"name": "browser-shell", "arguments": {"session_id": "bench", "argv": list(argv)}}
        spent, result = timed(lambda: self.client.call("tools/call", params))
        self.client.finish()
        answer = result["structuredContent"]
        expect(answer["exit_code"] == 0, f"{argv[0]}: {answer['stderr'][:300]}")
        return spent, json.loads(answer["stdout"]), result["content"]

    def list_tools(self) -> tuple[float, Any]:
        answer = timed(lambda: self.client.call("tools/list", {}))
        self.client.finish()
        return answer

    def open(self, url: str) -> float:
        spent, data, _ = self._call("open", url)
        expect(data["title"] == TITLE, f"open: {data}")
        return spent

    def snapshot(self) -> float:
        spent, data, _ = self._call("snapshot", "-i")
        self._keep(data["snapshot"])
        return spent

    def fill(self, label: str, text: str) -> float:
        return self._call("fill", self._reference(label), text)[0]

    def click(self, label: str) -> float:
        return self._call("click", self._reference(label))[0]

    def wait(self, text: str) -> float:
        return self._call("wait", "--text", text)[0]

    def screenshot(self) -> float:
        spent, _, content = self._call("screenshot")
        picture(base64.b64decode(content[1]["data"]))
        return spent


class BareCli(_ByReferences):
    """The agent-browser CLI, one process per call, with a warm daemon in a window of its own."""

    name = "cli"

    def __init__(self, setup: Setup, port: int, target: str) -> None:
        self._setup = setup
        self._sockets, self._env, self._files = _driver_files(setup, self.name, target)
        self._argv = [str(setup.settings.driver), "--json", "--cdp", str(port), "--session", "bench", "--pin-tab"]

    def words(self, *words: str) -> tuple[list[str], bytes]:
        """The command line and the input."""
        return [*self._argv, *words], b""

    def run(self, *words: str) -> tuple[float, Any]:
        argv, stdin = self.words(*words)

        def action() -> Any:
            done = subprocess.run(
                argv,
                env=self._env,
                cwd=self._files,
                input=stdin,
                capture_output=True,
                timeout=CALL_SECONDS,
                check=False,
            )
            return json.loads(done.stdout or b"{}")

        with acting_as(self._setup.account):
            spent, answer = timed(action)
        one = answer[-1] if isinstance(answer, list) else answer
        expect(one.get("success") is True, f"{words[0]}: {one}")
        return spent, one.get("data", one.get("result"))

    def open(self, url: str) -> float:
        spent, data = self.run("open", url)
        expect(data["title"] == TITLE, f"open: {data}")
        return spent

    def snapshot(self) -> float:
        spent, data = self.run("snapshot", "-i")
        self._keep(data["snapshot"])
        return spent

    def fill(self, label: str, text: str) -> float:
        return self.run("fill", self._reference(label), text)[0]

    def click(self, label: str) -> float:
        return self.run("click", self._reference(label))[0]

    def wait(self, text: str) -> float:
        return self.run("wait", "--text", text)[0]

    def screenshot(self) -> float:
        path = self._files / "shot.jpg"
        spent, _ = self.run("screenshot", str(path))
        reading, content = timed(path.read_bytes)  # An agent needs the picture, not its path.
        path.unlink()
        picture(content)
        return spent + reading

    def close(self) -> None:
        end_daemon(self._sockets, self._setup.settings.driver)


class BatchCli(BareCli):
    """The same with the command as JSON on standard input, as this server must call it. Not in the default run."""

    name = "cli-batch"

    def words(self, *words: str) -> tuple[list[str], bytes]:
        return [*self._argv, "batch", "--bail", "--omit-command"], json.dumps([words]).encode()


class DriverMcp(_ByReferences):
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
        spent, result = timed(lambda: self.client.call("tools/call", params))
        content = result["content"]
        text = "".join(block.get("text", "") for block in content)
        expect(not result.get("isError"), f"{tool}: {text[:300]}")
        return spent, result, text

    def list_tools(self) -> tuple[float, Any]:
        return timed(lambda: self.client.call("tools/list", {}))

    def open(self, url: str) -> float:
        spent, _, text = self._call("open", url=url)
        expect(TITLE in text, f"open: {text[:300]}")
        return spent

    def snapshot(self) -> float:
        spent, result, _ = self._call("snapshot", interactive=True)
        self._keep(_find(result["structuredContent"], "snapshot"))
        return spent

    def fill(self, label: str, text: str) -> float:
        return self._call("fill", selector=self._reference(label), text=text)[0]

    def click(self, label: str) -> float:
        return self._call("click", selector=self._reference(label))[0]

    def wait(self, text: str) -> float:
        return self._call("wait_for_text", text=text)[0]

    def screenshot(self) -> float:
        spent, result, _ = self._call("screenshot")
        picture(base64.b64decode(next(block["data"] for block in result["content"] if block["type"] == "image")))
        return spent

    def close(self) -> None:
        self.client.close()
        end_daemon(self._sockets, self._setup.settings.driver)


def _find(value: Any, key: str) -> str:
    """The first string under `key`, however deep."""
    if isinstance(value, dict):
        if isinstance(value.get(key), str):
            return str(value[key])
        return next((found for inner in value.values() if (found := _find(inner, key))), "")
    return ""


_WAIT_FOR_TEXT = """new Promise((done) => {
  const there = () => document.body.innerText.includes(WANTED);
  if (there()) return done(true);
  const watch = new MutationObserver(() => { if (there()) { watch.disconnect(); done(true); } });
  watch.observe(document.body, {subtree: true, childList: true, characterData: true});
})"""


class RawCdp:
    """The same acts as DevTools commands over one WebSocket: what the browser itself costs."""

    name = "raw-cdp"

    def __init__(self, cdp: Cdp) -> None:
        self._cdp = cdp
        self._nodes: dict[str, int] = {}
        cdp.call("Page.enable")

    def open(self, url: str) -> float:
        def action() -> str:
            self._cdp.forget_events()
            self._cdp.call("Page.navigate", url=url)
            self._cdp.wait_event("Page.loadEventFired")
            return str(self._cdp.call("Runtime.evaluate", expression="document.title")["result"]["value"])

        spent, title = timed(action)
        expect(title == TITLE, f"open: {title}")
        return spent

    def snapshot(self) -> float:
        def action() -> None:
            self._nodes = {
                node["name"]["value"]: node["backendDOMNodeId"]
                for node in self._cdp.call("Accessibility.getFullAXTree")["nodes"]
                if node.get("role", {}).get("value") in ("textbox", "button")
            }

        spent, _ = timed(action)
        expect({"Username", "Password", "Sign in"} <= set(self._nodes), f"snapshot: {self._nodes}")
        return spent

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
            scrolled = self._cdp.post("DOM.scrollIntoViewIfNeeded", backendNodeId=node)
            box = self._cdp.post("DOM.getContentQuads", backendNodeId=node)
            self._cdp.take(scrolled)
            quad = self._cdp.take(box)["quads"][0]
            at = {"x": sum(quad[0::2]) / 4, "y": sum(quad[1::2]) / 4}
            button = {"button": "left", "clickCount": 1}
            sent = [
                self._cdp.post("Input.dispatchMouseEvent", type="mouseMoved", **at),
                self._cdp.post("Input.dispatchMouseEvent", type="mousePressed", **at, **button),
                self._cdp.post("Input.dispatchMouseEvent", type="mouseReleased", **at, **button),
            ]
            for number in sent:
                self._cdp.take(number)

        return timed(action)[0]

    def wait(self, text: str) -> float:
        script = _WAIT_FOR_TEXT.replace("WANTED", json.dumps(text))
        spent, answer = timed(lambda: self._cdp.call("Runtime.evaluate", expression=script, awaitPromise=True))
        expect(answer["result"].get("value") is True, f"wait: {answer}")
        return spent

    def screenshot(self) -> float:
        def action() -> bytes:
            return base64.b64decode(self._cdp.call("Page.captureScreenshot", format="jpeg", quality=80)["data"])

        spent, content = timed(action)
        picture(content)
        return spent


def _driver_files(setup: Setup, name: str, target: str) -> tuple[Path, dict[str, str], Path]:
    """Socket directory, environment and working directory for agent-browser, prepared like this server's sessions."""
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
    exempt = [f"127.0.0.1:{setup.page_port}"]
    policy.write_text(
        json.dumps({"version": 1, "open": {"unsafe_allow_addresses": exempt}, "limits": {"calls_per_minute": 100_000}})
    )
    with our_server(setup, name, command, policy) as server:
        subject = Ours(name, server, era)
        try:
            yield subject
        finally:
            subject.client.close()


PEERS: dict[str, type[BareCli] | type[DriverMcp]] = {"cli": BareCli, "cli-batch": BatchCli, "ab-mcp": DriverMcp}


@contextmanager
def peer(setup: Setup, name: str) -> Iterator[Subject]:
    """A subject with a Chromium of its own, and a window of its own in it."""
    with ExitStack() as held:
        port = held.enter_context(chromium_box(setup, name))
        cdp = Cdp(port)
        held.callback(cdp.close)
        target = cdp.open_window()
        if name == "raw-cdp":
            cdp.attach(target)
            yield RawCdp(cdp)
            return
        subject = PEERS[name](setup, port, target)
        held.callback(subject.close)
        yield subject
