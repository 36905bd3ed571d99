"""The order in which hooks see a call: `before` as given, `after` in reverse."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from browser_shell.core.calls import ToolCall
from browser_shell.core.ports import AfterHook, BeforeHook, Hook, PlanT
from browser_shell.core.results import CommandResult

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class HookChain(Generic[PlanT]):
    """Runs hooks one after the other. What one returns is what the next one gets."""

    before_hooks: tuple[BeforeHook[PlanT], ...] = ()
    after_hooks: tuple[AfterHook[PlanT], ...] = ()
    never_waits: bool = False
    """Whether none of them ever waits for anything. Such a chain needs no time limit: none could cut it short."""

    @classmethod
    def of(cls, hooks: Iterable[Hook[PlanT]], *, never_waits: bool = False) -> HookChain[PlanT]:
        given = tuple(hooks)
        return cls(
            never_waits=never_waits,
            before_hooks=tuple(hook for hook in given if isinstance(hook, BeforeHook)),
            after_hooks=tuple(hook for hook in reversed(given) if isinstance(hook, AfterHook)),
        )

    async def before(self, call: ToolCall, plan: PlanT) -> PlanT:
        """Raises: CallRefused when a hook refuses; whatever a broken hook raises."""
        for hook in self.before_hooks:
            plan = _expect(type(plan), await hook.before(call, plan), hook)
        return plan

    async def after(self, call: ToolCall, plan: PlanT, result: CommandResult) -> CommandResult:
        """Raises: whatever a broken hook raises."""
        for hook in self.after_hooks:
            result = _expect(CommandResult, await hook.after(call, plan, result), hook)
        return result


def _expect(kind: type[_Value], value: _Value, hook: object) -> _Value:
    """A hook that forgets its `return` must not pass for one that has nothing to say."""
    if not isinstance(value, kind):
        raise TypeError(f"{type(hook).__name__} returned {type(value).__name__} instead of {kind.__name__}")
    return value
