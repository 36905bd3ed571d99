"""Navigation that takes too long ends before the deadline of its call, and the history has pages or not."""

from __future__ import annotations

from typing import Any, cast

import anyio
import pytest

from browser_shell.browser import navigation
from browser_shell.browser.navigation import LoadWatch, history_problem, no_answer
from browser_shell.browser.page.frames import Navigations
from browser_shell.browser.page.page import Page
from browser_shell.core.calls import BrowserCommand
from browser_shell.core.errors import ErrorCode

SOON, NEVER = 0.05, 3600.0
TEST_SECONDS = 20


class FakePage:
    """The part of a page that the module uses."""

    def __init__(self, history: dict[str, Any] | None = None) -> None:
        self.navigations = Navigations(top_frame_id="top")
        self.posted: list[str] = []
        self.was_stopped = anyio.Event()
        self.history = history or {}

    def post(self, method: str) -> None:
        self.posted.append(method)
        self.was_stopped.set()

    async def send(self, method: str) -> dict[str, Any]:
        assert method == "Page.getNavigationHistory"
        return self.history


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> FakePage:
    monkeypatch.setattr(navigation, "_CHECK_SECONDS", 0.01)
    return FakePage()


async def watched(page: FakePage, *, seconds: float = NEVER, documents: int, is_parsed: bool) -> LoadWatch:
    """Watch a navigation that shows a number of documents and then does not end by itself."""
    watch = LoadWatch(cast(Page, page), seconds=seconds)
    with anyio.fail_after(TEST_SECONDS), watch:
        page.navigations.documents += documents
        page.navigations.pending = set() if is_parsed else {"top"}
        await page.was_stopped.wait()
    return watch


async def test_a_parsed_page_whose_resources_do_not_arrive_is_shown(
    page: FakePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(navigation, "RESOURCES_SECONDS", SOON)
    watch = await watched(page, documents=1, is_parsed=True)
    assert (watch.is_loading, watch.was_stopped, page.posted) == (True, False, [])


async def test_a_page_that_is_not_parsed_is_shown_later(page: FakePage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(navigation, "RESOURCES_SECONDS", 0.0)
    monkeypatch.setattr(navigation, "DOCUMENT_SECONDS", SOON)
    assert (await watched(page, documents=1, is_parsed=False)).is_loading


async def test_a_page_is_shown_before_the_call_ends(page: FakePage) -> None:
    seconds = SOON + navigation._STOP_MARGIN_SECONDS
    assert (await watched(page, documents=1, is_parsed=False, seconds=seconds)).is_loading


async def test_a_navigation_without_an_answer_is_stopped_once(page: FakePage) -> None:
    watch = await watched(page, documents=0, is_parsed=False, seconds=SOON + navigation._STOP_MARGIN_SECONDS)
    assert (watch.is_loading, watch.was_stopped, page.posted) == (False, True, ["Page.stopLoading"])


async def test_a_navigation_that_ends_by_itself_is_left_alone(page: FakePage) -> None:
    watch = LoadWatch(cast(Page, page), seconds=NEVER)
    with watch:
        page.navigations.documents += 1
        await anyio.sleep(0.05)
    assert (watch.is_loading, watch.was_stopped) == (False, False)


def command(name: str) -> BrowserCommand:
    return BrowserCommand(session_id="s", name=name, timeout_seconds=7)


@pytest.mark.parametrize(
    ("name", "index", "count", "is_possible"),
    [
        *(("back", 0, 1, False), ("back", 0, 3, False), ("back", 1, 2, True)),
        *(("forward", 0, 1, False), ("forward", 2, 3, False), ("forward", 1, 3, True)),
        ("reload", 0, 1, True),
    ],
)
async def test_back_and_forward_need_a_page_in_the_history(
    name: str, index: int, count: int, is_possible: bool
) -> None:
    page = FakePage({"currentIndex": index, "entries": [{}] * count})
    problem = await history_problem(cast(Page, page), command(name))
    assert (problem is None) is is_possible
    if problem is not None:
        assert problem.error is ErrorCode.COMMAND_FAILED
        assert "open URL" in problem.advice


async def test_an_unreadable_history_refuses_nothing() -> None:
    assert await history_problem(cast(Page, FakePage({})), command("back")) is None


def test_a_server_without_an_answer_is_a_timeout_that_keeps_the_page() -> None:
    result = no_answer(command("open"))
    assert (result.error, result.exit_code) == (ErrorCode.TIMEOUT, 124)
    assert "within 7 s" in result.message
    assert "still open" in result.message
