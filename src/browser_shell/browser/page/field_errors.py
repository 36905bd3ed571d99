"""Errors of commands that act on fields: what the field does not allow, and what to do next."""

from __future__ import annotations

from browser_shell.core.errors import ActFailed, ErrorCode
from browser_shell.core.json_values import JsonObject, JsonValue

_SHOW_FIRST = "First do what shows it, for example open its menu or section; then take a new snapshot."
_ENABLE_FIRST = "First do what enables it, for example fill in the fields before it; then repeat the command."
_KINDS = {
    "checkbox": ("is a check box and takes no text", "Use check {0} or uncheck {0}."),
    "radio": ("is a radio button and takes no text", "Use check {0}."),
    "select": ("is a list of options and takes no text", "Use select {0} VALUE."),
    "button": ("is a button and takes no text", "Use click {0}."),
    "terminal": ("is the input of a terminal, whose text cannot be replaced", "Use type {0} TEXT, then press Enter."),
    "file": ("is a file field, and files cannot be uploaded here", "Continue without the file."),
}
_MAX_CHARACTERS = 200


def short(text: str) -> str:
    """Quote a text of the page or the caller for a message, cut to 200 characters."""
    return repr(text if len(text) <= _MAX_CHARACTERS else f"{text[:_MAX_CHARACTERS]}…")


def field_error(label: str, found: JsonObject) -> ActFailed:
    """Return the error for a problem that a page function reported. Nothing was entered."""
    match found.get("problem"):
        case "gone":
            return ActFailed(ErrorCode.ELEMENT_GONE, f"{label} is no longer on the page")
        case "invisible":
            return ActFailed(ErrorCode.NOT_EDITABLE, f"{label} is not visible", advice=_SHOW_FIRST)
        case "disabled" | "inert" | "modal" | "read-only" | "changed on focus":
            return _unusable(label, found)
        case "kind" | "frame" | "typing":
            return _wrong_kind(label, found)
        case "focus" | "replaced on focus":
            return _lost_focus(label, found)
        case _:
            return _wrong_text(label, found)


def _unusable(label: str, found: JsonObject) -> ActFailed:
    by = found.get("by")
    match found.get("problem"):
        case "disabled":
            message = f"{label} is disabled" + (f" by {by}" if by else "")
            return ActFailed(ErrorCode.NOT_EDITABLE, message, advice=_ENABLE_FIRST)
        case "read-only":
            message = f"{label} is read-only"
            return ActFailed(
                ErrorCode.NOT_EDITABLE,
                message,
                advice=f"Use click {label} and check whether a calendar, a list or an editor opens, or leave it.",
            )
        case "modal":
            return ActFailed(
                ErrorCode.ELEMENT_COVERED,
                f"the modal dialog {by} is open, and {label} is behind it",
                advice="Finish or close the dialog first, then repeat the command.",
            )
        case "inert":
            return ActFailed(
                ErrorCode.NOT_EDITABLE,
                f"{label} is in a part of the page that is inactive at the moment",
                advice="First do what activates it, for example close the dialog or menu that is open.",
            )
        case _:
            return ActFailed(
                ErrorCode.NOT_EDITABLE,
                f"{label} became read-only or disabled when it got the focus",
                advice="Take a snapshot; the page may have opened another field or a list for it.",
            )


def _wrong_kind(label: str, found: JsonObject) -> ActFailed:
    if found.get("problem") == "typing":
        message = f"{label} is a field of type {found.get('type')} and takes no single keys"
        return ActFailed(ErrorCode.NOT_EDITABLE, message, advice=f"Use fill {label} VALUE.")
    if found.get("problem") == "frame":
        return ActFailed(
            ErrorCode.NOT_EDITABLE,
            f"{label} is a frame without an editable text of its own",
            advice="Take a snapshot (snapshot -i) and use the ref of a field in the frame.",
        )
    message, advice = _KINDS.get(str(found.get("kind")), ("is not a field", ""))
    inside = found.get("inside")
    if not advice and isinstance(inside, list) and inside:
        advice = f"It contains {', '.join(map(str, inside))}; use the ref or CSS selector of that field."
    advice = advice or "Take a snapshot (snapshot -i) and use the ref of a field."
    return ActFailed(ErrorCode.NOT_EDITABLE, f"{label} {message}", advice=advice.format(label))


def _lost_focus(label: str, found: JsonObject) -> ActFailed:
    if found.get("problem") == "replaced on focus":
        return ActFailed(
            ErrorCode.ELEMENT_GONE,
            f"the page replaced {label} when it got the focus; nothing was entered",
            advice="Take a new snapshot and use the ref of the field that took its place.",
        )
    on = found.get("on")
    return ActFailed(
        ErrorCode.COMMAND_FAILED,
        f"{label} did not get the focus" + (f"; the page gave it to {on}" if on else ""),
        advice=f"Act on {on} instead." if on else f"Use click {label}, or the ref of a field or button inside it.",
    )


def _wrong_text(label: str, found: JsonObject) -> ActFailed:
    match found.get("problem"):
        case "one line":
            message = f"{label} takes one line, and the text has line breaks"
            advice = "Leave them out; to submit, use press Enter afterwards."
        case "too long":
            message = f"{label} takes at most {found.get('most')} characters, and this would be {found.get('length')}"
            advice = "Shorten the text. Nothing was entered."
        case "value":
            message = f"{label} has the type {found.get('type')} and does not take this value"
            advice = f"It takes {found.get('accepted')}. Nothing was entered."
        case other:
            message, advice = f"{label}: {other}", ""
    return ActFailed(ErrorCode.COMMAND_FAILED, message, advice=advice)


def not_kept(label: str, value: JsonValue, *, instead: str) -> ActFailed:
    """Return the error for text that was entered and that the page did not keep.

    `value` is None for a secret. `instead` is a command that may work.
    """
    now = "what it holds now is not shown" if value is None else f"it holds {short(str(value))} now"
    return ActFailed(
        ErrorCode.COMMAND_FAILED,
        f"the page did not keep the text in {label}; {now}",
        advice=f"Take a snapshot for what the page expects. Try another form of the text, or {instead}.",
    )
