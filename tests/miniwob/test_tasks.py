"""MiniWoB tasks, solved with the tool's own commands and judged by the pages themselves."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.miniwob.episodes import Episode, package_directory
from support.miniwob.tasks import SOLVED, UNSOLVED

SECOND_SEEDS = (
    "click-checkboxes",
    "choose-date",
    "use-autocomplete",
    "click-tab-2",
    "login-user-popup",
    "sign-agreement",
)


@pytest.mark.parametrize(
    ("task", "seed"), [*((task, SOLVED[task].seed) for task in SOLVED), *((task, 2) for task in SECOND_SEEDS)]
)
def test_page_is_solved_through_the_tool(begin: Callable[[str, int], Episode], task: str, seed: int) -> None:
    page = SOLVED[task]
    reward = -1.0
    for _ in range(page.attempts):
        episode = begin(task, seed)
        page.solve(episode)
        reward = episode.reward()
        if reward >= page.reward:
            break
    assert reward >= page.reward


def test_every_page_of_the_package_is_solved_or_has_a_reason() -> None:
    pages = {page.stem for page in (package_directory() / "miniwob").glob("*.html")}
    assert not SOLVED.keys() & UNSOLVED.keys()
    assert SOLVED.keys() | UNSOLVED.keys() == pages
    assert len(pages) == 130
    assert len(SOLVED) >= 124


def test_wrong_answer_gets_a_negative_reward(begin: Callable[[str, int], Episode]) -> None:
    """A wrong answer gets a negative reward, so the tests above can fail."""
    episode = begin("enter-text", 1)
    episode.fill("#tt", "something else")
    episode.submit()
    assert episode.reward() < 0


def test_task_depends_on_its_seed(begin: Callable[[str, int], Episode]) -> None:
    queries = [begin("enter-date", seed).query for seed in (1, 1, 2)]
    assert queries[0] == queries[1] != queries[2]
