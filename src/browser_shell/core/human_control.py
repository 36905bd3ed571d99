"""Precedence of a person at the live view over agents."""

from __future__ import annotations

from math import ceil

from browser_shell.core.errors import HumanInControl
from browser_shell.core.ports import HumanControl


def refuse_while_human_controls(human: HumanControl) -> None:
    """Raises: HumanInControl, with the seconds to wait."""
    seconds = ceil(human.seconds_left())
    if seconds > 0:
        raise HumanInControl(
            f"a person is using the browser; try again in {seconds} s",
            rule_id="viewing.human_in_control",
            retry_after_seconds=seconds,
        )
