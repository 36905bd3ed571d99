"""Tasks of reading, copying, selecting and styling text."""

from __future__ import annotations

import re

from support.miniwob.episodes import Episode
from support.miniwob.fields import ORDINALS


def copy_the_skewed_text(episode: Episode) -> None:
    episode.fill("#tt", "".join(episode.text("#captcha").split()))
    episode.submit()


def find_the_word(episode: Episode) -> None:
    (position,) = episode.groups_of(r"(\d+)(?:st|nd|rd|th)")
    episode.fill("#answer-input", episode.text("#area p").split()[int(position) - 1].strip(".,"))
    episode.submit()


def copy_the_text(episode: Episode) -> None:
    episode.fill("#answer-input", episode.value("#to-copy"))
    episode.submit()


def copy_the_numbered_text(episode: Episode) -> None:
    (position,) = episode.groups_of(r"from the (\w+) text area")
    episode.fill("#answer-input", episode.value(f"#text-{ORDINALS[position]}"))
    episode.submit()


def enter_the_last_word(episode: Episode) -> None:
    episode.fill("#answer-input", episode.value("#text-area").split()[-1].strip(".,"))
    episode.submit()


def scroll_the_text(episode: Episode) -> None:
    (end,) = episode.groups_of(r"to the (bottom|top) of the text")
    episode.run("scroll", "down" if end == "bottom" else "up", 10_000, "-s", "#text-area")
    episode.submit()


def highlight_the_paragraph(episode: Episode) -> None:
    episode.run("select-text", "#randomText")
    episode.submit()


def highlight_the_numbered_paragraph(episode: Episode) -> None:
    (position,) = episode.groups_of(r"in the (\w+) paragraph")
    episode.run("select-text", f"#randomText p:nth-child({ORDINALS[position]})")
    episode.submit()


# The strongest shade of each colour in the palette of the editor.
_SHADES = {
    "red": "#e60000",
    "orange": "#ff9900",
    "yellow": "#ffff00",
    "green": "#008a00",
    "blue": "#0066cc",
    "purple": "#9933ff",
}
_STYLES = {"bold": ".ql-bold", "italics": ".ql-italic", "underlined": ".ql-underline"}


def style_the_text(episode: Episode) -> None:
    words, style = episode.groups_of(r"(?:give|make)(?: the text)? (.+?) the (?:style|color) (\w+)")
    if words == "everything":
        episode.run("select-text", ".ql-editor p")
    else:
        episode.run("select-text", ".ql-editor p", words)
    episode.run("wait", 200)  # The editor reads the selection a tenth of a second after it got the focus.
    if style in _STYLES:
        episode.click(_STYLES[style])
    else:
        episode.click(".ql-color .ql-picker-label")
        episode.click(f".ql-color .ql-picker-item[data-value='{_SHADES[style]}']")
    episode.submit()


def read_the_table(episode: Episode) -> None:
    (key,) = episode.groups_of(r"value of (.+?) into")
    episode.fill("#tt", episode.text(f"xpath=//tr[td[1]='{key}']/td[2]"))
    episode.submit()


def read_two_values_of_the_table(episode: Episode) -> None:
    for number in (1, 2):
        key = episode.text(f"#ll{number}").rstrip(":")
        episode.fill(f"#tt{number}", episode.text(f"xpath=//tr[td[1]='{key}']/td[2]"))
    episode.submit()


def delete_a_file_in_the_terminal(episode: Episode) -> None:
    extension = re.search(r"extension (\.\S+)", episode.query)
    episode.click("#terminal")
    _enter_line(episode, "ls")
    listed = episode.text("#terminal-contents .terminal-output:nth-last-child(2)").split()
    if extension:
        name = next(name for name in listed if name.endswith(extension[1]))
    else:
        name = next(name for name in listed if "." not in name)
    _enter_line(episode, f"rm {name}")


def _enter_line(episode: Episode, line: str) -> None:
    """Press the keys of a line. The terminal reads key events and keeps no text in its field."""
    keys = ["Space" if character == " " else character for character in line]
    episode.steps([("press", key) for key in [*keys, "Enter"]])
