"""From a plan to the words that agent-browser's `batch` reads. Only words written here, and judged values, get in."""

from __future__ import annotations

from browser_shell.core.plans import BrowserCommand

# `type` reads these two as its own options even inside a batch, so such a text goes in by another door.
_EATEN_BY_TYPE = frozenset({"--clear", "--delay"})

_SNAPSHOT_SWITCHES = ("interactive", "compact", "urls", "cursor", "delta", "full")
_WITH_OPERANDS_ONLY = frozenset(
    {"open", "click", "dblclick", "hover", "focus", "check", "uncheck", "fill", "press", "select", "get", "is"}
)
_ALONE = frozenset({"back", "forward", "reload"})


def driver_words(plan: BrowserCommand, *, file: str = "", wait_ms: int = 0) -> list[list[str]]:
    """The batch for one plan. `file` is the server's own path for a picture; `wait_ms` bounds a `wait`."""
    if plan.name in _ALONE:
        return [[plan.name]]
    if plan.name in _WITH_OPERANDS_ONLY:
        return [[plan.name, *plan.operands]]
    match plan.name:
        case "type":
            return _type_words(plan)
        case "snapshot":
            return [_snapshot_words(plan)]
        case "scroll":
            return [["scroll", *plan.operands, *_valued(plan, "selector")]]
        case "wait":
            return [_wait_words(plan, wait_ms)]
        case "screenshot":
            full = ["--full"] if "full" in plan.options else []
            return [["screenshot", *plan.operands, file, *full]]
        case "pdf":
            return [["pdf", file]]
        case _:
            raise AssertionError(f"{plan.name} has no words for the driver")


def _type_words(plan: BrowserCommand) -> list[list[str]]:
    selector, text = plan.operands
    if text in _EATEN_BY_TYPE:
        return [["focus", selector], ["keyboard", "type", text]]
    if "\t" in text:
        # The driver would press the Tab key, which types nothing and may leave the field.
        return [["focus", selector], ["keyboard", "inserttext", text]]
    return [["type", selector, text]]


def _snapshot_words(plan: BrowserCommand) -> list[str]:
    switches = [f"--{name}" for name in _SNAPSHOT_SWITCHES if name in plan.options]
    return ["snapshot", *switches, *_valued(plan, "depth"), *_valued(plan, "selector")]


def _wait_words(plan: BrowserCommand, wait_ms: int) -> list[str]:
    if plan.operands and plan.operands[0].isdigit():
        return ["wait", plan.operands[0]]
    bound = ["--timeout", str(wait_ms)]
    if plan.operands:
        return ["wait", plan.operands[0], *bound]
    for mode in ("text", "url", "load"):
        if mode in plan.options:
            return ["wait", f"--{mode}", plan.options[mode], *bound]
    raise AssertionError("a wait without a mode passed the grammar")


def _valued(plan: BrowserCommand, name: str) -> list[str]:
    return [f"--{name}", plan.options[name]] if name in plan.options else []
