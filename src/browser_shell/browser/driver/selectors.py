"""Translate selectors for the driver, which understands refs, CSS and `xpath=`."""

from __future__ import annotations

_TEXT_PREFIX = "text="


def driver_selector(selector: str) -> str:
    """Return a selector of the same element in a form that the driver understands."""
    if selector.startswith(("//", "(")):
        return f"xpath={selector}"
    if selector.startswith(_TEXT_PREFIX):
        return f"xpath={_innermost_with_text(selector[len(_TEXT_PREFIX) :])}"
    return selector


def _innermost_with_text(text: str) -> str:
    """XPath of the innermost element that contains the text, with white space normalised. Skips script and style."""
    contains = f"contains(normalize-space(.), {_xpath_string(' '.join(text.split()))})"
    return f"//body//*[not(self::script or self::style)][{contains}][not(.//*[{contains}])]"


def _xpath_string(text: str) -> str:
    """XPath strings have no escapes (XPath 1.0 §3.7), so a text with both kinds of quote is concatenated."""
    if "'" not in text:
        return f"'{text}'"
    if '"' not in text:
        return f'"{text}"'
    parts = ', "\'", '.join(f"'{part}'" for part in text.split("'"))
    return f"concat({parts})"
