from __future__ import annotations

import json
import re
import time
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from browser_shell.core.calls import BrowserCommand, CommandResult, ContainerJob, JobRunner
from browser_shell.core.json_values import JsonObject, JsonValue
from browser_shell.hooks.chain import HookChain
from browser_shell.hooks.redact import RedactSecrets
from browser_shell.hooks.truncate import MAX_LEVELS, SHORTEST_CUT, TruncateJobAnswer, TruncateOutput, cut_text, truncate
from browser_shell.tools.job_tools import output_schema
from support.fakes import RecordingSandbox, a_call, a_pipeline, a_plan

DEFAULT = 30_000


def size(value: JsonValue) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def a_control(number: int) -> JsonObject:
    """One element as `screenshot --annotate` reports it."""
    box: JsonObject = {"height": 21, "width": 75, "x": 8, "y": number}
    return {"box": box, "name": f"Button {number}", "number": number, "ref": f"e{number}", "role": "button"}


def controls(count: int) -> list[JsonValue]:
    return [a_control(number) for number in range(count)]


def nested(levels: int, *, in_objects: bool) -> JsonValue:
    value: JsonValue = 1
    for _ in range(levels):
        value = {"k": value, "text": "x" * 100} if in_objects else [value]
    return value


def depth(value: JsonValue) -> int:
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(depth, children), default=-1) if isinstance(value, list | dict) else 0


def expect_whole_head(kept: JsonValue, original: list[JsonValue]) -> int:
    """Return how many first items are unchanged; the marker must count the others."""
    assert isinstance(kept, list)
    *head, marker = kept
    assert head == original[: len(head)]
    assert marker == f"…[{len(original) - len(head)} items cut]"
    return len(head)


def test_data_within_the_limit_is_unchanged() -> None:
    data: JsonValue = {"a": ["x" * 100] * 3}
    assert truncate(data, size(data)) == data
    assert truncate(data, size(data) - 1) != data


def test_the_longest_string_is_cut_first() -> None:
    data: JsonObject = {"origin": "https://a.example/", "snapshot": "x" * 40_000, "items": ["y" * 300, "y" * 9000] * 2}
    kept = truncate(data, DEFAULT)
    assert isinstance(kept, dict)
    assert kept["origin"] == data["origin"]
    assert kept["items"] == data["items"]
    assert str(kept["snapshot"]).endswith(" characters cut]")
    assert DEFAULT - 100 <= size(kept) <= DEFAULT


def test_the_marker_counts_the_missing_characters() -> None:
    text = str(truncate("x" * 50_000, DEFAULT))
    kept = text.index("…")
    assert text[kept:] == f"…[{50_000 - kept} characters cut]"


def test_scalars_next_to_a_long_string_are_kept() -> None:
    kept = truncate({"text": "x" * 40_000, "count": 1.5, "title": None, "visible": True}, DEFAULT)
    assert isinstance(kept, dict)
    assert (kept["count"], kept["title"], kept["visible"]) == (1.5, None, True)


def test_a_number_that_is_too_long_becomes_a_marker() -> None:
    assert truncate([10**4000, 1], 1000) == ["…[4001 characters cut]", 1]


def test_list_items_are_left_out_before_strings_get_shorter_than_the_minimum() -> None:
    kept = truncate(["x" * 1000] * 100, 5000)
    assert isinstance(kept, list)
    assert kept[-1] == f"…[{100 - (len(kept) - 1)} items cut]"
    assert all(len(str(item)) > SHORTEST_CUT - 50 for item in kept[:-1])


def test_two_long_strings_are_cut_to_the_same_length() -> None:
    kept = truncate(["a" * 20_000, "b" * 40_000], DEFAULT)
    assert isinstance(kept, list)
    lengths = [len(str(item)) for item in kept]
    assert abs(lengths[0] - lengths[1]) < 10


def test_text_is_cut_at_the_end_of_a_line() -> None:
    text = cut_text("\n".join(f'- button "b{number}" [ref=e{number}]' for number in range(1000)), 5000)
    assert text.splitlines()[-2].endswith("]")
    assert text.splitlines()[-1].startswith("…[")


@pytest.mark.parametrize(
    "data",
    [
        [1] * 100_000,
        [{"role": "button", "name": "b"}] * 5000,
        {f"e{number}": {"role": "button"} for number in range(5000)},
        {"refs": {f"e{number}": {"role": "button"} for number in range(5000)}, "snapshot": "x" * 30_000},
        [["a"] * 500] * 500,
        {"k" * 50_000: 1},
        {"k" * 50_000: "v" * 50_000, "a": 1},
        [10**4000] * 20,
        '"\n\\' * 20_000,
        "\x00" * 20_000,
        "😀" * 40_000,
        ["x" * 500] * 1000,
        {"k" * 4_000_000: 1, "a": 2},
        {f"key {number}": number for number in range(100_000)},
        [[[1, "a"]] * 1000] * 400,
        [[[number] * 100 for number in range(100)]] * 100,
        {"…": 1, **{f"e{number}": {"role": "button"} for number in range(5000)}},
        [nested(90, in_objects=True)] * 100,
    ],
    ids=range(18),
)
def test_large_data_of_any_shape_is_cut_to_valid_json(data: JsonValue) -> None:
    kept = truncate(data, DEFAULT)
    assert size(kept) <= DEFAULT
    assert "cut]" in json.dumps(kept)


@pytest.mark.parametrize(
    "data",
    ['"\x00' * 1_000_000, list(range(500_000)), {f"key {number}": "x" for number in range(300_000)}, controls(20_000)],
    ids=["escapes", "list", "object", "nested"],
)
def test_truncation_takes_linear_time(data: JsonValue) -> None:
    started = time.process_time()
    truncate(data, DEFAULT)
    assert time.process_time() - started < 2


def test_a_long_list_keeps_its_head_and_counts_the_rest() -> None:
    kept = truncate(list(range(100_000)), DEFAULT)
    assert isinstance(kept, list)
    assert kept[:3] == [0, 1, 2]
    assert kept[-1] == f"…[{100_000 - (len(kept) - 1)} items cut]"


def test_the_first_annotations_are_kept_whole() -> None:
    data: JsonObject = {"annotations": controls(900), "path": "a.png"}
    kept = truncate(data, DEFAULT)
    assert isinstance(kept, dict)
    assert kept["path"] == "a.png"
    assert expect_whole_head(kept["annotations"], controls(900)) > 250
    assert DEFAULT - 200 <= size(kept) <= DEFAULT


@pytest.mark.parametrize("limit", [1000, 5000, 200_000])
def test_a_list_is_filled_up_to_the_limit(limit: int) -> None:
    kept = truncate(controls(5000), limit)
    assert expect_whole_head(kept, controls(5000)) >= (limit - 200) // size(a_control(4999))


def test_the_first_keys_of_a_large_object_are_kept_whole() -> None:
    refs: JsonObject = {f"e{number}": a_control(number) for number in range(900)}
    kept = truncate(refs, DEFAULT)
    assert isinstance(kept, dict)
    marker = kept.pop("…")
    assert list(kept.items()) == list(refs.items())[: len(kept)]
    assert len(kept) > 230
    assert marker == f"[{900 - len(kept)} keys cut]"


def test_a_large_text_and_a_large_list_share_the_limit() -> None:
    kept = truncate({"snapshot": "x" * 25_000, "annotations": controls(900)}, DEFAULT)
    assert isinstance(kept, dict)
    assert len(str(kept["snapshot"])) > 14_000
    assert expect_whole_head(kept["annotations"], controls(900)) > 120


def test_a_few_large_keys_are_all_kept() -> None:
    data: JsonObject = {f"frame {number}": controls(150) for number in range(8)}
    kept = truncate(data, DEFAULT)
    assert isinstance(kept, dict)
    assert kept.keys() == data.keys()
    assert all(expect_whole_head(kept, controls(150)) > 25 for kept in kept.values())


def test_small_items_after_a_large_item_are_kept() -> None:
    kept = truncate([controls(900), *controls(50)], DEFAULT)
    assert isinstance(kept, list)
    assert kept[1:] == controls(50)
    assert expect_whole_head(kept[0], controls(900)) > 150


def test_large_items_get_at_least_a_quarter_of_the_limit() -> None:
    kept = truncate([controls(900)] * 6, DEFAULT)
    assert isinstance(kept, list)
    assert kept[-1] == "…[2 items cut]"
    assert all(expect_whole_head(kept, controls(900)) > 50 for kept in kept[:-1])


def test_long_strings_in_items_are_cut_before_items_are_left_out() -> None:
    kept = truncate([{"url": f"https://a.example/{number}", "body": "b" * 5000} for number in range(40)], DEFAULT)
    assert isinstance(kept, list)
    assert len(kept) == 40
    assert all(isinstance(item, dict) and str(item["body"]).endswith(" characters cut]") for item in kept)


def test_a_key_that_is_too_long_is_left_out() -> None:
    assert truncate({"k" * 4_000_000: 1, "a": 2}, DEFAULT) == {"a": 2, "…": "[1 keys cut]"}


def test_a_key_equal_to_the_marker_is_replaced_by_it() -> None:
    kept = truncate({"…": "[0 keys cut]", **{f"e{number}": number for number in range(5000)}}, DEFAULT)
    assert isinstance(kept, dict)
    assert kept["…"] == f"[{5001 - (len(kept) - 1)} keys cut]"


@pytest.mark.parametrize("in_objects", [False, True])
@pytest.mark.parametrize("levels", [MAX_LEVELS + 1, 900, 100_000])
def test_nesting_beyond_the_limit_is_cut(levels: int, in_objects: bool) -> None:
    kept = truncate(nested(levels, in_objects=in_objects), DEFAULT)
    assert depth(kept) <= MAX_LEVELS
    assert size(kept) <= DEFAULT
    assert "cut]" in json.dumps(kept)


def test_nesting_at_the_limit_is_unchanged() -> None:
    for data in (nested(MAX_LEVELS, in_objects=True), nested(MAX_LEVELS, in_objects=False)):
        assert truncate(data, DEFAULT) is data


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.text(max_size=30), inner, max_size=30),
    max_leaves=80,
)
repeated = st.builds(lambda value, times: [value] * times, json_values, st.integers(min_value=1, max_value=200))


@given(data=json_values | repeated, limit=st.integers(min_value=200, max_value=3000))
def test_any_data_is_cut_to_valid_json(data: JsonValue, limit: int) -> None:
    kept = truncate(data, limit)
    assert size(kept) <= limit
    assert json.loads(json.dumps(kept, allow_nan=False)) == kept
    assert truncate(data, limit) == kept
    assert truncate(kept, limit) is kept
    assert (kept is data) == (size(data) <= limit)


small_items = st.dictionaries(st.text(max_size=8), st.integers() | st.text(max_size=8), min_size=1, max_size=4)


@given(items=st.lists(small_items, min_size=1, max_size=20), limit=st.integers(min_value=1000, max_value=3000))
def test_small_items_are_kept_whole_in_order(items: list[JsonValue], limit: int) -> None:
    many = items * 200
    kept = truncate(many, limit)
    if kept is not many:
        kept = expect_whole_head(kept, many)
        assert size(many[: kept + 1]) > limit - 40


@pytest.mark.parametrize(
    "data",
    ["x" * 5000, "\ud83d" * 5000, list(range(5000)), controls(50), {str(key): key for key in range(5000)}],
    ids=["text", "lone surrogates", "list", "objects", "keys"],
)
async def test_stdout_with_its_line_end_is_within_the_limit(data: JsonValue) -> None:
    sandbox = RecordingSandbox(result=CommandResult(exit_code=0, data=data))
    hooks = [TruncateOutput(max_characters=1000)]
    stdout = (await a_pipeline(sandbox=sandbox, hooks=hooks).handle(a_call())).stdout
    assert 800 < len(stdout) <= 1000
    assert stdout.endswith("\n")
    json.loads(stdout)


@pytest.mark.parametrize(("length", "whole"), [(997, True), (998, False)])
async def test_the_line_end_counts_towards_the_limit(length: int, whole: bool) -> None:
    result = CommandResult(exit_code=0, data="x" * length)
    truncated = await TruncateOutput(max_characters=1000).after(a_call(), a_plan(), result)
    assert (truncated == result) is whole


async def test_the_message_reports_nesting_that_was_cut() -> None:
    result = CommandResult(exit_code=0, data=nested(5000, in_objects=False))
    truncated = await TruncateOutput().after(a_call(), a_plan(), result)
    assert truncated.message.startswith("OUTPUT_TRUNCATED: more than 100 levels")


async def test_the_message_reports_that_output_was_cut() -> None:
    result = CommandResult(exit_code=0, data={"text": "x" * 2000}, message="a notice")
    truncated = await TruncateOutput(max_characters=1000).after(a_call(), a_plan(), result)
    assert isinstance(truncated.data, dict)
    assert truncated.message.startswith("a notice\nOUTPUT_TRUNCATED: 2011 characters")
    assert truncated.exit_code == 0


def read_text(offset: int | None = None) -> BrowserCommand:
    return a_plan("get", "text", "#log", options={} if offset is None else {"from": str(offset)})


async def test_a_text_is_read_on_where_it_was_cut() -> None:
    text = "".join(f"line {number}\n" for number in range(500))
    hook, read, offset = TruncateOutput(max_characters=1000), "", None
    for _ in range(20):
        result = CommandResult(exit_code=0, data={"text": text})
        part = await hook.after(a_call(), read_text(offset), result)
        assert isinstance(part.data, dict)
        read += str(part.data["text"]).partition("…[")[0]
        found = re.search(r"Read on with: get text #log --from (\d+)$", part.message)
        if found is None:
            break
        offset = int(found[1])
        assert offset == len(read)
    assert read == text


async def test_a_secret_is_redacted_before_an_offset_is_applied() -> None:
    """Otherwise an offset inside of a secret would show the rest of it."""
    secret = "ghp_" + "a1B2" * 8
    result = CommandResult(exit_code=0, data={"text": f"token {secret} end"})
    hooks = HookChain(hooks=(TruncateOutput(), RedactSecrets()))
    part = await hooks.after(a_call(), read_text(20), result)
    assert secret[20:] not in str(part.data)


async def test_other_commands_ignore_an_offset_of_a_text() -> None:
    data: JsonValue = {"text": "x" * 10}
    plan = a_plan("snapshot", options={"from": "5"})
    assert (await TruncateOutput().after(a_call(), plan, CommandResult(exit_code=0, data=data))).data == data


async def test_small_output_has_no_notice() -> None:
    result = CommandResult(exit_code=0, data={"text": "x"})
    assert await TruncateOutput().after(a_call(), a_plan(), result) == result


async def test_the_message_is_truncated_too() -> None:
    result = CommandResult(exit_code=1, message="x" * 10_000)
    assert len((await TruncateOutput().after(a_call(), a_plan(), result)).message) <= 4000


PLAN = ContainerJob(name="run_pytest", runner=JobRunner.PYTEST, timeout_seconds=60)


def an_answer(failures: int, artifacts: int, output: str) -> dict[str, Any]:
    return {
        "run_id": "a" * 24,
        "passed": False,
        "exit_code": 1,
        "seconds": 1.5,
        "counts": None,
        "failures": [{"test": "t", "message": "m" * 2000}] * failures,
        "failures_left_out": 1,
        "output": output,
        "output_cut": False,
        "artifacts_complete": True,
        "artifacts": [{"path": "p" * 200, "size": 1, "sha256": "0" * 64, "mime": "text/plain"}] * artifacts,
        "artifacts_left_out": 0,
        "refused_artifacts": 0,
        "evidence_sha256": "0" * 64,
    }


@pytest.mark.parametrize("most", [1000, 5000, 30_000])
async def test_a_job_answer_counts_what_was_cut(most: int) -> None:
    answer = an_answer(20, 100, "x" * 16_000)
    result = await TruncateJobAnswer(max_characters=most).after(a_call(), PLAN, CommandResult(exit_code=1, data=answer))
    assert isinstance(result.data, dict)
    assert len(json.dumps(result.data, separators=(",", ":"))) <= most
    jsonschema.validate(result.data, output_schema())
    assert isinstance(result.data["failures"], list)
    assert isinstance(result.data["artifacts"], list)
    assert result.data["failures_left_out"] == 21 - len(result.data["failures"])
    assert result.data["artifacts_left_out"] == 100 - len(result.data["artifacts"])
    assert result.data["output_cut"] is True


async def test_a_small_job_answer_is_unchanged() -> None:
    answer = an_answer(1, 1, "short")
    result = await TruncateJobAnswer().after(a_call(), PLAN, CommandResult(exit_code=1, data=answer))
    assert result.data == answer
