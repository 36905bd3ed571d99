"""Tasks of games."""

from __future__ import annotations

from functools import cache

from support.miniwob.episodes import Episode

_LINES = ("012", "345", "678", "036", "147", "258", "048", "246")


def _won(board: str, mark: str) -> bool:
    return any(all(board[int(place)] == mark for place in line) for line in _LINES)


def _with(board: str, place: int, mark: str) -> str:
    return board[:place] + mark + board[place + 1 :]


def _free(board: str) -> list[int]:
    return [place for place, mark in enumerate(board) if mark == "."]


@cache
def _chance(board: str) -> float:
    """Return the chance that X, whose turn it is, wins."""
    return max((_chance_after(_with(board, place, "X")) for place in _free(board)), default=0.0)


@cache
def _chance_after(board: str) -> float:
    """Return the chance that X wins where O moves next. Every other move of O is random."""
    if _won(board, "X"):
        return 1.0
    free = _free(board)
    if not free:
        return 0.0
    wins = [place for place in free if _won(_with(board, place, "O"), "O")]
    blocks = [place for place in free if _won(_with(board, place, "X"), "X")]
    return (_mean_chance(board, free) + _mean_chance(board, wins or blocks or free)) / 2


def _mean_chance(board: str, places: list[int]) -> float:
    boards = [_with(board, place, "O") for place in places]
    return sum(0.0 if _won(answer, "O") else _chance(answer) for answer in boards) / len(boards)


def win_at_tic_tac_toe(episode: Episode) -> None:
    marks = {"mark-x": "X", "mark-o": "O", "": "."}
    while not episode.done:
        cells = episode.steps([("get", "attr", "class", f"#ttt-{place}") for place in range(9)])
        board = "".join(marks[cell["value"] or ""] for cell in cells)
        best = max(_free(board), key=lambda place: _chance_after(_with(board, place, "X")))
        episode.click(f"#ttt-{best}")


def repeat_the_shown_buttons(episode: Episode) -> None:
    """Watch the buttons flash, for a quarter of a second each, and click them in the same order."""
    sequence: list[str] = []
    flash = [("get", "attr", "id", ".push"), ("wait", ".push", "--state", "hidden")]
    while (outcome := episode.session.run("wait", ".push", then=flash, timeout=2)).exit_code == 0:
        sequence.append(outcome.data[1]["value"])
    for button in sequence:
        episode.click(f"#{button}")
