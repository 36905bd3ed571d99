"""Events of a browser whose connection is being closed."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import pytest
from anyio.abc import SocketListener

from browser_shell.browser.chromium import supervisor as module
from browser_shell.browser.chromium.supervisor import BrowserSupervisor, OpenNetwork
from browser_shell.browser.devtools.client import DevToolsEvent
from browser_shell.browser.tabs import TabTracker
from browser_shell.core.errors import BrowserUnavailable

CONTEXT = "a context"
PAGE_CREATED = DevToolsEvent(
    method="Target.targetCreated",
    params={
        "targetInfo": {"type": "page", "targetId": "t", "browserContextId": CONTEXT, "url": "http://a/", "title": ""}
    },
    session=None,
)


class DyingBrowser:
    """A fake browser that sends an event before its connection is ready and another while it is being closed."""

    def __init__(self) -> None:
        self.closed = anyio.Event()
        self.sent_last_event = anyio.Event()

    async def call(self, *_: object, **__: object) -> dict[str, Any]:
        return {}

    @asynccontextmanager
    async def connected(
        self, _: str, on_event: Callable[[DevToolsEvent], None], **__: object
    ) -> AsyncIterator[DyingBrowser]:
        on_event(PAGE_CREATED)
        try:
            yield self
        finally:
            on_event(PAGE_CREATED)
            self.sent_last_event.set()


async def return_nothing(*_: object) -> Any:
    return None


async def close_listener(listener: SocketListener) -> None:
    await listener.aclose()


@pytest.mark.anyio
async def test_events_outside_of_a_connection_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    browser, tabs = DyingBrowser(), TabTracker()
    monkeypatch.setattr(module, "connect_devtools", browser.connected)
    monkeypatch.setattr(module, "connect_directly", return_nothing)
    monkeypatch.setattr(module, "devtools_url", return_nothing)
    unused = cast(Any, None)
    with socket.create_server(("127.0.0.1", 0)) as proxy_listener:
        supervisor = BrowserSupervisor(
            chromium=unused,
            jail=unused,
            driver_listener=None,
            serve_egress=close_listener,
            tabs=tabs,
            unsafe_network=OpenNetwork(proxy_listener=proxy_listener, attach_port=1),
        )
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(supervisor.run)
            assert (await supervisor.connection()).generation == 1
            browser.closed.set()
            with anyio.fail_after(5):
                await browser.sent_last_event.wait()
            tasks.cancel_scope.cancel()
    assert tabs.context(CONTEXT).tabs == {}
    with pytest.raises(BrowserUnavailable):
        await supervisor.connection(seconds=0)
