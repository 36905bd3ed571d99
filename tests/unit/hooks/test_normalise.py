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


def test_driver_metadata_is_dropped_from_a_snapshot() -> None:
    assert normalise(a_plan("snapshot"), SNAPSHOT) == {"snapshot": "- button [ref=e1]"}


def test_refs_are_kept_when_requested() -> None:
    assert normalise(a_plan("snapshot", options={"refs": ""}), SNAPSHOT) == {
        "snapshot": "- button [ref=e1]",
        "refs": {"e1": {}},
    }


@pytest.mark.promise("output:typed-text-is-not-echoed")
def test_typed_text_is_replaced_by_its_length() -> None:
    assert normalise(a_plan("type", "#pin", "hunter2"), {"typed": "hunter2"}) == {"typed": 7}


@pytest.mark.promise("output:no-server-path")
@pytest.mark.parametrize("name", ["screenshot", "pdf"])
def test_server_paths_are_dropped(name: str) -> None:
    assert normalise(a_plan(name), {"path": "/run/secret/shot.png", "width": 10}) == {"width": 10}


@pytest.mark.parametrize("data", [None, "text", 3, [1], {"url": "https://a.example/", "path": "/a"}])
def test_other_data_is_unchanged(data: JsonValue) -> None:
    assert normalise(a_plan("get", "url"), data) == data


async def test_the_hook_changes_only_the_data() -> None:
    result = await NormaliseData().after(
        a_call(), a_plan("type", "#a", "a"), CommandResult(exit_code=0, data={"typed": "a"}, message="m")
    )
    assert result == CommandResult(exit_code=0, data={"typed": 1}, message="m")


def test_target_ids_and_empty_removed_refs_are_dropped() -> None:
    opened: JsonValue = {"targetId": "A1", "title": "t", "url": "https://example.com/", "removedRefs": []}
    assert normalise(a_plan("open"), opened) == {"title": "t", "url": "https://example.com/"}


def test_removed_refs_are_kept_unless_empty() -> None:
    assert normalise(a_plan("snapshot"), {"snapshot": "", "removedRefs": ["e1"]}) == {
        "snapshot": "",
        "removedRefs": ["e1"],
    }


def test_origin_is_dropped_from_answers_of_get_and_is() -> None:
    assert normalise(a_plan("is"), {"origin": "https://example.com/", "visible": True}) == {"visible": True}


def test_refs_are_dropped_from_a_snapshot_delta() -> None:
    delta: JsonValue = {"snapshot": {"kind": "full", "refs": {"e1": {}}}}
    assert normalise(a_plan("snapshot"), delta) == {"snapshot": {"kind": "full"}}


def test_inserted_text_is_reported_like_typed_text() -> None:
    assert normalise(a_plan("type", "#a", "a\tb"), {"inserted": True}) == {"typed": 3}
