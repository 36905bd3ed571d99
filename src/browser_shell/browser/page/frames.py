"""The frames of a tab and the navigations that are under way in them, from DevTools replies and events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from browser_shell.browser.devtools.client import DevToolsEvent
from browser_shell.core.json_values import JsonObject, JsonValue

_SAME_DOCUMENT = frozenset({"sameDocument", "historySameDocument"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One frame with its current document."""

    frame_id: str
    loader_id: str
    """Identifies the document: a navigation changes it."""
    url: str
    cdp_session: str
    """CDP session of the target that contains the frame. A frame of another site has a target of its own."""
    parent_id: str
    """Frame id of the parent; '' for the top frame."""
    owner_backend_node_id: int | None = None
    """The `iframe` element, a node of the parent's CDP session; None for the top frame."""


def frames_in(reply: JsonObject, cdp_session: str) -> Iterator[Frame]:
    """Yield the frames in a reply to `Page.getFrameTree`, parents before children."""
    tree = reply.get("frameTree")
    if isinstance(tree, dict):
        yield from _frames_below(tree, cdp_session)


def _frames_below(tree: JsonObject, cdp_session: str) -> Iterator[Frame]:
    info, children = tree.get("frame"), tree.get("childFrames")
    if isinstance(info, dict):
        yield Frame(
            frame_id=str(info.get("id")),
            loader_id=str(info.get("loaderId")),
            url=str(info.get("url", "")),
            cdp_session=cdp_session,
            parent_id=str(info.get("parentId", "")),
        )
    for child in children if isinstance(children, list) else []:
        if isinstance(child, dict):
            yield from _frames_below(child, cdp_session)


@dataclass(slots=True)
class Navigations:
    """Navigations that are under way, by frame."""

    top_frame_id: str
    pending: set[str] = field(default_factory=set)
    """Frames whose new document has not arrived yet, and the top frame until its document is parsed."""
    requested: set[str] = field(default_factory=set)
    """Those of `pending` that were requested and have not started yet."""
    started: int = 0
    """Number of navigations to another document that started since the tab was attached."""
    documents: int = 0
    """Number of documents that the top frame has shown since the tab was attached."""

    def handle(self, event: DevToolsEvent) -> bool:
        """Process one event. Return whether frames or their documents may have changed."""
        params = event.params
        frame_id = str(params.get("frameId", ""))
        match event.method:
            case "Page.frameRequestedNavigation" | "Page.frameStartedNavigating":
                if (
                    params.get("navigationType") in _SAME_DOCUMENT
                    or params.get("disposition", "currentTab") != "currentTab"
                ):
                    return False
                self.started += frame_id not in self.pending
                self.pending.add(frame_id)
                (self.requested.discard if event.method == "Page.frameStartedNavigating" else self.requested.add)(
                    frame_id
                )
            case "Page.frameClearedScheduledNavigation" if frame_id in self.requested:
                self.pending.discard(frame_id)
                self.requested.discard(frame_id)
            case "Page.frameStoppedLoading":
                self.pending.discard(frame_id)
                self.requested.discard(frame_id)
            case "Page.frameNavigated":
                navigated = _frame_id(params.get("frame"))
                if navigated == self.top_frame_id:
                    self.documents += 1
                else:
                    self.pending.discard(navigated)
                return True
            case "Page.domContentEventFired":
                # Sent by a frame's target. For the top target, `Page.handle` calls `top_document_parsed` instead.
                return False
            case "Page.frameAttached" | "Page.frameDetached":
                self.pending.discard(frame_id)
                self.requested.discard(frame_id)
                return True
            case "Page.navigatedWithinDocument":
                return True
            case _:
                pass
        return False

    def top_document_parsed(self) -> None:
        self.pending.discard(self.top_frame_id)


def _frame_id(frame: JsonValue) -> str:
    return str(frame.get("id", "")) if isinstance(frame, dict) else ""
