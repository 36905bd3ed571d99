"""Roles, attributes and selectors by role and name."""

from __future__ import annotations

import pytest

from browser_shell.policy.roles import (
    ATTRIBUTES,
    ROLES,
    RoleSelector,
    is_role_selector,
    parse_role_selector,
    read_attribute,
    read_role,
)


@pytest.mark.parametrize(
    ("text", "role", "name"),
    [
        ("role=button", "button", ""),
        ("role=menuitem name=Save as…", "menuitem", "Save as…"),
        ('role=button name="Save"', "button", "Save"),
        ('role=button name="', "button", '"'),
    ],
)
def test_a_selector_has_a_role_and_perhaps_a_name(text: str, role: str, name: str) -> None:
    selector = parse_role_selector(text)
    assert selector == RoleSelector(role=role, name=name)
    assert parse_role_selector(str(selector)) == selector


@pytest.mark.parametrize("text", ["role=", "role=nothing", "role=button x", "role=button name=", "role=button[name=x]"])
def test_a_malformed_selector_is_refused(text: str) -> None:
    assert is_role_selector(text)
    with pytest.raises(ValueError, match=r"^must "):
        parse_role_selector(text)


def test_other_selectors_are_not_selectors_by_role() -> None:
    assert not any(map(is_role_selector, ("@e1", "[role=button]", "text=role=button", "#role")))


def test_roles_and_attributes_are_read_in_lower_case() -> None:
    assert read_role("Button") == "button"
    assert read_attribute("Data-TestId") == "data-testid"
    assert all(word == word.lower() for word in ROLES | ATTRIBUTES)


def test_places_sizes_and_colours_of_drawn_shapes_are_readable() -> None:
    assert {"cx", "cy", "r", "x", "y", "width", "height", "points", "d", "transform", "fill"} <= ATTRIBUTES


def test_attributes_that_hold_code_or_secrets_are_not_listed() -> None:
    assert not ATTRIBUTES & {"value", "nonce", "content", "srcdoc", "style", "integrity", "onclick", "data-token"}
    assert not [name for name in ATTRIBUTES if name.startswith("on")]
