"""Roles and states of custom elements from their `ElementInternals`."""

from __future__ import annotations

from browser_shell.browser.page.look_internals import candidates, with_internals
from browser_shell.core.json_values import JsonObject
from support.look_trees import tree_of

RADIO: JsonObject = {
    "ignored": False,
    "role": {"type": "role", "value": "radio"},
    "name": {"type": "computedString", "value": "Air"},
    "properties": [
        {"name": "checked", "value": {"type": "tristate", "value": "true"}},
        {"name": "focusable", "value": {"type": "booleanOrUndefined", "value": True}},
        {"name": "disabled", "value": {"type": "boolean", "value": True}},
    ],
}


def test_a_described_element_gets_role_name_and_states() -> None:
    assert with_internals({"id": "a"}, RADIO) == {
        "id": "a",
        "role": "radio",
        "aria-label": "Air",
        "aria-checked": "true",
        "aria-disabled": "true",
    }


def test_an_element_without_a_role_stays_as_it_is() -> None:
    ignored: JsonObject = {**RADIO, "ignored": True}
    generic: JsonObject = {"role": {"value": "generic"}}
    for described in (ignored, generic, JsonObject()):
        assert with_internals({"id": "a"}, described) == {"id": "a"}


def test_only_custom_elements_that_can_be_acted_on_are_asked_for() -> None:
    html = "<x-a click></x-a><x-b tabindex=0></x-b><x-c>text</x-c><x-d role=tab click></x-d><x-e click gone></x-e>"
    assert [node.tag for node in candidates(tree_of(f"{html}<div click></div>"))] == ["x-a", "x-b"]
