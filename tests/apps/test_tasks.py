"""Tasks on real applications, by calls of an agent, judged by the applications' own state."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.app_tasks import TASKS


@pytest.mark.parametrize("batched", [False, True], ids=["single", "batched"])
@pytest.mark.parametrize("name", TASKS)
def test_task_reaches_its_goal(work: Callable[[str, bool], None], name: str, batched: bool) -> None:
    work(name, batched)
