from __future__ import annotations

import pytest

from browser_shell.browser.devtools.client import DevToolsEvent
from browser_shell.browser.page.frames import Navigations, frames_in
from browser_shell.core.json_values import JsonObject, JsonValue

TOP = "TOP"


def event(method: str, **params: JsonValue) -> DevToolsEvent:
    return DevToolsEvent(method=method, params=params, session="S")


def test_frames_come_with_parents_before_children() -> None:
    child: JsonObject = {"frame": {"id": "C", "loaderId": "2", "url": "http://b.test/", "parentId": TOP}}
    tree: JsonObject = {
        "frameTree": {"frame": {"id": TOP, "loaderId": "1", "url": "http://a.test/"}, "childFrames": [child]}
    }
    assert [(frame.frame_id, frame.parent_id, frame.cdp_session) for frame in frames_in(tree, "S")] == [
        (TOP, "", "S"),
        ("C", TOP, "S"),
    ]


def test_a_navigation_of_the_top_frame_is_pending_until_its_document_is_parsed() -> None:
    navigations = Navigations(top_frame_id=TOP)
    navigations.handle(event("Page.frameStartedNavigating", frameId=TOP, navigationType="differentDocument"))
    assert navigations.handle(event("Page.frameNavigated", frame={"id": TOP})) is True
    assert navigations.pending == {TOP}
    navigations.top_document_parsed()
    assert navigations.pending == set()
    assert navigations.started == 1


@pytest.mark.parametrize(
    "ending",
    [
        event("Page.frameStoppedLoading", frameId=TOP),
        event("Page.frameClearedScheduledNavigation", frameId=TOP),
        event("Page.frameDetached", frameId=TOP),
    ],
)
def test_a_navigation_without_a_document_ends(ending: DevToolsEvent) -> None:
    navigations = Navigations(top_frame_id=TOP)
    navigations.handle(event("Page.frameRequestedNavigation", frameId=TOP, disposition="currentTab"))
    navigations.handle(ending)
    assert navigations.pending == set()


@pytest.mark.parametrize(
    "other",
    [
        event("Page.frameStartedNavigating", frameId=TOP, navigationType="sameDocument"),
        event("Page.frameRequestedNavigation", frameId=TOP, disposition="newTab"),
    ],
)
def test_navigations_within_the_document_and_to_other_tabs_are_not_pending(other: DevToolsEvent) -> None:
    navigations = Navigations(top_frame_id=TOP)
    navigations.handle(other)
    assert navigations.pending == set()
    assert navigations.started == 0


@pytest.mark.parametrize("method", ["Page.frameAttached", "Page.frameDetached", "Page.navigatedWithinDocument"])
def test_events_that_change_the_frames_are_reported(method: str) -> None:
    assert Navigations(top_frame_id=TOP).handle(event(method, frameId="C")) is True
