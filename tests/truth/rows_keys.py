"""Rows of `type`, `press` and `focus`."""

from __future__ import annotations

from support.truth import Row
from truth.rows_fill import TRACKER

_OTHER = "<input id=other value=keep>"
_KEYS = ("keydown", "keypress", "beforeinput", "input", "keyup")


def _per_character(text: str, field: str) -> tuple[str, ...]:
    """Events of typed characters, in order."""
    return tuple(
        f"{kind}:{character}@{field}" if kind.startswith("key") else f"{kind}@{field}"
        for character in text
        for kind in _KEYS
    )


_REFUSED = (
    ("a read-only field", "<input id=t value=old readonly>", "NOT_EDITABLE"),
    ("a disabled field", "<input id=t value=old disabled>", "NOT_EDITABLE"),
    ("a field in a disabled fieldset", "<fieldset disabled><input id=t value=old></fieldset>", "NOT_EDITABLE"),
    ("an inert field", "<div inert><input id=t value=old></div>", "NOT_EDITABLE"),
    ("a checkbox", "<input id=t type=checkbox>", "NOT_EDITABLE"),
    ("a file input", "<input id=t type=file>", "NOT_EDITABLE"),
    ("a button", "<button id=t>old</button>", "NOT_EDITABLE"),
    ("a paragraph", "<p id=t>old</p>", "NOT_EDITABLE"),
    ("a field without display", "<input id=t value=old style='display:none'>", "NOT_EDITABLE"),
    ("an unknown field", "", "ELEMENT_NOT_FOUND"),
)
_UNKNOWN_KEYS = ("Foo", "12", "Control+", "Control+Foo", "Entr")

_TYPE_ROWS = (
    Row(
        id="type sends every event of a key for every character",
        html=f"<input id=t>{_OTHER}",
        argv=("type", "#t", "ab1"),
        values={"t": "ab1"},
        data={"typed": "#t", "value": "ab1"},
        log=_per_character("ab1", "t"),
    ),
    Row(
        id="type appends to the text of a field",
        html=f"<input id=t value=old>{_OTHER}",
        argv=("type", "#t", "XyZ"),
        values={"t": "oldXyZ"},
        log=_per_character("XyZ", "t"),
    ),
    Row(
        id="type appends to a text area and presses Enter for a line break",
        html=f"<textarea id=t>old</textarea>{_OTHER}",
        argv=("type", "#t", "Z\nb"),
        values={"t": "oldZ\nb"},
    ),
    Row(
        id="type appends to an editable element",
        html=f"<div id=t contenteditable>old <b>bold</b></div>{_OTHER}",
        argv=("type", "#t", "XY"),
        values={"t": "old boldXY"},
        log=_per_character("XY", "t"),
    ),
    Row(
        id="type appends to the last paragraph of an editor",
        html=f"<div id=t contenteditable><p>one</p><p>two</p></div>{_OTHER}",
        argv=("type", "#t", "XY"),
        values={"t": "one\n\ntwoXY"},
    ),
    Row(
        id="type inserts characters that no key has",
        html=f"<input id=t>{_OTHER}",
        argv=("type", "#t", "é日🙂ß"),
        values={"t": "é日🙂ß"},
    ),
    Row(
        id="type inserts punctuation",
        html=f"<input id=t>{_OTHER}",
        argv=("type", "#t", "a B-c_d@e.f/g:h;i'j\"k\\l~m`n{}[]()<>?!#$%^&*+=|,"),
        values={"t": "a B-c_d@e.f/g:h;i'j\"k\\l~m`n{}[]()<>?!#$%^&*+=|,"},
    ),
    Row(
        id="type fills an empty number field",
        html=f"<input id=t type=number>{_OTHER}",
        argv=("type", "#t", "12.5"),
        values={"t": "12.5"},
    ),
    Row(
        id="type appends to an e-mail field, which has no caret position for scripts",
        html=f"<input id=t type=email value=a>{_OTHER}",
        argv=("type", "#t", "@b.example"),
        values={"t": "a@b.example"},
    ),
    Row(
        id="type does not answer with a password",
        html=f"<input id=t type=password>{_OTHER}",
        argv=("type", "#t", "s3cret-word"),
        values={"t": "s3cret-word"},
        lacks=("s3cret-word",),
    ),
    Row(
        id="type refuses a line break for a field of one line",
        html=f"<form onsubmit='event.preventDefault()' id=f><input id=t></form>{_OTHER}",
        argv=("type", "#t", "ab\n"),
        code="COMMAND_FAILED",
        names=("one line",),
    ),
    Row(
        id="type updates the state of an application that tracks a field",
        html=f"{TRACKER}<input id=t value=old>{_OTHER}<script>track(t, 'state')</script>",
        argv=("type", "#t", "XY"),
        values={"t": "oldXY"},
        app={"state": "oldXY"},
    ),
    Row(
        id="type reaches a page that follows the keys instead of the input events",
        html=f"<input id=t onkeyup='app.seen = this.value'>{_OTHER}",
        argv=("type", "#t", "abc"),
        values={"t": "abc"},
        app={"seen": "abc"},
    ),
    Row(
        id="type refuses more characters than the field takes",
        html=f"<input id=t value=ab maxlength=3>{_OTHER}",
        argv=("type", "#t", "cd"),
        code="COMMAND_FAILED",
        names=("3",),
    ),
    Row(
        id="type fails when the page refuses the characters",
        html=f"<input id=t onkeydown='event.preventDefault()'>{_OTHER}",
        argv=("type", "#t", "abc"),
        code="COMMAND_FAILED",
        never=("input",),
        active="t",
    ),
    Row(
        id="type does not write into a field that takes the focus",
        html="<input id=t value=old onfocus='other.focus()'><input id=other value=keep>",
        argv=("type", "#t", "SECRET"),
        code="COMMAND_FAILED",
        active="other",
    ),
    Row(
        id="type does not write into a field that takes the focus at the first key",
        html="<input id=t onkeydown='other.focus()'><input id=other value=keep>",
        argv=("type", "#t", "SECRET"),
        code="COMMAND_FAILED",
        never=("input",),
        active="other",
    ),
    Row(
        id="type does not write into the next field when the page moves on after one character",
        html="<input id=t oninput='other.focus()'><input id=other value=keep>",
        argv=("type", "#t", "SECRET"),
        code="COMMAND_FAILED",
        values={"t": "S"},
        active="other",
    ),
    Row(
        id="type does not write elsewhere when the page renders the field again",
        html="""<div id=place><input id=t></div><input id=other value=keep><script>
        place.oninput = event => { const copy = document.createElement('input'); copy.id = 't'
          copy.value = event.target.value; event.target.replaceWith(copy); other.focus() }</script>""",
        argv=("type", "#t", "SECRET"),
        code="ELEMENT_GONE",
        values={"t": "S"},
        active="other",
    ),
    Row(
        id="type enters a date as a person does",
        html=f"<input id=t type=date>{_OTHER}",
        argv=("type", "#t", "12242026"),
        values={"t": "2026-12-24"},
    ),
    *(
        Row(
            id=f"type refuses {what}",
            html=_OTHER + html,
            before=(("focus", "#other"),),
            argv=("type", "#t", "SECRET"),
            code=code,
            active="other",
        )
        for what, html, code in _REFUSED
    ),
)

_FORM = "<form id=f onsubmit='event.preventDefault()'><input id=t value=old><button id=b>Go</button></form>"
_PRESS_ROWS = (
    Row(
        id="press Enter submits the form of the field with the focus",
        html=_FORM,
        before=(("focus", "#t"),),
        argv=("press", "Enter"),
        log=("keydown:Enter@t", "keypress:Enter@t", "submit@f", "keyup:Enter@t"),
        data={"pressed": "Enter"},
    ),
    Row(
        id="press Tab moves the focus",
        html=_FORM,
        before=(("focus", "#t"),),
        argv=("press", "Tab"),
        active="b",
    ),
    Row(
        id="press Shift+Tab moves the focus back",
        html=_FORM,
        before=(("focus", "#b"),),
        argv=("press", "Shift+Tab"),
        active="t",
    ),
    Row(
        id="press Space presses the button with the focus",
        html="<button id=b>Go</button>",
        before=(("focus", "#b"),),
        argv=("press", "Space"),
        log=("keydown: @b", "keyup: @b", "click@b"),
    ),
    Row(
        id="press Space changes a checkbox",
        html="<input id=b type=checkbox>",
        before=(("focus", "#b"),),
        argv=("press", "Space"),
        values={"b": True},
    ),
    Row(
        id="press ArrowDown selects the next radio button",
        html="<input id=a type=radio name=r checked><input id=b type=radio name=r>",
        before=(("focus", "#a"),),
        argv=("press", "ArrowDown"),
        values={"a": False, "b": True},
    ),
    Row(
        id="press ArrowRight moves a range by one step",
        html="<input id=t type=range value=10 step=5>",
        before=(("focus", "#t"),),
        argv=("press", "ArrowRight"),
        values={"t": "15"},
    ),
    Row(
        id="press Backspace deletes a character",
        html="<input id=t value=old><script>t.focus(); t.setSelectionRange(3, 3)</script>",
        argv=("press", "Backspace"),
        values={"t": "ol"},
        log=("keydown:Backspace@t", "beforeinput@t", "input@t", "keyup:Backspace@t"),
    ),
    Row(
        id="press Delete deletes a character",
        html="<input id=t value=old><script>t.focus(); t.setSelectionRange(0, 0)</script>",
        argv=("press", "Delete"),
        values={"t": "ld"},
    ),
    Row(
        id="press Control+a selects the text of a field",
        html="<input id=t value='old text'><p>page</p><script>t.focus()</script>",
        argv=("press", "Control+a"),
        selection="old text",
        log=("keydown:Control@t", "keydown:Control+a@t", "keyup:Control+a@t", "keyup:Control@t"),
    ),
    Row(
        id="press Shift+ArrowLeft extends the selection",
        html="<input id=t value='old text'><script>t.focus(); t.setSelectionRange(8, 8)</script>",
        argv=("press", "Shift+ArrowLeft"),
        selection="t",
    ),
    Row(
        id="press Control+Shift+ArrowLeft extends the selection by a word",
        html="<input id=t value='old text'><script>t.focus(); t.setSelectionRange(8, 8)</script>",
        argv=("press", "Control+Shift+ArrowLeft"),
        selection="text",
    ),
    Row(
        id="press Home moves the caret to the start",
        html="<input id=t value=old><script>t.focus(); t.setSelectionRange(3, 3)</script>",
        before=(("press", "Home"),),
        argv=("press", "x"),
        values={"t": "xold"},
    ),
    Row(
        id="press End moves the caret to the end",
        html="<input id=t value=old><script>t.focus(); t.setSelectionRange(0, 0)</script>",
        before=(("press", "End"),),
        argv=("press", "x"),
        values={"t": "oldx"},
    ),
    *(
        Row(
            id=f"press {key} inserts {text}",
            html="<input id=t><script>t.focus()</script>",
            argv=("press", key),
            values={"t": text},
        )
        for key, text in (
            ("a", "a"),
            ("A", "A"),
            ("Shift+b", "B"),
            ("Shift+B", "B"),
            ("7", "7"),
            ("é", "é"),
            ("ß", "ß"),
            ("日", "日"),
            ("+", "+"),
            ("/", "/"),
            ("Shift+7", "&"),
        )
    ),
    Row(
        id="press Escape closes a modal dialog",
        html="<dialog id=d><input id=t></dialog><script>d.showModal()</script>",
        argv=("press", "Escape"),
        values={"d": False},
    ),
    Row(
        id="press Escape reaches the page without a focused field",
        html="<script>addEventListener('keydown', event => note(event.key))</script>",
        argv=("press", "Escape"),
        log=("note@Escape",),
    ),
    Row(
        id="press F2 reaches the page",
        html="<input id=t><script>t.focus()</script>",
        argv=("press", "F2"),
        log=("keydown:F2@t", "keyup:F2@t"),
    ),
    Row(
        id="press PageDown scrolls the page",
        html="<div style='height:5000px'>tall</div><script>addEventListener('scrollend', () => note('moved'))</script>",
        argv=("press", "PageDown"),
        after=(("wait", 600),),
        log=("note@moved",),
    ),
    Row(
        id="press ArrowDown changes a select",
        html="<select id=s><option>a<option>b</select>",
        before=(("focus", "#s"),),
        argv=("press", "ArrowDown"),
        values={"s": "b"},
    ),
    Row(
        id="press Control+Enter reaches the page with the modifier",
        html="<textarea id=t></textarea><script>t.onkeydown = event => event.ctrlKey && note(event.key)</script>",
        before=(("focus", "#t"),),
        argv=("press", "Control+Enter"),
        log=("note@Control", "note@Enter"),
    ),
    *(
        Row(
            id=f"press refuses {key}",
            html="<input id=t value=old><script>t.focus()</script>",
            argv=("press", key),
            code="INVALID_ARGUMENTS",
        )
        for key in _UNKNOWN_KEYS
    ),
)

_FOCUS_ROWS = (
    Row(
        id="focus gives a field the focus",
        html=f"<input id=t>{_OTHER}",
        argv=("focus", "#t"),
        log=("focusin@t",),
        active="t",
    ),
    Row(
        id="focus gives an element with a tabindex the focus",
        html=f"<div id=t tabindex=0>text</div>{_OTHER}",
        argv=("focus", "#t"),
        active="t",
    ),
    Row(
        id="focus fails for an element that cannot have it",
        html=f"<p id=t>text</p>{_OTHER}",
        before=(("focus", "#other"),),
        argv=("focus", "#t"),
        code="COMMAND_FAILED",
        active="other",
    ),
    Row(
        id="focus fails for a disabled field",
        html=f"<input id=t disabled>{_OTHER}",
        before=(("focus", "#other"),),
        argv=("focus", "#t"),
        code="NOT_EDITABLE",
        active="other",
    ),
    Row(
        id="focus fails when the page moves the focus away",
        html="<input id=t onfocus='other.focus()'><input id=other>",
        argv=("focus", "#t"),
        code="COMMAND_FAILED",
        active="other",
    ),
)

ROWS = (*_TYPE_ROWS, *_PRESS_ROWS, *_FOCUS_ROWS)
