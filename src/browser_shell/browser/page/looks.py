"""The command `snapshot`: what is on the page, with a ref for everything that can be acted on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import anyio.to_thread

from browser_shell.browser.page.look_capture import THREAD_NODES, capture_tree
from browser_shell.browser.page.look_delta import Delta, compare
from browser_shell.browser.page.look_items import Item
from browser_shell.browser.page.look_outline import View
from browser_shell.browser.page.look_selection import select_items
from browser_shell.browser.page.look_text import MAX_CHARACTERS, AssignRef, Excerpt, Style, render
from browser_shell.browser.page.look_tree import Tree
from browser_shell.browser.page.page import Page
from browser_shell.core.calls import BrowserCommand
from browser_shell.core.errors import ActFailed, ErrorCode
from browser_shell.core.json_values import JsonObject, JsonValue, compact_json

_T = TypeVar("_T")
_MAX_KEPT_NODES = 30_000
"""The tree of a larger page is not kept for the next `--delta`."""
_ENVELOPE_CHARACTERS = 2_200
"""Upper bound for the URL, keys and brackets around a look."""
_MOST_CHANGED = 0.8
"""Share of the lines of a page. With more changes, a whole look is returned."""
_FEW_LINES = 12
"""Changes that are listed even if they are a larger share of the page."""
_UNCHANGED: JsonObject = {"kind": "unchanged"}
_SWITCHES = (("interactive", "-i"), ("compact", "-c"), ("urls", "-u"), ("refs", "--refs"))


@dataclass(frozen=True, slots=True, kw_only=True)
class LastLook:
    """The page at the last look of any kind, with which the next `--delta` is compared."""

    loader_id: str
    """Identifies the document of the top frame."""
    tree: Tree


async def snapshot(page: Page, plan: BrowserCommand) -> JsonObject:
    """Run `snapshot`. All refs stay valid after a failure.

    Raises: ActFailed when a selector matches nothing or the page is too large, BrowserUnavailable, DevToolsError.
    """
    scope = await _scope(page, plan)
    tree = await capture_tree(page)
    if scope is not None and tree.find(scope) is None:
        raise ActFailed(ErrorCode.ELEMENT_GONE, f"{plan.options['selector']} is no longer on the page")
    top = await page.top_frame()
    before = _keep_look(page, top.loader_id, tree)
    view = _view(plan, scope)
    data: JsonObject = {"origin": top.url}
    is_large = len(tree.nodes) > THREAD_NODES

    async def run(function: Callable[[], _T]) -> _T:
        return await anyio.to_thread.run_sync(function) if is_large else function()

    if "delta" in plan.options and "full" not in plan.options and before is not None:
        delta = await run(lambda: _compare(page, plan, view, before.tree, tree))
        if delta is not None:
            data["snapshot"] = {"kind": "delta", "changes": "\n".join(delta.lines)} if delta.lines else _UNCHANGED
            return _with_refs(data, plan, delta.refs)
    excerpt = await run(lambda: _render(page, plan, view, tree))
    _note_rest(page, plan, excerpt)
    text = "\n".join(excerpt.lines)
    is_delta = "delta" in plan.options or "full" in plan.options
    data["snapshot"] = {"kind": "full", "tree": text} if is_delta else text
    return _with_refs(data, plan, excerpt.refs)


def _render(page: Page, plan: BrowserCommand, view: View, tree: Tree) -> Excerpt:
    return render(
        select_items(tree, view),
        style=_style(plan, view),
        assign_ref=ref_assigner(page),
        scope_hint=_scope_hint(plan),
        first_line=_first_line(plan),
        max_characters=page.output.max_characters - _ENVELOPE_CHARACTERS,
    )


def _compare(page: Page, plan: BrowserCommand, view: View, before: Tree, after: Tree) -> Delta | None:
    """Return the changes, or None when a whole look is shorter."""
    everything = replace(view, grouped=False)
    old, new = select_items(before, everything), select_items(after, everything)
    delta = compare(old, new, style=_style(plan, view), assign_ref=ref_assigner(page))
    is_short = len(delta.lines) <= max(len(new) * _MOST_CHANGED, _FEW_LINES)
    return delta if is_short and sum(map(len, delta.lines)) < MAX_CHARACTERS else None


def ref_assigner(page: Page) -> AssignRef:
    """Return the function that gives elements their refs."""

    def assign(item: Item) -> str:
        node = item.target
        return page.refs.assign(node.frame, node.backend_node_id, role=item.role, name=item.name[:100])

    return assign


def _keep_look(page: Page, loader_id: str, tree: Tree) -> LastLook | None:
    """Store a tree for the next `--delta`. Return the last look if it was at the same document."""
    before = page.last_look
    page.last_look = LastLook(loader_id=loader_id, tree=tree) if len(tree.nodes) <= _MAX_KEPT_NODES else None
    return before if before is not None and before.loader_id == loader_id else None


async def _scope(page: Page, plan: BrowserCommand) -> tuple[str, int] | None:
    """Return the key of the element that a look is limited to. Raises: ActFailed when nothing matches."""
    selector = plan.options.get("selector")
    if selector is None:
        return None
    element = await page.element(selector)
    reply = await page.send("DOM.describeNode", {"objectId": element.object_id}, session=element.frame.cdp_session)
    match reply:
        case {"node": {"backendNodeId": int(backend_node_id)}}:
            return element.frame.frame_id, backend_node_id
    raise ActFailed(ErrorCode.ELEMENT_GONE, f"{selector} is no longer on the page")


def _view(plan: BrowserCommand, scope: tuple[str, int] | None) -> View:
    depth = plan.options.get("depth")
    return View(
        interactive="interactive" in plan.options or "cursor" in plan.options,
        compact="compact" in plan.options,
        scope=scope,
        max_depth=int(depth) if depth is not None else None,
    )


def _style(plan: BrowserCommand, view: View) -> Style:
    return Style(urls="urls" in plan.options, short=view.interactive)


def _first_line(plan: BrowserCommand) -> int:
    return max(1, int(plan.options.get("from", "1")))


def _with_refs(data: JsonObject, plan: BrowserCommand, refs: dict[str, Item]) -> JsonObject:
    if "refs" in plan.options:
        data["refs"] = {ref: {"role": item.role, "name": item.name} for ref, item in refs.items()}
    return data


def _note_rest(page: Page, plan: BrowserCommand, excerpt: Excerpt) -> None:
    first_line = _first_line(plan)
    if excerpt.next_line is not None:
        page.notes.append(
            f"lines {first_line} to {excerpt.next_line - 1} of {excerpt.total}; "
            f"read on with {compact_json(_argv(plan, excerpt.next_line))}, or look for something with find TEXT"
        )
    elif first_line > 1 and not excerpt.lines:
        page.notes.append(f"the look has only {excerpt.total} lines")


def _argv(plan: BrowserCommand, first_line: int) -> list[JsonValue]:
    """Return the argv that continues a look."""
    argv: list[JsonValue] = ["snapshot", *(spelling for name, spelling in _SWITCHES if name in plan.options)]
    for name, spelling in (("depth", "-d"), ("selector", "-s")):
        if name in plan.options:
            argv += [spelling, plan.options[name]]
    return [*argv, "--from", str(first_line)]


def _scope_hint(plan: BrowserCommand) -> str:
    return "snapshot -i -u -s" if "urls" in plan.options else "snapshot -i -s"
