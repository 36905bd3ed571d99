from __future__ import annotations

import itertools

import pytest

from browser_shell.browser.page.frames import Frame
from browser_shell.browser.page.refs import RefTable
from browser_shell.core.errors import ActFailed, ErrorCode

FRAME = Frame(frame_id="F", loader_id="L1", url="http://a.test/", cdp_session="S", parent_id="")
NEXT_DOCUMENT = Frame(frame_id="F", loader_id="L2", url="http://a.test/", cdp_session="S", parent_id="")


def test_a_node_keeps_its_ref() -> None:
    refs = RefTable()
    first = refs.assign(FRAME, 7, role="button", name="Save")
    assert refs.assign(FRAME, 8, role="button", name="Save") != first
    assert refs.assign(FRAME, 7, role="button", name="Saved") == first
    assert refs.get(f"@{first}").name == "Saved"


def test_the_same_node_id_in_another_document_is_another_node() -> None:
    refs = RefTable()
    old, new = (refs.assign(frame, 7, role="button", name="Save") for frame in (FRAME, NEXT_DOCUMENT))
    assert (refs.get(f"@{old}").loader_id, refs.get(f"@{new}").loader_id) == ("L1", "L2")


def test_an_unknown_ref_is_an_error_with_advice() -> None:
    with pytest.raises(ActFailed) as failure:
        RefTable().get("@e1")
    assert failure.value.code is ErrorCode.ELEMENT_NOT_FOUND
    assert "snapshot" in failure.value.advice


def test_tabs_of_a_session_share_numbers_but_not_refs() -> None:
    numbers = itertools.count(1)
    one, two = RefTable(numbers), RefTable(numbers)
    first, second = (table.assign(FRAME, 7, role="button", name="Save") for table in (one, two))
    assert first != second
    assert not two.has(f"@{first}")


def test_the_oldest_refs_are_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("browser_shell.browser.page.refs._MAX_REFS", 3)
    refs = RefTable()
    given = [refs.assign(FRAME, node, role="button", name="") for node in range(5)]
    assert [refs.has(ref) for ref in given] == [False, False, True, True, True]
