"""Waits in the page: for a text, for an element, for a time, and for the first controls of a page that opened."""

from __future__ import annotations

from collections.abc import Callable

import anyio

from browser_shell.browser.devtools.client import DevToolsError
from browser_shell.browser.page.frames import Frame
from browser_shell.browser.page.page import Page
from browser_shell.browser.page.scripts import load_script
from browser_shell.core.calls import BrowserCommand
from browser_shell.core.errors import ActFailed, ErrorCode
from browser_shell.core.json_values import JsonObject, JsonValue

_HAS_TEXT = "function (text, ms) { return browserShell.until(() => browserShell.hasText(text), ms) }"
_POLL_SECONDS = 1.0
_MAX_FRAMES = 5
_IS_LARGE = """function () {
  const box = this.getBoundingClientRect();
  return box.width >= 100 && box.height >= 50 && browserShell.isVisible(this);
}"""
FIRST_CONTROLS_MS = 3_000
"""How long to wait for the first controls of a page after it was opened."""


async def wait(page: Page, plan: BrowserCommand) -> JsonObject:
    """Run `wait MS`, `wait CSS [--state visible|hidden]` or `wait --text TEXT`. Raises: ActFailed on timeout."""
    if "text" in plan.options:
        return await _wait_for_text(page, plan)
    if plan.operands[0].isascii() and plan.operands[0].isdigit():
        return await _sleep(page, plan, int(plan.operands[0]))
    return await _wait_for_element(page, plan)


async def _sleep(page: Page, plan: BrowserCommand, milliseconds: int) -> JsonObject:
    allowed = int(page.seconds_left * 1000)
    await anyio.sleep(min(milliseconds, allowed) / 1000)
    if milliseconds > allowed:
        raise ActFailed(
            ErrorCode.TIMEOUT,
            f"{milliseconds} ms exceed timeout_sec {plan.timeout_seconds}; waited {allowed} ms; the page stays open",
        )
    return {"waited": "timeout", "ms": milliseconds}


async def _wait_for_text(page: Page, plan: BrowserCommand) -> JsonObject:
    """Wait until a frame of the page shows the text."""
    text = plan.options["text"]
    await _until(page, plan, lambda: (_HAS_TEXT, text), any_frame=True)
    return {"waited": "text", "text": text}


async def _wait_for_element(page: Page, plan: BrowserCommand) -> JsonObject:
    css, state = plan.operands[0], plan.options.get("state", "visible")
    await _until(page, plan, lambda: (load_script("wait_for_element"), css, state), any_frame=state == "visible")
    return {"waited": "selector" if state == "visible" else state, "selector": css}


async def wait_for_first_controls(page: Page) -> bool:
    """Wait until the page and its visible frames show controls or are quiet.

    Return whether this is so in all of them.
    """
    end = anyio.current_time() + FIRST_CONTROLS_MS / 1000
    ready: list[bool] = []

    async def wait_in(frame: Frame) -> None:
        rest_ms = int((end - anyio.current_time()) * 1000)
        try:
            owner = await page.owner(frame)
            if owner is None or await owner.call(_IS_LARGE):
                ready.append(bool(await page.call_function(frame, load_script("first_controls"), max(rest_ms, 1))))
        except (DevToolsError, ActFailed):
            ready.append(False)  # The page navigated to another document.

    await wait_in(await page.top_frame())
    async with anyio.create_task_group() as tasks:
        for frame in (await page.frames())[1:_MAX_FRAMES]:
            tasks.start_soon(wait_in, frame)
    return all(ready)


async def _until(
    page: Page, plan: BrowserCommand, request: Callable[[], tuple[JsonValue, ...]], *, any_frame: bool
) -> None:
    """Call a page function in each frame until one returns true, or with `any_frame` off until all have.

    After a document is replaced, all frames are tested again. Raises: ActFailed when the time is over.
    """
    end = anyio.current_time() + page.seconds_left
    while (rest_ms := int((end - anyio.current_time()) * 1000)) > 0:
        results: dict[str, bool] = {}
        frames = await page.frames()

        async def wait_in(frame: Frame, scope: anyio.CancelScope, rest_ms: int, results: dict[str, bool]) -> None:
            function, *args = request()
            try:
                results[frame.frame_id] = bool(await page.call_function(frame, str(function), *args, rest_ms))
            except DevToolsError:
                return  # The document of the frame was replaced.
            if results[frame.frame_id] and any_frame:
                scope.cancel()

        async def watch_frames(scope: anyio.CancelScope, documents: set[tuple[str, str]]) -> None:
            while {(frame.frame_id, frame.loader_id) for frame in await page.frames()} == documents:
                await page.wait_for_event(seconds=_POLL_SECONDS)
            scope.cancel()

        with anyio.move_on_after(rest_ms / 1000 + _POLL_SECONDS):
            async with anyio.create_task_group() as tasks:
                documents = {(frame.frame_id, frame.loader_id) for frame in frames}
                tasks.start_soon(watch_frames, tasks.cancel_scope, documents)
                async with anyio.create_task_group() as waits:
                    for frame in frames:
                        waits.start_soon(wait_in, frame, waits.cancel_scope, rest_ms, results)
                tasks.cancel_scope.cancel()
        done = any(results.values()) if any_frame else len(results) == len(frames) and all(results.values())
        if done:
            return
    raise ActFailed(
        ErrorCode.TIMEOUT,
        f"the condition was not met within {plan.timeout_seconds} s; the page stays open",
        advice="Look at the page with snapshot -i: what you wait for may have another form.",
    )
