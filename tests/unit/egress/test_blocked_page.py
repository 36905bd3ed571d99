"""The page that a refused navigation shows."""

from __future__ import annotations

import html

from hypothesis import given
from hypothesis import strategies as st

from browser_shell.egress.proxy import as_text


@given(st.text())
def test_words_of_others_stay_words(words: str) -> None:
    assert as_text(words) == html.escape(words)


def test_a_tag_is_no_tag() -> None:
    assert as_text("<b a='1' c=\"2\">&</b>") == "&lt;b a=&#x27;1&#x27; c=&quot;2&quot;&gt;&amp;&lt;/b&gt;"
