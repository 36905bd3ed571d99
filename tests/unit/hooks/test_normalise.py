from __future__ import annotations

import pytest

from browser_shell.core.json_values import JsonValue
from browser_shell.core.results import CommandResult
from browser_shell.hooks.normalise import NormaliseData, normalise
from support.fakes import a_call, a_plan

SNAPSHOT: JsonValue = {
    "snapshot": "- button [ref=e1]",
    "refs": {"e1": {}},
    "lifecycle": {},
    "_boundary": {},
    "webmcp": "!",
}


def test_a_snapshot_loses_what_only_costs_tokens() -> None:
    assert normalise(a_plan("snapshot"), SNAPSHOT) == {"snapshot": "- button [ref=e1]"}


def test_refs_stay_when_they_were_asked_for() -> None:
    assert normalise(a_plan("snapshot", options={"refs": ""}), SNAPSHOT) == {
        "snapshot": "- button [ref=e1]",
        "refs": {"e1": {}},
    }


@pytest.mark.promise("output:typed-text-is-not-echoed")
def test_type_says_how_much_was_typed_and_not_what() -> None:
    assert normalise(a_plan("type", "#pin", "hunter2"), {"typed": "hunter2"}) == {"typed": 7}


@pytest.mark.promise("output:no-server-path")
@pytest.mark.parametrize("name", ["screenshot", "pdf"])
def test_the_path_of_a_file_on_the_server_is_not_shown(name: str) -> None:
    assert normalise(a_plan(name), {"path": "/run/secret/shot.png", "width": 10}) == {"width": 10}


@pytest.mark.parametrize("data", [None, "text", 3, [1], {"url": "https://a.example/", "path": "/a"}])
def test_everything_else_is_left_alone(data: JsonValue) -> None:
    assert normalise(a_plan("get", "url"), data) == data


async def test_the_hook_changes_only_the_data() -> None:
    result = await NormaliseData().after(
        a_call(), a_plan("type", "#a", "a"), CommandResult(exit_code=0, data={"typed": "a"}, message="m")
    )
    assert result == CommandResult(exit_code=0, data={"typed": 1}, message="m")


def test_the_drivers_own_ids_and_empty_lists_are_dropped() -> None:
    opened: JsonValue = {"targetId": "A1", "title": "t", "url": "https://example.com/", "removedRefs": []}
    assert normalise(a_plan("open"), opened) == {"title": "t", "url": "https://example.com/"}


def test_removed_refs_stay_when_there_are_some() -> None:
    assert normalise(a_plan("snapshot"), {"snapshot": "", "removedRefs": ["e1"]}) == {
        "snapshot": "",
        "removedRefs": ["e1"],
    }


def test_an_answer_to_one_question_does_not_repeat_where_the_page_is() -> None:
    assert normalise(a_plan("is"), {"origin": "https://example.com/", "visible": True}) == {"visible": True}


def test_a_delta_loses_its_refs_too() -> None:
    delta: JsonValue = {"snapshot": {"kind": "full", "refs": {"e1": {}}}}
    assert normalise(a_plan("snapshot"), delta) == {"snapshot": {"kind": "full"}}


def test_text_that_went_in_another_way_is_reported_alike() -> None:
    assert normalise(a_plan("type", "#a", "a\tb"), {"inserted": True}) == {"typed": 3}
