"""The hooks that every server has, in their order."""

from __future__ import annotations

from collections.abc import Sequence

from browser_shell.core.plans import ContainerJob
from browser_shell.core.ports import Hook
from browser_shell.hooks.bound import BoundOutput
from browser_shell.hooks.bound_job import BoundJobAnswer
from browser_shell.hooks.chain import HookChain
from browser_shell.hooks.normalise import NormaliseData
from browser_shell.hooks.redact import RedactSecrets


def standard_chain(
    *, max_output_characters: int = 30_000, redact: bool = True, plugins: Sequence[Hook] = ()
) -> HookChain:
    """`after` runs in reverse: plugins see the result first, and what they add is redacted and bounded too."""
    redaction: tuple[Hook, ...] = (RedactSecrets(),) if redact else ()
    own: list[Hook] = [BoundOutput(max_characters=max_output_characters), *redaction, NormaliseData()]
    return HookChain.of([*own, *plugins], never_waits=not plugins)


def job_chain(
    *, max_output_characters: int = 30_000, redact: bool = True, plugins: Sequence[Hook[ContainerJob]] = ()
) -> HookChain[ContainerJob]:
    """The same for jobs, whose answers have a schema of their own."""
    redaction: tuple[Hook[ContainerJob], ...] = (RedactSecrets(),) if redact else ()
    own: list[Hook[ContainerJob]] = [BoundJobAnswer(max_characters=max_output_characters), *redaction]
    return HookChain.of([*own, *plugins], never_waits=not plugins)
