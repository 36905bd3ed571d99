"""Finds the hooks that other packages bring: entry points of the group `browser_shell.hooks`."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points

from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.core.ports import AfterHook, BeforeHook, Hook

GROUP = "browser_shell.hooks"


def installed_hooks() -> tuple[Hook, ...]:
    """Every installed hook, by name. Raises: ConfigurationInvalid."""
    return load_hooks(entry_points(group=GROUP))


def load_hooks(found: Iterable[EntryPoint]) -> tuple[Hook, ...]:
    """Raises: ConfigurationInvalid, naming the entry point that cannot be used."""
    return tuple(_load(entry) for entry in sorted(found, key=lambda entry: (entry.name, entry.value)))


def _load(entry: EntryPoint) -> Hook:
    try:
        hook = entry.load()()
    except Exception as error:
        # Other people's code: whatever it raises, a server without a hook that its operator installed must not start.
        raise ConfigurationInvalid(f"hook {entry.name!r} ({entry.value}) cannot be loaded: {error!r}") from error
    if not isinstance(hook, BeforeHook | AfterHook):
        raise ConfigurationInvalid(f"hook {entry.name!r} ({entry.value}) has neither `before` nor `after`")
    return hook
