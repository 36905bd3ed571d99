"""Roles and states that custom elements keep in their `ElementInternals`, which a DOM snapshot does not contain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import anyio

from browser_shell.browser.devtools.client import DevToolsError
from browser_shell.browser.page.look_tree import Node, Tree
from browser_shell.core.json_values import JsonObject, JsonValue

if TYPE_CHECKING:
    from browser_shell.browser.page.page import Page

MAX_ELEMENTS = 60
"""Custom elements of a page that are asked for. 54 of them take 15 ms (bench/LOG.md)."""
_PROPERTIES = {
    **{"checked": "aria-checked", "selected": "aria-selected", "expanded": "aria-expanded"},
    **{"disabled": "aria-disabled", "pressed": "aria-pressed", "required": "aria-required"},
    **{"readonly": "aria-readonly", "level": "aria-level", "hasPopup": "aria-haspopup"},
}
"""Properties of Chromium's accessibility tree, with the attributes that mean the same."""


async def add_internals(page: Page, tree: Tree) -> None:
    """Add roles and states from `ElementInternals` to the attributes of custom elements that can be acted on."""
    elements = list(islice(candidates(tree), MAX_ELEMENTS))
    if not elements:
        return

    async def ask(node: Node) -> None:
        params: JsonObject = {"backendNodeId": node.backend_node_id, "fetchRelatives": False}
        try:
            reply = await page.send("Accessibility.getPartialAXTree", params, session=node.frame.cdp_session)
        except DevToolsError:
            return  # The element was removed in the meantime.
        nodes = reply.get("nodes")
        if isinstance(nodes, list) and nodes and isinstance(nodes[0], dict):
            node.attributes = with_internals(node.attributes, nodes[0])

    async with anyio.create_task_group() as tasks:
        for node in elements:
            tasks.start_soon(ask, node)


def candidates(tree: Tree) -> Sequence[Node]:
    """Return the custom elements without a `role` attribute that react to clicks or keys."""
    return [
        node
        for node in tree.nodes
        if "-" in node.tag
        and node.is_shown
        and not node.get("role")
        and (node.is_clickable or node.has_pointer or "tabindex" in node.attributes)
    ]


def with_internals(attributes: Mapping[str, str], described: JsonObject) -> Mapping[str, str]:
    """Return attributes with the role, name and states of a node of the accessibility tree."""
    role = _value(described.get("role"))
    if described.get("ignored") or role in ("", "generic", "none"):
        return attributes
    found = {**attributes, "role": role}
    if name := _value(described.get("name")):
        found["aria-label"] = name
    if value := _value(described.get("value")):
        found["aria-valuetext"] = value
    properties = described.get("properties")
    for entry in properties if isinstance(properties, list) else []:
        if isinstance(entry, dict) and (attribute := _PROPERTIES.get(str(entry.get("name")))) is not None:
            found[attribute] = _value(entry.get("value"))
    return found


def _value(typed: JsonValue) -> str:
    """Return the text of a typed value; '' without one."""
    value = typed.get("value") if isinstance(typed, dict) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else ""
