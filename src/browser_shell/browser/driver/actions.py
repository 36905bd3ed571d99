"""From a plan to the words that agent-browser's `batch` reads. Only words written here, and judged values, get in."""

from __future__ import annotations

from browser_shell.browser.driver.selectors import driver_selector
from browser_shell.core.plans import BrowserCommand

# `type` reads these two as its own options even inside a batch, so such a text goes in by another door.
_EATEN_BY_TYPE = frozenset({"--clear", "--delay"})

_SNAPSHOT_SWITCHES = ("interactive", "compact", "urls", "cursor", "delta", "full")
_ONE_SELECTOR_FIRST = frozenset({"click", "dblclick", "hover", "focus", "check", "uncheck", "fill", "select"})
_QUESTION_THEN_SELECTOR = frozenset({"get", "is"})
_AS_IT_STANDS = frozenset({"open", "press", "back", "forward", "reload"})


def driver_actions(plan: BrowserCommand, *, file: str = "", wait_ms: int = 0) -> list[list[str]]:
    """The batch for one plan. `file` is the server's own path for a picture; `wait_ms` bounds a `wait`."""
    if plan.name in _AS_IT_STANDS:
        return [[plan.name, *plan.operands]]
    if plan.name in _ONE_SELECTOR_FIRST:
        return [[plan.name, driver_selector(plan.operands[0]), *plan.operands[1:]]]
    if plan.name in _QUESTION_THEN_SELECTOR:
        return [[plan.name, plan.operands[0], *map(driver_selector, plan.operands[1:])]]
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
    selector, text = driver_selector(plan.operands[0]), plan.operands[1]
    if text in _EATEN_BY_TYPE:
        return [["focus", selector], ["keyboard", "type", text]]
    if "\t" in text:
        # The driver would press the Tab key, which types nothing and may leave the field.
        return [["focus", selector], ["keyboard", "inserttext", text]]
    return [["type", selector, text]]


def _snapshot_words(plan: BrowserCommand) -> list[str]:
    switches = [f"--{name}" for name in _SNAPSHOT_SWITCHES if name in plan.options]
    return ["snapshot", *switches, *_valued(plan, "depth"), *_valued(plan, "selector")]


def time_to_wait(plan: BrowserCommand) -> int | None:
    """The milliseconds that a `wait` asks for; None for one that waits for something to happen, and other commands."""
    operand = plan.operands[0] if plan.name == "wait" and plan.operands else ""
    return int(operand) if operand.isascii() and operand.isdigit() else None


def _wait_words(plan: BrowserCommand, wait_ms: int) -> list[str]:
    asked = time_to_wait(plan)
    if asked is not None:
        return ["wait", str(min(asked, wait_ms))]
    bound = ["--timeout", str(wait_ms)]
    if plan.operands:
        return ["wait", plan.operands[0], *bound]
    for mode in ("text", "url", "load"):
        if mode in plan.options:
            return ["wait", f"--{mode}", plan.options[mode], *bound]
    raise AssertionError("a wait without a mode passed the grammar")


def _valued(plan: BrowserCommand, name: str) -> list[str]:
    if name not in plan.options:
        return []
    value = plan.options[name]
    return [f"--{name}", driver_selector(value) if name == "selector" else value]
