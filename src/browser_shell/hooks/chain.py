"""The order in which hooks see a call: `before` as given, `after` in reverse."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from browser_shell.core.calls import ToolCall
from browser_shell.core.plans import BrowserCommand
from browser_shell.core.ports import AfterHook, BeforeHook, Hook
from browser_shell.core.results import CommandResult

_Value = TypeVar("_Value", BrowserCommand, CommandResult)


@dataclass(frozen=True, slots=True, kw_only=True)
class HookChain:
    """Runs hooks one after the other. What one returns is what the next one gets."""

    before_hooks: tuple[BeforeHook, ...] = ()
    after_hooks: tuple[AfterHook, ...] = ()

    @classmethod
    def of(cls, hooks: Iterable[Hook]) -> HookChain:
        given = tuple(hooks)
        return cls(
            before_hooks=tuple(hook for hook in given if isinstance(hook, BeforeHook)),
            after_hooks=tuple(hook for hook in reversed(given) if isinstance(hook, AfterHook)),
        )

    async def before(self, call: ToolCall, plan: BrowserCommand) -> BrowserCommand:
        """Raises: CallRefused when a hook refuses; whatever a broken hook raises."""
        for hook in self.before_hooks:
            plan = _expect(BrowserCommand, await hook.before(call, plan), hook)
        return plan

    async def after(self, call: ToolCall, plan: BrowserCommand, result: CommandResult) -> CommandResult:
        """Raises: whatever a broken hook raises."""
        for hook in self.after_hooks:
            result = _expect(CommandResult, await hook.after(call, plan, result), hook)
        return result


def _expect(kind: type[_Value], value: _Value, hook: Hook) -> _Value:
    """A hook that forgets its `return` must not pass for one that has nothing to say."""
    if not isinstance(value, kind):
        raise TypeError(f"{type(hook).__name__} returned {type(value).__name__} instead of {kind.__name__}")
    return value
