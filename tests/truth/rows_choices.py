"""Rows of `check`, `uncheck` and `select`."""

from __future__ import annotations

from support.truth import Row
from truth.rows_fill import TRACKER

_CUSTOM = """<div id=t role={role} tabindex=0 aria-checked={state} aria-label=Box>box</div><script>
t.onclick = () => t.setAttribute('aria-checked', t.getAttribute('aria-checked') !== 'true')</script>"""
_COVERED_LABEL = """<style>#t {{ {style} }}</style><label id=l><input id=t type=checkbox> Box</label>"""
_HIDDEN_STYLES = (
    ("transparent", "opacity: 0; position: absolute"),
    ("clipped", "position: absolute; width: 1px; height: 1px; clip-path: inset(50%); overflow: hidden"),
    ("not displayed", "display: none"),
    ("off the page", "position: absolute; left: -9999px"),
    ("of no size", "appearance: none; width: 0; height: 0; margin: 0; border: 0"),
)

_CHECK_ROWS = (
    Row(
        id="check checks a checkbox",
        html="<input id=t type=checkbox>",
        argv=("check", "#t"),
        values={"t": True},
        log=("click@t", "input@t", "change@t"),
        data={"checked": "#t"},
    ),
    Row(
        id="uncheck unchecks a checkbox",
        html="<input id=t type=checkbox checked>",
        argv=("uncheck", "#t"),
        values={"t": False},
        log=("click@t", "input@t", "change@t"),
        data={"unchecked": "#t"},
    ),
    Row(
        id="check leaves a checked checkbox as it is",
        html="<input id=t type=checkbox checked>",
        argv=("check", "#t"),
        log=(),
    ),
    Row(
        id="uncheck leaves an unchecked checkbox as it is",
        html="<input id=t type=checkbox>",
        argv=("uncheck", "#t"),
        log=(),
    ),
    Row(
        id="check checks an indeterminate checkbox",
        html="<input id=t type=checkbox><script>t.indeterminate = true</script>",
        argv=("check", "#t"),
        values={"t": True},
    ),
    Row(
        id="check selects a radio button",
        html="<input id=a type=radio name=r checked><input id=t type=radio name=r>",
        argv=("check", "#t"),
        values={"a": False, "t": True},
    ),
    Row(
        id="uncheck fails for a selected radio button",
        html="<input id=t type=radio name=r checked>",
        argv=("uncheck", "#t"),
        code="COMMAND_FAILED",
    ),
    *(
        Row(
            id=f"check checks a {what} checkbox behind its label",
            html=_COVERED_LABEL.format(style=style),
            argv=("check", "#t"),
            values={"t": True},
        )
        for what, style in _HIDDEN_STYLES
    ),
    Row(
        id="uncheck unchecks a hidden checkbox behind a label that stands elsewhere",
        html="<input id=t type=checkbox checked style='display:none'><p>text</p><label for=t>Box</label>",
        argv=("uncheck", "#t"),
        values={"t": False},
    ),
    Row(
        id="check does not follow a link inside the label",
        html="""<label><input id=t type=checkbox style='opacity:0;position:absolute'>
        <a href='#terms' id=terms onclick="note('link')">Terms and conditions of the contract</a> accepted</label>""",
        argv=("check", "#t"),
        values={"t": True},
        never=("note",),
        may_fail="ELEMENT_COVERED",
    ),
    Row(
        id="check checks the checkbox of a label",
        html="<label id=l><input id=t type=checkbox> Box</label>",
        argv=("check", "#l"),
        values={"t": True},
    ),
    *(
        Row(
            id=f"check checks a custom element with the role {role}",
            html=_CUSTOM.format(role=role, state="false"),
            argv=("check", "#t"),
            values={"t": "true"},
            log=("click@t",),
        )
        for role in ("checkbox", "switch", "menuitemcheckbox", "radio", "menuitemradio")
    ),
    Row(
        id="uncheck unchecks a custom checkbox",
        html=_CUSTOM.format(role="checkbox", state="true"),
        argv=("uncheck", "#t"),
        values={"t": "false"},
    ),
    Row(
        id="check leaves a checked custom checkbox as it is",
        html=_CUSTOM.format(role="checkbox", state="true"),
        argv=("check", "#t"),
        log=(),
    ),
    Row(
        id="check brings a custom checkbox from mixed to checked",
        html=_CUSTOM.format(role="checkbox", state="mixed"),
        argv=("check", "#t"),
        values={"t": "true"},
    ),
    Row(
        id="check fails for a checkbox that refuses",
        html="<input id=t type=checkbox onclick='event.preventDefault()'>",
        argv=("check", "#t"),
        code="COMMAND_FAILED",
        log=("click@t",),
        active="t",
    ),
    Row(
        id="check fails for a custom checkbox that does not react",
        html="<div id=t role=checkbox tabindex=0 aria-checked=false>box</div>",
        argv=("check", "#t"),
        code="COMMAND_FAILED",
        log=("click@t",),
        active="t",
    ),
    Row(
        id="check fails for a checkbox that the page unchecks again",
        html="<input id=t type=checkbox onchange='this.checked = false'>",
        argv=("check", "#t"),
        code="COMMAND_FAILED",
        log=("change@t",),
        active="t",
    ),
    Row(
        id="check waits for a custom checkbox that changes a little later",
        html="""<div id=t role=checkbox tabindex=0 aria-checked=false>box</div><script>
        t.onclick = () => setTimeout(() => t.setAttribute('aria-checked', 'true'), 50)</script>""",
        argv=("check", "#t"),
        values={"t": "true"},
    ),
    Row(
        id="check refuses a disabled checkbox",
        html="<input id=t type=checkbox disabled>",
        argv=("check", "#t"),
        code="NOT_EDITABLE",
    ),
    Row(
        id="check refuses a custom checkbox that is disabled",
        html="<div id=t role=checkbox aria-disabled=true aria-checked=false>box</div>",
        argv=("check", "#t"),
        code="NOT_EDITABLE",
    ),
    Row(
        id="check refuses a checkbox in a disabled fieldset",
        html="<fieldset disabled><input id=t type=checkbox></fieldset>",
        argv=("check", "#t"),
        code="NOT_EDITABLE",
    ),
    Row(
        id="check refuses a text field",
        html="<input id=t value=old>",
        argv=("check", "#t"),
        code="NOT_EDITABLE",
    ),
    Row(
        id="check refuses a button",
        html="<button id=t>old</button>",
        argv=("check", "#t"),
        code="NOT_EDITABLE",
    ),
    Row(
        id="check refuses a covered checkbox",
        html="<input id=t type=checkbox><div id=cover style='position:fixed;inset:0;background:gray'>wait</div>",
        argv=("check", "#t"),
        code="ELEMENT_COVERED",
        names=("cover",),
    ),
    Row(
        id="check updates the state of an application that tracks a checkbox",
        html=f"{TRACKER}<input id=t type=checkbox><script>track(t, 'state')</script>",
        argv=("check", "#t"),
        values={"t": True},
        app={"state": True},
    ),
    Row(
        id="check scrolls to a checkbox inside a scroll box",
        html="""<div id=box class=box style='height:80px;overflow:auto'><div style='height:900px'></div>
        <input id=t type=checkbox></div>""",
        argv=("check", "#t"),
        values={"t": True},
    ),
)

_FRUIT = "<option value=a>Apple<option value=b>Banana<option value=c disabled>Cherry<option value=d>Apple pie"
_SELECT_ROWS = (
    Row(
        id="select selects an option by its value",
        html=f"<select id=t>{_FRUIT}</select>",
        argv=("select", "#t", "b"),
        values={"t": "b"},
        log=("input@t!", "change@t!"),
        data={"selected": ["b"]},
    ),
    Row(
        id="select selects an option by its label",
        html=f"<select id=t>{_FRUIT}</select>",
        argv=("select", "#t", "Apple pie"),
        values={"t": "d"},
        data={"selected": ["d"]},
    ),
    Row(
        id="select selects an option whose label has white space",
        html="<select id=t><option value=a>Apple<option value=b>\n  Banana \n split\n </select>",
        argv=("select", "#t", "Banana split"),
        values={"t": "b"},
    ),
    Row(
        id="select takes a value before the label of another option",
        html="<select id=t><option value=x>one<option value=two>x<option value=one>three</select>",
        argv=("select", "#t", "one"),
        values={"t": "one"},
    ),
    Row(
        id="select selects several options",
        html=f"<select id=t multiple>{_FRUIT}</select>",
        argv=("select", "#t", "a", "Banana"),
        values={"t": ["a", "b"]},
        data={"selected": ["a", "b"]},
        log=("input@t!", "change@t!"),
    ),
    Row(
        id="select replaces the options of a multiple select",
        html="<select id=t multiple><option selected>a<option>b<option selected>c</select>",
        argv=("select", "#t", "b"),
        values={"t": ["b"]},
    ),
    Row(
        id="select selects in a list box",
        html=f"<select id=t size=4>{_FRUIT}</select>",
        argv=("select", "#t", "b"),
        values={"t": "b"},
    ),
    Row(
        id="select updates the state of an application that tracks a select",
        html=f"{TRACKER}<select id=t>{_FRUIT}</select><script>track(t, 'state')</script>",
        argv=("select", "#t", "b"),
        values={"t": "b"},
        app={"state": "b"},
    ),
    Row(
        id="select takes a select by its role and name",
        html=f"<label>Fruit <select id=t>{_FRUIT}</select></label>",
        argv=("select", "role=combobox name=Fruit", "b"),
        values={"t": "b"},
    ),
    Row(
        id="select takes the selected option again",
        html=f"<select id=t>{_FRUIT}</select>",
        argv=("select", "#t", "a"),
        data={"selected": ["a"]},
    ),
    *(
        Row(id=f"select refuses {what}", html=html, argv=("select", "#t", *options), code=code, names=names)
        for what, html, options, code, names in (
            (
                "an unknown option and lists those that exist",
                f"<select id=t>{_FRUIT}</select>",
                ("z",),
                "COMMAND_FAILED",
                ("Banana",),
            ),
            ("a disabled option", f"<select id=t>{_FRUIT}</select>", ("c",), "COMMAND_FAILED", ()),
            (
                "an option of a disabled group",
                "<select id=t><option>a<optgroup disabled label=g><option>b</select>",
                ("b",),
                "COMMAND_FAILED",
                (),
            ),
            ("two options for a single choice", f"<select id=t>{_FRUIT}</select>", ("a", "b"), "COMMAND_FAILED", ()),
            (
                "a known option beside an unknown one",
                f"<select id=t multiple>{_FRUIT}</select>",
                ("a", "z"),
                "COMMAND_FAILED",
                (),
            ),
            ("a disabled select", f"<select id=t disabled>{_FRUIT}</select>", ("b",), "NOT_EDITABLE", ()),
            ("a text field", "<input id=t value=old>", ("b",), "NOT_EDITABLE", ()),
            (
                "a list of a custom component",
                "<div id=t role=listbox><div role=option>b</div></div>",
                ("b",),
                "NOT_EDITABLE",
                (),
            ),
        )
    ),
    Row(
        id="select fails when the page restores the old option",
        html=f"<select id=t onchange='this.value = \"a\"'>{_FRUIT}</select>",
        argv=("select", "#t", "b"),
        code="COMMAND_FAILED",
        log=("change@t!",),
        active="t",
    ),
)

ROWS = (*_CHECK_ROWS, *_SELECT_ROWS)
