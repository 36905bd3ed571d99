"""Selectors in the driver's words: it understands refs, CSS and `xpath=`; two other forms become XPath."""

from __future__ import annotations

_TEXT_PREFIX = "text="


def driver_selector(selector: str) -> str:
    """The same element, in a form that the driver finds."""
    if selector.startswith(("//", "(")):
        return f"xpath={selector}"
    if selector.startswith(_TEXT_PREFIX):
        return f"xpath={_smallest_with_text(selector[len(_TEXT_PREFIX) :])}"
    return selector


def _smallest_with_text(text: str) -> str:
    """The innermost visible-by-nature element that contains the text, white space folded."""
    holds = f"contains(normalize-space(.), {_xpath_string(' '.join(text.split()))})"
    return f"//body//*[not(self::script or self::style)][{holds}][not(.//*[{holds}])]"


def _xpath_string(text: str) -> str:
    """XPath has no escapes in strings: one that holds both kinds of quote is put together from pieces."""
    if "'" not in text:
        return f"'{text}'"
    if '"' not in text:
        return f'"{text}"'
    pieces = ', "\'", '.join(f"'{piece}'" for piece in text.split("'"))
    return f"concat({pieces})"
