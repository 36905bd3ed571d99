"""Run a page command (`page/commands.py`) in a session's active tab, and describe what it changed."""

from __future__ import annotations

from browser_shell.browser.devtools.client import DevToolsError
from browser_shell.browser.page.commands import Effect, PageCommand
from browser_shell.browser.page.page import Page
from browser_shell.browser.page.settle import Change, watch_changes
from browser_shell.core.calls import BrowserCommand, CommandResult
from browser_shell.core.errors import ActFailed, ErrorCode, first_error
from browser_shell.core.json_values import JsonObject


async def run_on_page(page: Page, plan: BrowserCommand, run: PageCommand, effect: Effect) -> CommandResult:
    """Run one command and return its data, what it changed, and notes. Failed acts become results.

    Raises: BrowserUnavailable, DevToolsError when the tab is gone.
    """
    page.notes.clear()
    page.attachments.clear()
    try:
        data = await _run(page, plan, run, effect)
    except ActFailed as failure:
        code = failure.code
        return CommandResult(
            exit_code=code.exit_code,
            error=code,
            message=_one_line(failure.public_message),
            advice=_one_line(failure.advice),
        )
    return CommandResult(
        exit_code=0,
        data=data,
        message="\n".join(f"NOTE: {_one_line(note)}" for note in page.notes),
        attachments=tuple(page.attachments),
    )


async def _run(page: Page, plan: BrowserCommand, run: PageCommand, effect: Effect) -> JsonObject:
    """Run the command. An error of one of its tasks is raised without the group of the tasks."""
    try:
        return await (run(page, plan) if effect is Effect.NONE else _act(page, plan, run, effect))
    except BaseExceptionGroup as group:
        raise first_error(group) from group


def _one_line(text: str) -> str:
    """Join the lines of a text. A page could otherwise add lines that look like notes of the server."""
    return " ".join(text.splitlines())


async def _act(page: Page, plan: BrowserCommand, run: PageCommand, effect: Effect) -> JsonObject:
    # The next step needs a quiet page, unless it is a `wait`, which has a condition of its own.
    needs_quiet = plan.next_step not in ("", "wait")
    watch = await watch_changes(page, counts_requests=needs_quiet)
    try:
        data = await run(page, plan)
        waits_for_change = effect is Effect.CHANGE and plan.next_step != "wait"
        change = await watch.settle(waits_for_change=waits_for_change, quiet=needs_quiet)
    finally:
        if needs_quiet:
            page.stop_counting_requests()
    return await _describe(page, data, change, effect=effect)


async def _describe(page: Page, data: JsonObject, change: Change, *, effect: Effect) -> JsonObject:
    if change.document or change.url:
        try:
            url, title = await page.location()
        except DevToolsError:
            url = title = ""
        data = {**data, "url": url, "title": title}
        if change.document and len(page.refs):
            page.notes.append("the page was replaced; take a new snapshot before you use refs")
    elif effect is Effect.CHANGE and change.on_canvas and not change.changed:
        page.notes.append("a canvas received it; take a screenshot to see whether the drawing changed")
    elif effect is Effect.CHANGE:
        data = {**data, "changed": change.changed}
    if change.focus and effect is Effect.CHANGE:
        page.notes.append(f"the focus is now in {change.focus}")
    if change.still_loading:
        page.notes.append("the page is still loading; use wait --load load or wait --text TEXT")
    return data


def page_replaced(problem: DevToolsError) -> CommandResult:
    """Return the result of a command whose document was replaced while it ran."""
    return CommandResult(
        exit_code=ErrorCode.PAGE_CHANGED.exit_code,
        error=ErrorCode.PAGE_CHANGED,
        message=f"the page was replaced while the command ran ({problem.public_message})",
        advice="Take a new snapshot; whether the command had an effect is not known.",
    )
