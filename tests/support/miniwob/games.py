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
    """Return the chance that X, whose turn it is, wins against random moves."""
    return max((_chance_after(_with(board, place, "X")) for place in _free(board)), default=0.0)


@cache
def _chance_after(board: str) -> float:
    """Return the chance that X wins where O moves next."""
    if _won(board, "X"):
        return 1.0
    answers = [_with(board, place, "O") for place in _free(board)]
    chances = [0.0 if _won(answer, "O") else _chance(answer) for answer in answers]
    return sum(chances) / len(chances) if chances else 0.0


def win_at_tic_tac_toe(episode: Episode) -> None:
    marks = {"mark-x": "X", "mark-o": "O", "": "."}
    while not episode.done:
        board = "".join(marks[episode.attr("class", f"#ttt-{place}")] for place in range(9))
        best = max(_free(board), key=lambda place: _chance_after(_with(board, place, "X")))
        episode.click(f"#ttt-{best}")


def repeat_the_shown_buttons(episode: Episode) -> None:
    shown: list[str] = []
    while episode.session.run("wait", ".push", timeout=2).exit_code == 0:
        shown.append(episode.attr("id", ".push"))
        episode.run("wait", ".push", "--state", "hidden")
    for button in shown:
        episode.click(f"#{button}")
