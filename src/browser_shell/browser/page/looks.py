"""The command `snapshot`: what is on the page, with a ref for everything that can be acted on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import anyio.to_thread

from browser_shell.browser.page.look_capture import THREAD_NODES, capture_tree
from browser_shell.browser.page.look_delta import Delta, compare
from browser_shell.browser.page.look_items import Item
from browser_shell.browser.page.look_outline import View
from browser_shell.browser.page.look_selection import select_items
from browser_shell.browser.page.look_text import AssignRef, Excerpt, Style, render
from browser_shell.browser.page.look_tree import Tree
from browser_shell.browser.page.page import Page
from browser_shell.core.calls import BrowserCommand
from browser_shell.core.errors import ActFailed, ErrorCode
from browser_shell.core.json_values import JsonObject, JsonValue, compact_json

_MAX_KEPT_NODES = 30_000
"""The tree of a larger page is not kept for the next `--delta`."""
_ENVELOPE_CHARACTERS = 100
"""Upper bound for the keys and brackets around a look."""
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
    view = _view(plan, scope)
    items = await _select(tree, view)
    if scope is not None and not items:
        raise ActFailed(ErrorCode.ELEMENT_GONE, f"{plan.options['selector']} is no longer on the page")
    before = await _keep_look(page, tree)
    style = Style(urls="urls" in plan.options, short=view.interactive)
    data: JsonObject = {"origin": (await page.top_frame()).url}
    if "delta" in plan.options and "full" not in plan.options and before is not None:
        delta = compare(await _select(before.tree, view), items, style=style, assign_ref=ref_assigner(page))
        if (answer := _delta_answer(delta, items)) is not None:
            data["snapshot"] = answer
            return _with_refs(data, plan, delta.refs)
    first_line = int(plan.options.get("from", "1"))
    excerpt = render(
        items,
        style=style,
        assign_ref=ref_assigner(page),
        scope_hint=_scope_hint(plan),
        first_line=first_line,
        max_characters=page.output.max_characters - _ENVELOPE_CHARACTERS - len(str(data["origin"])),
    )
    _note_rest(page, plan, excerpt, first_line)
    text = "\n".join(excerpt.lines)
    is_delta = "delta" in plan.options or "full" in plan.options
    data["snapshot"] = {"kind": "full", "tree": text} if is_delta else text
    return _with_refs(data, plan, excerpt.refs)


def ref_assigner(page: Page) -> AssignRef:
    """Return the function that gives elements their refs."""

    def assign(item: Item) -> str:
        node = item.node
        return page.refs.assign(node.frame, node.backend_node_id, role=item.role, name=item.name[:100])

    return assign


async def _keep_look(page: Page, tree: Tree) -> LastLook | None:
    """Store a tree for the next `--delta`. Return the last look if it was at the same document."""
    loader_id = (await page.top_frame()).loader_id
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


async def _select(tree: Tree, view: View) -> Sequence[Item]:
    if len(tree.nodes) > THREAD_NODES:
        return await anyio.to_thread.run_sync(select_items, tree, view)
    return select_items(tree, view)


def _delta_answer(delta: Delta, items: Sequence[Item]) -> JsonValue:
    """Return the changes, or None when they have more lines than the whole look."""
    if not delta.lines:
        return {"kind": "unchanged"}
    if len(delta.lines) > max(len(items), 3):
        return None
    return {"kind": "delta", "changes": "\n".join(delta.lines)}


def _with_refs(data: JsonObject, plan: BrowserCommand, refs: dict[str, Item]) -> JsonObject:
    if "refs" in plan.options:
        data["refs"] = {ref: {"role": item.role, "name": item.name} for ref, item in refs.items()}
    return data


def _note_rest(page: Page, plan: BrowserCommand, excerpt: Excerpt, first_line: int) -> None:
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
