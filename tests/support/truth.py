"""Rows of the truth table: a page, a command, and the effect that the page itself must report."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from support.server import Outcome

_EFFECTS = frozenset(
    {"mousedown", "mouseup", "click", "dblclick", "contextmenu", "auxclick", "keydown", "keypress", "keyup", "note"}
    | {"beforeinput", "input", "change", "submit", "reset", "dragstart", "drop", "dragend"}
)
"""Events that a refused command must not cause."""


@dataclass(frozen=True, slots=True)
class Ref:
    """An argument that stands for the ref of an element in the look before the command."""

    role: str
    name: str
    place: int = 0


Argument = str | int | float | Ref


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One command on one kind of element.

    In the HTML, `SAME/name`, `PORT/name` and `CROSS/name` stand for the URL of one of the row's other pages: on the
    origin of the page, on another port of its host, and on another site.
    """

    id: str
    html: str
    argv: Sequence[Argument]
    before: Sequence[Sequence[Argument]] = ()
    """Commands after the look at the page. They must succeed."""
    failing: Sequence[Sequence[Argument]] = ()
    """Commands after those. They must fail."""
    script: str = ""
    """Script that the page runs after the look and directly before the command."""
    after: Sequence[Sequence[Argument]] = ()
    """Commands after the command, before the state is read, such as the answer to a dialog. They must succeed."""
    frames: Mapping[str, str] = field(default_factory=dict)
    """Name to HTML of the pages in frames. They report too; their entries start with `name/`."""
    pages: Mapping[str, str] = field(default_factory=dict)
    """Name to HTML of pages that the command can open."""
    starts_on: str = ""
    """Name of the page that the tab shows before the command."""
    ends_on: str = ""
    """Name of the page that the tab shows in the end, if the command opens one."""
    frames_later: Sequence[str] | None = None
    """Names of the pages in frames after the script, if it changes them."""

    code: str = ""
    """Code word of the expected error; '' for success."""
    may_fail: str = ""
    """Code word of an error that is right, too, if the page is untouched."""
    names: Sequence[str] = ()
    """Words that the error has to contain."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """Values of fields that the command changes. All other fields keep theirs."""
    log: Sequence[str] | None = None
    """Expected events, compared with the events of the same kinds, in order; () for no effect at all."""
    never: Sequence[str] = ()
    """Entries of the log, or kinds of events, that must not happen."""
    may_touch: bool = False
    """Whether an error of `may_fail` may come after the page has received events; other fields keep their values."""
    app: Mapping[str, Any] | None = None
    """Expected state of the page's application."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """Part of the answer's data."""
    lacks: Sequence[str] = ()
    """Texts that the whole answer must not contain, such as a password."""
    scrolls: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Left and top of scroll boxes (class `box`, or `page`)."""
    active: str | None = None
    """Id of the element that has the focus in the end. A refused command must not move it unless this is set."""
    selection: str | None = None
    note: str = ""
    """Text of a NOTE line that the answer must have."""


@dataclass(frozen=True, slots=True)
class State:
    """State of a page with its frames, as reported by the page."""

    fields: dict[str, Any]
    log: list[str]
    app: dict[str, Any]
    scrolls: dict[str, list[int]]
    active: str
    selection: str

    @classmethod
    def of(cls, reports: Sequence[dict[str, Any]], *, top: str) -> State:
        fields: dict[str, Any] = {}
        log: list[str] = []
        app: dict[str, Any] = {}
        scrolls: dict[str, list[int]] = {}
        for report in reports:
            prefix = f"{report['page']}/" if report["page"] != top else ""
            fields |= {prefix + name: value for name, value in report["fields"].items()}
            scrolls |= {prefix + name: value for name, value in report["scrolls"].items()}
            app |= report["app"]
            log += [entry.replace("@", f"@{prefix}", 1) for entry in report["log"]]
        first = next(report for report in reports if report["page"] == top)
        return cls(fields, log, app, scrolls, first["active"], first["selection"])


def judge(row: Row, outcome: Outcome, before: State, after: State) -> list[str]:
    """Compare an outcome with its row. Each finding starts with its class, such as `false success`."""
    if outcome.exit_code == 0:
        if row.code:
            return [f"false success: {outcome.stdout}, expected {row.code}", *_changes(before, after)]
        return [*_missing_effects(row, before, after), *_wrong_answers(row, outcome, after)]
    code = str(outcome.meta.get("name", ""))
    if not row.code and code != row.may_fail:
        return [f"refused: {outcome.stderr}"]
    findings = (
        [] if code in (row.code, row.may_fail) else [f"wrong code: {code}, expected {row.code}: {outcome.stderr}"]
    )
    findings += [
        f"wrong message: {word!r} is missing in {outcome.stderr}" for word in row.names if word not in outcome.stderr
    ]
    findings += [f"leak: {text!r} in the answer" for text in row.lacks if text in outcome.stdout + outcome.stderr]
    if row.may_touch and code == row.may_fail:
        return [*findings, *(f"touched: {finding}" for finding in _unwanted(row, before, after))]
    touches = row.log is not None or bool(row.values or row.never)
    touched = _missing_effects(row, before, after) if row.code == code and touches else _changes(before, after)
    moved = before.active != after.active if row.active is None else after.active != row.active
    return [
        *findings,
        *(f"touched: {finding}" for finding in touched),
        *([f"touched: the focus is on {after.active}, was on {before.active}"] if moved else []),
    ]


def _changes(before: State, after: State) -> list[str]:
    fields = {name: value for name, value in after.fields.items() if before.fields.get(name) != value}
    events = [entry for entry in after.log if _kind(entry) in _EFFECTS]
    return [
        *([f"fields are {fields}"] if fields or before.fields.keys() - after.fields.keys() else []),
        *([f"events {events}"] if events else []),
        *([f"application state {after.app}, was {before.app}"] if before.app != after.app else []),
    ]


def _unwanted(row: Row, before: State, after: State) -> list[str]:
    events = [entry for entry in after.log if _kind(entry) in row.never or entry in row.never]
    fields = {
        name for name in before.fields.keys() - row.values.keys() if before.fields[name] != after.fields.get(name)
    }
    return [
        *([f"events {events}, expected none of them"] if events else []),
        *([f"other fields changed: {sorted(fields)}"] if fields and not row.ends_on else []),
    ]


def _missing_effects(row: Row, before: State, after: State) -> list[str]:
    findings = []
    expected = {**before.fields, **row.values} if not row.ends_on else dict(row.values)
    if after.fields != expected:
        findings.append(f"fields are {after.fields}, expected {expected}")
    if row.log is not None:
        kinds = {_kind(entry) for entry in row.log} or _EFFECTS
        events = [entry for entry in after.log if _kind(entry) in kinds]
        if events != list(row.log):
            findings.append(f"events {events}, expected {list(row.log)}")
    findings += _unwanted(row, before, after)
    if row.app is not None and after.app != row.app:
        findings.append(f"application state {after.app}, expected {dict(row.app)}")
    for name, position in row.scrolls.items():
        if after.scrolls[name] != list(position):
            findings.append(f"{name} is scrolled to {after.scrolls[name]}, expected {position}")
    if row.active is not None and after.active != row.active:
        findings.append(f"the focus is on {after.active}, expected {row.active}")
    if row.selection is not None and after.selection != row.selection:
        findings.append(f"selected is {after.selection!r}, expected {row.selection!r}")
    return [f"false success: {finding}; log: {after.log}" for finding in findings]


def _wrong_answers(row: Row, outcome: Outcome, after: State) -> list[str]:
    data = outcome.data
    findings = [
        f"wrong answer: {name} is {data.get(name)!r}, expected {value!r}"
        for name, value in row.data.items()
        if data.get(name) != value
    ]
    target = str(row.argv[1]).removeprefix("#") if len(row.argv) > 1 else ""
    has_value = row.argv[0] in ("fill", "type") and "value" in data and target in after.fields
    if has_value and _lines(data["value"]) != _lines(after.fields[target]):
        findings.append(f"wrong answer: value is {data['value']!r}, the field has {after.fields[target]!r}")
    findings += [f"leak: {text!r} in the answer" for text in row.lacks if text in outcome.stdout + outcome.stderr]
    if row.note and row.note not in outcome.stderr:
        findings.append(f"wrong answer: no note {row.note!r} in {outcome.stderr!r}")
    return findings


def _lines(value: object) -> list[str]:
    """Return the lines of a text. Paragraphs of an editor may be separated by one line break or by two."""
    return [line for line in str(value).splitlines() if line]


def _kind(entry: str) -> str:
    return re.split("[:@]", entry, maxsplit=1)[0]
