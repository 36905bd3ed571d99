"""Values of operands: selectors, keys, and targets of screenshots and waits."""

from __future__ import annotations

import pytest

from browser_shell.policy.commands import parse_command
from support.argv import refusal


def test_the_refusal_of_a_wait_for_a_ref_names_the_alternative() -> None:
    assert "--text" in refusal("wait", "@e1").public_message


@pytest.mark.parametrize(
    "selector",
    [
        *("", " ", "\t", "#a\nb", "#a\x00", "#a\x85", "1", "5px", " 5", "+5", "@e", "@x1", "@e1 b", " @e1"),
        "@e1234567",
        *("@e１", "text=", "xpath=", "x" * 513),
        *("role=", "role=widget", "role= button", "role=button[name=Save]", "role=button name=", 'role=button name=""'),
        *("role=button Save", "role=button name", "ROLE=", "role=button,a", "role=button\nname=x", " role=onclick"),
    ],
)
def test_an_invalid_selector_is_refused(selector: str) -> None:
    assert refusal("click", selector).rule_id == "command.operand"
    assert refusal("fill", selector, "x").rule_id == "command.operand"


@pytest.mark.promise("argv:no-file-names")
@pytest.mark.parametrize(
    "operand",
    [
        *("/etc/x.png", "../x", "a/../b.png", "..\\x.png", "..%2fx.png", "~", "x.png", "X.PNG", "x.jpeg", "x.webp"),
        "x.pdf",
        *("x.png ", "x.png.", ".png", "#a.svg", "c:x.txt", "a\\b", "..", "file:///x"),
    ],
)
def test_a_screenshot_refuses_file_names(operand: str) -> None:
    assert refusal("screenshot", operand).rule_id == "command.operand"
    assert refusal("screenshot", "#sel", operand).rule_id == "command.operand"


@pytest.mark.parametrize(
    ("selector", "canonical"),
    [
        ("role=button", "role=button"),
        ("role=Button  name= Save ", "role=button name=Save"),
        ('role=button name="Save as"', "role=button name=Save as"),
        ("role=button name='x'", "role=button name=x"),
        ('role=link name=The "Times"', 'role=link name=The "Times"'),
        ("role=link name=a name=b", "role=link name=a name=b"),
        (" ROLE=Iframe", None),
    ],
)
def test_a_selector_by_role_is_passed_on_in_one_form(selector: str, canonical: str | None) -> None:
    if canonical is None:
        assert refusal("click", selector).rule_id == "command.operand"
    else:
        assert parse_command(("click", selector)).operands == (canonical,)


@pytest.mark.parametrize("selector", ["@e3", "text=x", "//a", "xpath=//a", "role=img name=x"])
def test_looks_and_pictures_take_every_kind_of_selector(selector: str) -> None:
    assert parse_command(("screenshot", selector)).operands == (selector,)
    assert parse_command(("snapshot", "-s", selector)).options == {"selector": selector}


@pytest.mark.parametrize("place", [("wait",)])
def test_a_selector_by_role_is_refused_where_only_css_is_possible(place: tuple[str, ...]) -> None:
    assert refusal(*place, "role=button").rule_id.startswith("command.")


@pytest.mark.parametrize(
    "key",
    [
        *("", " ", "a b", "Control +a", "--help", "-h", "a\n", "\x01", "\u200b", "x" * 21, "Enter\u2028"),
        *("Foo", "12", "enter", "ENTER", "Esc", "Ctrl+a", "Control+", "Control+Foo", "Control+Control+a", "+a", "a+b"),
        *("F0", "F13", "Numpad10", "Control+Alt+Shift+Meta+ab", "Enter+a", "Control+ "),
    ],
)
def test_an_invalid_key_is_refused(key: str) -> None:
    assert refusal("press", key).rule_id == "command.operand"
