"""Changes between two looks at the same document.

Every line belongs to a node, so lines are compared by node and not by position.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from browser_shell.browser.page.look_items import Item, Kind
from browser_shell.browser.page.look_text import AssignRef, Style, line_of, one_line
from browser_shell.core.json_values import compact_json

_MAX_REMOVED = 6
"""Further removed lines are only counted. Their refs are invalid, so commands cannot use them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """Changed lines: `+` added, `~` changed, `>` moved; removed lines have no ref any more."""

    lines: Sequence[str]
    refs: dict[str, Item]


def compare(before: Sequence[Item], after: Sequence[Item], *, style: Style, assign_ref: AssignRef) -> Delta:
    """Return each change once. A text without a ref that moved to another node is not a change."""
    refs: dict[str, Item] = {}

    def line(item: Item) -> str:
        ref = assign_ref(item) if item.has_ref or item.kind is Kind.REST else ""
        return line_of(item, ref, style=style)

    old = _by_key(before)
    new = _by_key(after)
    removed = [item for key, item in old.items() if key not in new]
    added = [item for key, item in new.items() if key not in old]
    texts = Counter(line_of(item, "", style=style) for item in removed if not item.has_ref)
    unchanged_texts = set()
    for item in added:
        text = line_of(item, "", style=style)
        if not item.has_ref and texts[text] > 0:
            texts[text] -= 1
            unchanged_texts.add(item)
    moved = _moved([key for key in old if key in new], [key for key in new if key in old])
    lines = []
    for key, item in new.items():
        if key not in old:
            sign = "" if item in unchanged_texts else "+"
        else:
            sign = "~" if _differs(old[key], item, style) else ">" if key in moved else ""
        if sign:
            text = line(item)
            lines.append(f"{sign} {text}")
            if item.has_ref:
                refs[assign_ref(item)] = item
    left = +texts  # Drops the texts whose count is 0.
    listed = [item for item in removed if item.has_ref or left[line_of(item, "", style=style)] > 0]
    lines += _removed_lines(listed, assign_ref)
    return Delta(lines=lines, refs=refs)


def _by_key(items: Sequence[Item]) -> dict[tuple[str, int, str, int], Item]:
    """Index items by node. A node may have several lines: its text in parts, or the rest of a collection."""
    seen: Counter[tuple[str, int, str]] = Counter()
    found = {}
    for item in items:
        key = (*item.node.key, item.kind.name)
        found[*key, seen[key]] = item
        seen[key] += 1
    return found


def _differs(old: Item, new: Item, style: Style) -> bool:
    return line_of(old, "", style=style) != line_of(new, "", style=style)


def _removed_lines(removed: Sequence[Item], assign_ref: AssignRef) -> Sequence[str]:
    """Return a line for each removed item that is not inside another one, up to a limit."""
    lines: list[str] = []
    end = omitted = 0
    frame_id = ""
    for item in removed:
        if item.node.frame.frame_id == frame_id and item.node.index < end:
            continue
        end, frame_id = item.node.end, item.node.frame.frame_id
        if len(lines) == _MAX_REMOVED:
            omitted += 1
            continue
        text = f"{item.role} {compact_json(one_line(item.name, 60))}" if item.name else item.role
        lines.append(f"removed: {text} @{assign_ref(item)}" if item.has_ref else f"removed: {text}")
    return [*lines, f"removed: {omitted} more"] if omitted else lines


def _moved(before: Sequence[object], after: Sequence[object]) -> set[object]:
    """Return the fewest keys whose removal leaves both sequences in the same order."""
    position = {key: index for index, key in enumerate(before)}
    order = [position[key] for key in after]
    # The keys of the longest increasing subsequence stayed where they were (Schensted 1961).
    tails: list[int] = []
    tail_indices: list[int] = []
    previous = [-1] * len(order)
    for index, value in enumerate(order):
        pile = bisect_left(tails, value)
        previous[index] = tail_indices[pile - 1] if pile else -1
        if pile == len(tails):
            tails.append(value)
            tail_indices.append(index)
        else:
            tails[pile], tail_indices[pile] = value, index
    kept = set()
    index = tail_indices[-1] if tail_indices else -1
    while index >= 0:
        kept.add(index)
        index = previous[index]
    return {key for index, key in enumerate(after) if index not in kept}
