"""What reaches agent-browser is what was judged, in words it understands."""

from __future__ import annotations

import pytest

from browser_shell.browser.driver.actions import driver_actions
from browser_shell.browser.driver.selectors import driver_selector
from browser_shell.core.plans import BrowserCommand


def words(name: str, *operands: str, **options: str) -> list[list[str]]:
    plan = BrowserCommand(session_id="s", name=name, operands=operands, options=options, timeout_seconds=30)
    return driver_actions(plan, file="/out/x.jpg", wait_ms=900)


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("@e3", "@e3"),
        ("#a > .b", "#a > .b"),
        ("xpath=//a", "xpath=//a"),
        ("//a[1]", "xpath=//a[1]"),
        ("(//a)[2]", "xpath=(//a)[2]"),
    ],
)
def test_selectors_take_the_form_that_the_driver_finds(selector: str, expected: str) -> None:
    assert driver_selector(selector) == expected


@pytest.mark.parametrize(
    ("text", "quoted"),
    [("Go", "'Go'"), ("it's", '"it\'s"'), ("""a"b'c""", """concat('a"b', "'", 'c')""")],
)
def test_a_text_selector_cannot_leave_its_quotes(text: str, quoted: str) -> None:
    assert f"contains(normalize-space(.), {quoted})" in driver_selector(f"text={text}")


@pytest.mark.promise("driver:text-is-opaque")
@pytest.mark.parametrize("text", ["--cdp", "-p", "text=x", "//x", "[[]]", ""])
def test_text_is_never_taken_for_a_selector(text: str) -> None:
    assert words("fill", "//input", text) == [["fill", "xpath=//input", text]]


def test_text_that_type_would_take_for_an_option_goes_in_by_the_keyboard() -> None:
    assert words("type", "#a", "--clear") == [["focus", "#a"], ["keyboard", "type", "--clear"]]
    assert words("type", "#a", "--clearly") == [["type", "#a", "--clearly"]]


def test_the_server_names_every_file_and_bounds_every_wait() -> None:
    assert words("screenshot", "#a", full="") == [["screenshot", "#a", "/out/x.jpg", "--full"]]
    assert words("pdf") == [["pdf", "/out/x.jpg"]]
    assert words("wait", text="Done") == [["wait", "--text", "Done", "--timeout", "900"]]
    assert words("wait", "250") == [["wait", "250"]]
    assert words("wait", "901") == [["wait", "900"]]
    # Digits of other scripts are no number here, and for the driver neither.
    assert words("wait", "٥") == [["wait", "٥", "--timeout", "900"]]


def test_questions_keep_their_word_and_translate_their_selector() -> None:
    assert words("get", "url") == [["get", "url"]]
    assert words("is", "visible", "//a") == [["is", "visible", "xpath=//a"]]
    assert words("scroll", "down", "10", selector="//ul") == [["scroll", "down", "10", "--selector", "xpath=//ul"]]
