"""Hooks around every call: the built-in ones, those of installed packages, and the order in which they run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, TypeVar

from browser_shell.core.calls import CommandResult, ContainerJob, ToolCall
from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.core.ports import AfterHook, BeforeHook, Hook, PlanT
from browser_shell.hooks.redact import NormaliseData, RedactSecrets
from browser_shell.hooks.truncate import TruncateJobAnswer, TruncateOutput

GROUP = "browser_shell.hooks"
JOB_GROUP = "browser_shell.job_hooks"
"""Entry points of hooks for jobs. Their plans are `ContainerJob`, which a hook for browser commands cannot handle."""

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class HookChain(Generic[PlanT]):
    """Run hooks in sequence, each on the value that the previous one returned."""

    hooks: tuple[Hook[PlanT], ...] = ()
    """`before` runs in this order, and `after` in reverse."""

    async def before(self, call: ToolCall, plan: PlanT) -> PlanT:
        """Raises: CallRefused when a hook refuses; any exception of a faulty hook."""
        for hook in self.hooks:
            if isinstance(hook, BeforeHook):
                plan = _require_type(type(plan), await hook.before(call, plan), hook)
        return plan

    async def after(self, call: ToolCall, plan: PlanT, result: CommandResult) -> CommandResult:
        """Raises: any exception of a faulty hook."""
        for hook in reversed(self.hooks):
            if isinstance(hook, AfterHook):
                result = _require_type(CommandResult, await hook.after(call, plan, result), hook)
        return result


def standard_chain(
    *, max_output_characters: int = 30_000, redact: bool = True, plugins: Sequence[Hook] = ()
) -> HookChain:
    """Build the chain for browser commands.

    `after` runs in reverse: plugins see the result first, and the built-in hooks process what they add.
    """
    redaction: tuple[Hook, ...] = (RedactSecrets(),) if redact else ()
    return HookChain(
        hooks=(TruncateOutput(max_characters=max_output_characters), *redaction, NormaliseData(), *plugins)
    )


def job_chain(
    *, max_output_characters: int = 30_000, redact: bool = True, plugins: Sequence[Hook[ContainerJob]] = ()
) -> HookChain[ContainerJob]:
    """Build the chain for jobs, whose answers have their own schema."""
    redaction: tuple[Hook[ContainerJob], ...] = (RedactSecrets(),) if redact else ()
    return HookChain(hooks=(TruncateJobAnswer(max_characters=max_output_characters), *redaction, *plugins))


def installed_hooks(group: str) -> tuple[Hook[PlanT], ...]:
    """Load the hooks of installed packages. Raises: ConfigurationInvalid."""
    return load_hooks(entry_points(group=group))


def load_hooks(found: Iterable[EntryPoint]) -> tuple[Hook[PlanT], ...]:
    """Load hooks in the order of their names.

    Raises: ConfigurationInvalid, naming the entry point that cannot be used.
    """
    return tuple(_load(entry) for entry in sorted(found, key=lambda entry: (entry.name, entry.value)))


def _load(entry: EntryPoint) -> Hook[PlanT]:
    try:
        hook = entry.load()()
    except Exception as error:
        # Third-party code may raise anything, and the server must not start without a hook that is installed.
        raise ConfigurationInvalid(f"hook {entry.name!r} ({entry.value}) cannot be loaded: {error!r}") from error
    if not isinstance(hook, BeforeHook | AfterHook):
        raise ConfigurationInvalid(f"hook {entry.name!r} ({entry.value}) has neither `before` nor `after`")
    return hook


def _require_type(expected: type[_Value], value: _Value, hook: object) -> _Value:
    """Fail on a hook without a `return` statement instead of passing None on."""
    if not isinstance(value, expected):
        raise TypeError(f"{type(hook).__name__} returned {type(value).__name__} instead of {expected.__name__}")
    return value
