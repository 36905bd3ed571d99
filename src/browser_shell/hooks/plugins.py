"""Finds the hooks that other packages bring, by entry point: one group for the browser, one for jobs."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points

from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.core.plans import ContainerJob
from browser_shell.core.ports import AfterHook, BeforeHook, Hook, PlanT

GROUP = "browser_shell.hooks"
JOB_GROUP = "browser_shell.job_hooks"
"""Of its own: a hook that was written for browser commands would not know what to make of a job."""


def installed_hooks() -> tuple[Hook, ...]:
    """Every installed hook, by name. Raises: ConfigurationInvalid."""
    return load_hooks(entry_points(group=GROUP))


def installed_job_hooks() -> tuple[Hook[ContainerJob], ...]:
    """The same for jobs. Raises: ConfigurationInvalid."""
    return tuple(_load(entry) for entry in _sorted(entry_points(group=JOB_GROUP)))


def load_hooks(found: Iterable[EntryPoint]) -> tuple[Hook, ...]:
    """Raises: ConfigurationInvalid, naming the entry point that cannot be used."""
    return tuple(_load(entry) for entry in _sorted(found))


def _sorted(found: Iterable[EntryPoint]) -> list[EntryPoint]:
    return sorted(found, key=lambda entry: (entry.name, entry.value))


def _load(entry: EntryPoint) -> Hook[PlanT]:
    try:
        hook = entry.load()()
    except Exception as error:
        # Other people's code: whatever it raises, a server without a hook that its operator installed must not start.
        raise ConfigurationInvalid(f"hook {entry.name!r} ({entry.value}) cannot be loaded: {error!r}") from error
    if not isinstance(hook, BeforeHook | AfterHook):
        raise ConfigurationInvalid(f"hook {entry.name!r} ({entry.value}) has neither `before` nor `after`")
    return hook
