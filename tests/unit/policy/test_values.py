"""Values of operands: selectors, keys, and targets of screenshots and waits."""

from __future__ import annotations

import pytest

from support.argv import refusal


def test_the_refusal_of_a_wait_for_a_ref_names_the_alternative() -> None:
    assert "--text" in refusal("wait", "@e1").public_message


@pytest.mark.parametrize(
    "selector",
    [
        *("", " ", "\t", "#a\nb", "#a\x00", "#a\x85", "1", "5px", " 5", "+5", "@e", "@x1", "@e1 b", " @e1"),
        "@e1234567",
        *("@e１", "text=", "xpath=", "x" * 513),
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
        *("x.png ", "x.png.", ".png", "#a.svg", "c:x.txt", "text=x", "//a", "xpath=//a", "a\\b", "..", "file:///x"),
    ],
)
def test_a_screenshot_refuses_file_names(operand: str) -> None:
    assert refusal("screenshot", operand).rule_id == "command.operand"
    assert refusal("screenshot", "#sel", operand).rule_id == "command.operand"


@pytest.mark.parametrize(
    "key", ["", " ", "a b", "Control +a", "--help", "-h", "a\n", "\x01", "\u200b", "x" * 21, "Enter\u2028"]
)
def test_an_invalid_key_is_refused(key: str) -> None:
    assert refusal("press", key).rule_id == "command.operand"
