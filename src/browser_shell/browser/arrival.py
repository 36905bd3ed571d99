"""The document that a command led to: its URL and title, the error that it stands for, and its HTTP status."""

from __future__ import annotations

from dataclasses import replace

import anyio

from browser_shell.browser.devtools.client import DevToolsError
from browser_shell.browser.navigation_errors import (
    EMPTY_WITH_STATUS,
    NEEDS_CREDENTIALS,
    credentials_required,
    navigation_failed,
    scheme_denied,
)
from browser_shell.browser.page.page import Page
from browser_shell.browser.page.scripts import load_script
from browser_shell.core.calls import BrowserCommand, CommandResult
from browser_shell.core.errors import ActFailed, BrowserUnavailable
from browser_shell.core.json_values import JsonObject

_STATE_SECONDS = 2.0
_RETRY_SECONDS = 0.2
_ATTEMPTS = 3
_HTTP = ("http:", "https:")
_UNAUTHORIZED = 401
_FIRST_ERROR_STATUS = 400


def needs_description(plan: BrowserCommand, result: CommandResult) -> bool:
    """Whether the command led to another document, or failed to."""
    if result.error is not None:
        return EMPTY_WITH_STATUS in result.message
    return plan.name != "get" and isinstance(result.data, dict) and "url" in result.data


async def describe_arrival(page: Page, result: CommandResult) -> CommandResult:
    """Complete a result with the document that the tab shows now. Leave it as it is if the page does not reply."""
    with anyio.move_on_after(_STATE_SECONDS):
        state = await _document_state(page)
        if state.get("error") is None:
            return arrived_at(result, state)
        return arrived_at(result, {**state, "url": await _unreachable_url(page)})
    return result


async def _unreachable_url(page: Page) -> str:
    """Return the URL that an error page stands for. Raises: BrowserUnavailable, DevToolsError."""
    tree = (await page.send("Page.getFrameTree")).get("frameTree")
    frame = tree.get("frame") if isinstance(tree, dict) else None
    return str(frame.get("unreachableUrl", "")) if isinstance(frame, dict) else ""


async def _document_state(page: Page) -> JsonObject:
    for _ in range(_ATTEMPTS):
        try:
            state = await page.call_function(await page.top_frame(), load_script("document_state"))
            return state if isinstance(state, dict) else {}
        except (ActFailed, BrowserUnavailable, DevToolsError):
            await page.wait_for_event(seconds=_RETRY_SECONDS)  # The document is being replaced.
    return {}


def arrived_at(result: CommandResult, state: JsonObject) -> CommandResult:
    """Complete a result with a document state: the reply of `document_state.js`, or {} when it is not known."""
    url, title, error, status = (state.get(key) for key in ("url", "title", "error", "status"))
    if isinstance(error, str):
        if not str(url).startswith(_HTTP):
            return scheme_denied(str(url))
        # The page behind the login prompt of the browser is empty.
        return navigation_failed(error or NEEDS_CREDENTIALS, url="" if result.error else str(url))
    if result.error is not None or not isinstance(result.data, dict) or not isinstance(status, int):
        return result
    if status == _UNAUTHORIZED and not state.get("signsIn"):
        return credentials_required()
    note = f"NOTE: the site answered with HTTP status {status}" if status >= _FIRST_ERROR_STATUS else ""
    return replace(
        result,
        data={**result.data, "title": result.data.get("title") or title},
        message="\n".join(filter(None, (result.message, note))),
    )
