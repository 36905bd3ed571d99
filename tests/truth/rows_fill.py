"""Rows of `fill`."""

from __future__ import annotations

from support.truth import Row

_OTHER = "<input id=other value=keep>"
_ACCEPTED = (
    # kind, text, value that the field has then
    ("text", "new text", "new text"),
    ("search", "new text", "new text"),
    ("email", "a@b.example", "a@b.example"),
    ("url", "http://a.example/?q=1", "http://a.example/?q=1"),
    ("tel", "+49 30 1234", "+49 30 1234"),
    ("number", "12.5", "12.5"),
    ("number", "-3", "-3"),
    ("number", "1e3", "1e3"),
)
_SET = (
    ("date", "2020-01-02", "2026-12-24", "2026-12-24"),
    ("time", "01:02", "13:45", "13:45"),
    ("month", "2020-01", "2026-12", "2026-12"),
    ("week", "2020-W01", "2026-W05", "2026-W05"),
    ("datetime-local", "2020-01-02T03:04", "2026-12-24T13:45", "2026-12-24T13:45"),
    ("color", "#000000", "#ff8800", "#ff8800"),
    ("color", "#000000", "#FF8800", "#ff8800"),
    ("range", "10", "70", "70"),
)
_REJECTED = (
    ("number", "5", "abc"),
    ("number", "5", "1,5"),
    ("date", "2020-01-02", "24.12.2026"),
    ("date", "2020-01-02", "2026-02-30"),
    ("time", "01:02", "25:00"),
    ("month", "2020-01", "2026-13"),
    ("week", "2020-W01", "2026-W60"),
    ("datetime-local", "2020-01-02T03:04", "tomorrow"),
    ("color", "#123456", "red"),
    ("color", "#123456", "#f80"),
    ("range", "10", "200"),
    ("range", "10", "half"),
)
_REFUSED_ELEMENTS = (
    # what, HTML of an element with the id t
    ("a read-only field", "<input id=t value=old readonly>"),
    ("a read-only text area", "<textarea id=t readonly>old</textarea>"),
    ("a disabled field", "<input id=t value=old disabled>"),
    ("a disabled text area", "<textarea id=t disabled>old</textarea>"),
    ("a field in a disabled fieldset", "<fieldset disabled><input id=t value=old></fieldset>"),
    ("a field with aria-disabled", "<input id=t value=old aria-disabled=true>"),
    ("a field with aria-readonly", "<input id=t value=old aria-readonly=true>"),
    ("an inert field", "<div inert><input id=t value=old></div>"),
    ("a disabled date field", "<input id=t type=date value=2020-01-02 disabled>"),
    ("a read-only date field", "<input id=t type=date value=2020-01-02 readonly>"),
    ("a disabled colour field", "<input id=t type=color value=#123456 disabled>"),
    ("a disabled range", "<input id=t type=range value=10 disabled>"),
    ("a button input", "<input id=t type=button value=old>"),
    ("a submit input", "<form><input id=t type=submit value=old></form>"),
    ("a reset input", "<form><input id=t type=reset value=old></form>"),
    ("an image input", "<form><input id=t type=image alt=old></form>"),
    ("a button", "<button id=t>old</button>"),
    ("a checkbox", "<input id=t type=checkbox>"),
    ("a radio button", "<input id=t type=radio>"),
    ("a file input", "<input id=t type=file>"),
    ("a select", "<select id=t><option>old<option>new</select>"),
    ("a link", "<a id=t href='#x'>old</a>"),
    ("a paragraph", "<p id=t>old</p>"),
    ("a heading that can have the focus", "<h1 id=t tabindex=0>old</h1>"),
    ("a div with the role textbox", "<div id=t role=textbox tabindex=0>old</div>"),
    (
        "an island without editing in an editor",
        "<div id=e contenteditable>a <b id=t contenteditable=false>old</b></div>",
    ),
)
_HIDDEN_ELEMENTS = (
    ("a hidden input", "<input id=t type=hidden value=old>"),
    ("a field without display", "<input id=t value=old style='display:none'>"),
    ("a field in a closed details element", "<details id=d><summary>more</summary><input id=t value=old></details>"),
    ("an invisible field", "<input id=t value=old style='visibility:hidden'>"),
)

TRACKER = """<script>
// What React does with its inputs (react-dom 18, inputValueTracking): a property on the element itself records what
// scripts assign, and an event whose value equals the record changes no state.
function track(element, key) {
  const property = 'checked' in element && /checkbox|radio/.test(element.type) ? 'checked' : 'value'
  const inherited = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(element), property)
  let recorded = '' + element[property]
  Object.defineProperty(element, property, {
    configurable: true,
    get() { return inherited.get.call(this) },
    set(value) { recorded = '' + value; inherited.set.call(this, value) },
  })
  app[key] = element[property]
  const update = () => {
    const now = '' + inherited.get.call(element)
    if (now === recorded) return
    recorded = now
    app[key] = element[property]
  }
  for (const kind of ['input', 'change', 'click']) element.addEventListener(kind, update)
}
</script>"""


def _refused(what: str, html: str, code: str) -> Row:
    return Row(
        id=f"fill refuses {what}",
        html=f"{_OTHER}{html}",
        before=(("focus", "#other"),),
        argv=("fill", "#t", "SECRET"),
        code=code,
        active="other",
    )


ROWS = (
    *(
        Row(
            id=f"fill replaces the value of an input of type {kind} with {text}",
            html=f"<input id=t type={kind} value={'1' if kind == 'number' else 'old'}>{_OTHER}",
            argv=("fill", "#t", text),
            values={"t": value},
            data={"filled": "#t", "value": value},
            log=("input@t",),
        )
        for kind, text, value in _ACCEPTED
    ),
    *(
        Row(
            id=f"fill sets an input of type {kind} to {text}",
            html=f"<input id=t type={kind} value={old}>{_OTHER}",
            argv=("fill", "#t", text),
            values={"t": value},
            data={"filled": "#t", "value": value},
            log=("input@t!", "change@t!"),
        )
        for kind, old, text, value in _SET
    ),
    *(
        Row(
            id=f"fill refuses {text} for an input of type {kind}",
            html=f"<input id=t type={kind} value={old}>{_OTHER}",
            argv=("fill", "#t", text),
            code="COMMAND_FAILED",
            names=(kind,),
        )
        for kind, old, text in _REJECTED
    ),
    *(_refused(what, html, "NOT_EDITABLE") for what, html in _REFUSED_ELEMENTS),
    *(_refused(what, html, "NOT_EDITABLE") for what, html in _HIDDEN_ELEMENTS),
    Row(
        id="fill sets a password field and does not answer with the password",
        html=f"<input id=t type=password>{_OTHER}",
        argv=("fill", "#t", "s3cret-word"),
        values={"t": "s3cret-word"},
        lacks=("s3cret-word",),
    ),
    Row(
        id="fill names the largest value of a range that is too small for the text",
        html="<input id=t type=range min=0 max=50 value=10>",
        argv=("fill", "#t", "51"),
        code="COMMAND_FAILED",
        names=("50",),
    ),
    Row(
        id="fill refuses a value between two steps of a range",
        html="<input id=t type=range min=0 max=100 step=10 value=10>",
        argv=("fill", "#t", "33"),
        code="COMMAND_FAILED",
        names=("10",),
    ),
    *(
        Row(
            id=f"fill with an empty text empties {what}",
            html=html + _OTHER,
            argv=("fill", "#t", ""),
            values={"t": ""},
            data={"value": ""},
        )
        for what, html in (
            ("a text field", "<input id=t value=old>"),
            ("a text area", "<textarea id=t>old</textarea>"),
            ("a number field", "<input id=t type=number value=5>"),
            ("a date field", "<input id=t type=date value=2020-01-02>"),
            ("an editable element", "<div id=t contenteditable>old</div>"),
        )
    ),
    Row(
        id="fill with an empty text leaves an empty field empty",
        html=f"<input id=t>{_OTHER}",
        argv=("fill", "#t", ""),
        data={"value": ""},
    ),
    Row(
        id="fill keeps the line breaks of a text area",
        html=f"<textarea id=t>old</textarea>{_OTHER}",
        argv=("fill", "#t", "one\n\ntwo"),
        values={"t": "one\n\ntwo"},
        data={"value": "one\n\ntwo"},
    ),
    Row(
        id="fill inserts quotes, markup and other scripts unchanged",
        html=f"<input id=t value=old>{_OTHER}",
        argv=("fill", "#t", "\"'<b>\\n</b>${1} Ünïcödé 日本 🙂"),
        values={"t": "\"'<b>\\n</b>${1} Ünïcödé 日本 🙂"},
    ),
    Row(
        id="fill replaces the text of an editable element",
        html=f"<div id=t contenteditable>old <b>bold</b></div>{_OTHER}",
        argv=("fill", "#t", "new"),
        values={"t": "new"},
        log=("input@t",),
    ),
    Row(
        id="fill replaces several paragraphs of an editor",
        html=f"<div id=t contenteditable><p>one</p><p>two</p><ul><li>three</li></ul></div>{_OTHER}",
        argv=("fill", "#t", "new"),
        values={"t": "new"},
    ),
    Row(
        id="fill replaces the text of an editable element without formatting",
        html=f"<div id=t contenteditable=plaintext-only>old</div>{_OTHER}",
        argv=("fill", "#t", "new"),
        values={"t": "new"},
    ),
    Row(
        id="fill keeps to the length that a field allows",
        html=f"<input id=t value=old maxlength=3>{_OTHER}",
        argv=("fill", "#t", "abcdef"),
        code="COMMAND_FAILED",
        names=("3",),
    ),
    Row(
        id="fill fills a field up to the length that it allows",
        html=f"<input id=t value=old maxlength=3>{_OTHER}",
        argv=("fill", "#t", "abc"),
        values={"t": "abc"},
    ),
    Row(
        id="fill sets a value against the pattern of the field, as a person can",
        html=f"<input id=t value=old pattern='[0-9]+'>{_OTHER}",
        argv=("fill", "#t", "abc"),
        values={"t": "abc"},
    ),
    Row(
        id="fill answers with the value that the page made of the text",
        html=f"<input id=t oninput='this.value = this.value.toUpperCase()'>{_OTHER}",
        argv=("fill", "#t", "abc"),
        values={"t": "ABC"},
        data={"value": "ABC"},
    ),
    Row(
        id="fill answers with the number that the page formatted",
        html=f"<input id=t oninput=\"this.value = this.value.replace(/(\\d)(?=(\\d{{3}})+$)/g, '$1,')\">{_OTHER}",
        argv=("fill", "#t", "1234567"),
        values={"t": "1,234,567"},
        data={"value": "1,234,567"},
    ),
    Row(
        id="fill fails when the page refuses the text",
        html=f"<input id=t value=old onbeforeinput='event.preventDefault()'>{_OTHER}",
        argv=("fill", "#t", "abc"),
        code="COMMAND_FAILED",
        never=("input",),
        active="t",
    ),
    Row(
        id="fill fails when the page restores the old value",
        html=f"<input id=t value=old oninput=\"this.value = 'old'\">{_OTHER}",
        argv=("fill", "#t", "abc"),
        code="COMMAND_FAILED",
        log=("input@t",),
        active="t",
    ),
    *(
        Row(
            id=f"fill updates the state of an application that tracks {what}",
            html=f"{TRACKER}{html}{_OTHER}<script>track(t, 'state')</script>",
            argv=("fill", "#t", text),
            values={"t": text},
            app={"state": text},
        )
        for what, html, text in (
            ("a text field", "<input id=t value=old>", "new"),
            ("a text field that becomes empty", "<input id=t value=old>", ""),
            ("a text area", "<textarea id=t>old</textarea>", "new"),
            ("a date field", "<input id=t type=date value=2020-01-02>", "2026-12-24"),
            ("a date field that becomes empty", "<input id=t type=date value=2020-01-02>", ""),
            ("a range", "<input id=t type=range value=10>", "70"),
            ("a colour field", "<input id=t type=color value=#000000>", "#ff8800"),
            ("a number field", "<input id=t type=number value=1>", "42"),
        )
    ),
    Row(
        id="fill does not write into a field that takes the focus",
        html="<input id=t value=old onfocus='other.focus()'><input id=other value=keep>",
        argv=("fill", "#t", "SECRET"),
        code="COMMAND_FAILED",
        active="other",
    ),
    Row(
        id="fill does not write into a field that takes the focus a moment later",
        html="<input id=t value=old onfocus='Promise.resolve().then(() => other.focus())'><input id=other value=keep>",
        argv=("fill", "#t", "SECRET"),
        values={"t": "SECRET"},
        may_fail="COMMAND_FAILED",
        active="other",
    ),
    Row(
        id="fill of a date does not change a field that takes the focus",
        html="<input id=t type=date value=2020-01-02 onfocus='other.focus()'><input id=other value=keep>",
        argv=("fill", "#t", "2026-12-24"),
        values={"t": "2026-12-24"},
        may_fail="COMMAND_FAILED",
        active="other",
    ),
    Row(
        id="fill survives a page that replaces the field when it gets the focus",
        html="""<div id=place><input id=t value=old></div><input id=other value=keep><script>
        t.onfocus = () => { const copy = t.cloneNode(); t.replaceWith(copy) }</script>""",
        argv=("fill", "#t", "new"),
        values={"t": "new"},
        may_fail="ELEMENT_GONE",
        active="body",
    ),
    Row(
        id="fill reaches a field that the page renders again at each input",
        html="""<div id=place><input id=t value=old></div><input id=other value=keep><script>
        place.oninput = event => { app.state = event.target.value; const copy = document.createElement('input')
          copy.id = 't'; copy.value = app.state; event.target.replaceWith(copy) }</script>""",
        argv=("fill", "#t", "new"),
        values={"t": "new"},
        app={"state": "new"},
    ),
    Row(
        id="fill scrolls to a field below the window",
        html=f"<div style='height:3000px'></div><input id=t value=old>{_OTHER}",
        argv=("fill", "#t", "new"),
        values={"t": "new"},
    ),
    Row(
        id="fill finds a field by its role and name",
        html=f"<label>City <input id=t value=old></label>{_OTHER}",
        argv=("fill", "role=textbox name=City", "new"),
        values={"t": "new"},
    ),
    Row(
        id="fill takes a field by XPath",
        html=f"<label>City <input id=t value=old></label>{_OTHER}",
        argv=("fill", "xpath=//label[contains(., 'City')]/input", "new"),
        values={"t": "new"},
    ),
    Row(
        id="fill of an unknown field is an error",
        html=_OTHER,
        argv=("fill", "#t", "SECRET"),
        code="ELEMENT_NOT_FOUND",
    ),
)
