"""JavaScript dialogs of a page, and the texts about them for the agent."""

from __future__ import annotations

from dataclasses import dataclass

from browser_shell.core.errors import DialogOpen

_MESSAGE_CHARACTERS = 300

_ADVICE = {
    "confirm": "Answer the page's dialog first: dialog accept (OK), or dialog dismiss (Cancel).",
    "prompt": "Answer the page's dialog first: dialog accept TEXT, or dialog dismiss (Cancel).",
    "beforeunload": "dialog dismiss stays on the page and keeps what was entered; dialog accept leaves it.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialog:
    """A JavaScript dialog, which blocks its page until it is answered. The message comes from the page."""

    kind: str
    """`confirm`, `prompt` or `beforeunload`. An `alert` is answered at once."""
    message: str

    def describe(self) -> str:
        if self.kind == "beforeunload":
            # Chromium shows a text of its own instead of the page's.
            return "the page shows a beforeunload dialog: it asks whether to leave, because changes may not be saved"
        return f"the page shows a {self.kind} dialog: {self.message[:_MESSAGE_CHARACTERS]!r}"

    def error(self) -> DialogOpen:
        """The error of a command that cannot run, or could not finish, because the dialog is open."""
        return DialogOpen(self.describe(), rule_id="page.dialog", advice=_ADVICE.get(self.kind, ""))

    def note(self) -> str:
        """The note of a command that was done and opened the dialog."""
        answers = "dialog accept TEXT or dialog dismiss" if self.kind == "prompt" else "dialog accept or dialog dismiss"
        return f"{self.describe()}; answer it with {answers}"
