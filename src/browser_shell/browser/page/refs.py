"""Refs: the numbers that a look gives to the nodes it shows."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from browser_shell.browser.page.frames import Frame
from browser_shell.core.errors import ActFailed, ErrorCode

_MAX_REFS = 50_000
"""Beyond this number, the oldest refs are dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRef:
    """The node that a ref was given to. A ref never moves to another node, even to one with the same role and name."""

    ref: str
    frame_id: str
    loader_id: str
    backend_node_id: int
    role: str
    name: str


class RefTable:
    """The refs of one tab. A node keeps its ref, and a ref is never given to another node."""

    def __init__(self, numbers: Iterator[int] | None = None) -> None:
        self._numbers = numbers or itertools.count(1)
        """Shared by the tabs of a session, so that a ref of one tab means nothing in another."""
        self._by_ref: dict[str, NodeRef] = {}
        self._by_node: dict[tuple[str, str, int], str] = {}

    def assign(self, frame: Frame, backend_node_id: int, *, role: str, name: str) -> str:
        """Return the ref of a node, for example `e7`."""
        node = (frame.frame_id, frame.loader_id, backend_node_id)
        ref = self._by_node.get(node) or f"e{next(self._numbers)}"
        self._by_node[node] = ref
        self._by_ref[ref] = NodeRef(
            ref=ref,
            frame_id=frame.frame_id,
            loader_id=frame.loader_id,
            backend_node_id=backend_node_id,
            role=role,
            name=name,
        )
        if len(self._by_ref) > _MAX_REFS:
            self._forget(next(iter(self._by_ref)))
        return ref

    def get(self, selector: str) -> NodeRef:
        """Return the node of `@e7`. Raises: ActFailed."""
        found = self._by_ref.get(selector.removeprefix("@"))
        if found is None:
            raise ActFailed(
                ErrorCode.ELEMENT_NOT_FOUND,
                f"{selector} is not a ref of this tab",
                advice="Take a snapshot (snapshot -i) and use the refs that it shows.",
            )
        return found

    def has(self, selector: str) -> bool:
        return selector.removeprefix("@") in self._by_ref

    def __len__(self) -> int:
        return len(self._by_ref)

    def _forget(self, ref: str) -> None:
        node = self._by_ref.pop(ref)
        self._by_node.pop((node.frame_id, node.loader_id, node.backend_node_id), None)
