"""Rows about refs and selectors: an act reaches the element that was named, or none."""

from __future__ import annotations

from support.truth import Ref, Row

_LIST = """<ul id=l></ul><script>
function show(...names) { l.innerHTML = names.map(name => `<li>${name} <button id=${name}>Delete</button></li>`).join('') }
l.onclick = event => note('delete ' + event.target.id); show('A')</script>"""
_CLICKED = ("mousedown@t", "mouseup@t", "click@t")
_GO = "<button id=t>Go</button>"

_REF_ROWS = (
    Row(
        id="drag takes refs",
        html="""<button id=a draggable=true>Card</button><button id=z style='margin:90px'>Goal</button><script>
        a.ondragstart = event => event.dataTransfer.setData('text/plain', 'cargo')
        z.ondragover = event => event.preventDefault()
        z.ondrop = event => note(event.dataTransfer.getData('text/plain'))</script>""",
        argv=("drag", Ref("button", "Card"), Ref("button", "Goal")),
        log=("drop@z", "note@cargo"),
    ),
    Row(
        id="click does not take the new row for the old one of a list that was rendered again",
        html=_LIST,
        script="show('B')",
        argv=("click", Ref("button", "Delete")),
        code="ELEMENT_GONE",
    ),
    Row(
        id="click does not take an equal row of a list that was rendered again",
        html=_LIST,
        script="show('A')",
        argv=("click", Ref("button", "Delete")),
        code="ELEMENT_GONE",
    ),
    Row(
        id="click does not take another row after the row was removed",
        html=_LIST.replace("show('A')</script>", "show('A', 'B', 'C')</script>"),
        script="A.parentNode.remove()",
        argv=("click", Ref("button", "Delete", 0)),
        code="ELEMENT_GONE",
    ),
    Row(
        id="click hits the same element after rows before it were removed",
        html=_LIST.replace("show('A')</script>", "show('A', 'B', 'C')</script>"),
        script="A.parentNode.remove()",
        argv=("click", Ref("button", "Delete", 1)),
        log=("note@delete B",),
    ),
    Row(
        id="click hits the same element after rows were sorted",
        html=_LIST.replace("show('A')</script>", "show('A', 'B', 'C')</script>"),
        script="l.append(A.parentNode)",
        argv=("click", Ref("button", "Delete", 0)),
        log=("note@delete A",),
    ),
    Row(
        id="click hits the same element after its name changed",
        html=_GO,
        script="t.textContent = 'Stop'",
        argv=("click", Ref("button", "Go")),
        log=_CLICKED,
    ),
    Row(
        id="click hits the same element after it moved into another parent",
        html=f"{_GO}<div id=d></div>",
        script="d.append(t)",
        argv=("click", Ref("button", "Go")),
        log=_CLICKED,
    ),
    *(
        Row(
            id=f"{command} fails for the ref of a removed element",
            html=html,
            script="t.remove()",
            argv=argv,
            code="ELEMENT_GONE",
        )
        for command, html, argv in (
            ("dblclick", _GO, ("dblclick", Ref("button", "Go"))),
            ("hover", _GO, ("hover", Ref("button", "Go"))),
            (
                "fill",
                "<input id=t aria-label=City><input id=other value=keep>",
                ("fill", Ref("textbox", "City"), "SECRET"),
            ),
            (
                "type",
                "<input id=t aria-label=City><input id=other value=keep>",
                ("type", Ref("textbox", "City"), "SECRET"),
            ),
            ("focus", "<input id=t aria-label=City><input id=other value=keep>", ("focus", Ref("textbox", "City"))),
            (
                "check",
                "<input id=t type=checkbox aria-label=Box><input type=checkbox id=u>",
                ("check", Ref("checkbox", "Box")),
            ),
            ("uncheck", "<input id=t type=checkbox checked aria-label=Box>", ("uncheck", Ref("checkbox", "Box"))),
            (
                "select",
                "<select id=t aria-label=Fruit><option>a<option>b</select>",
                ("select", Ref("combobox", "Fruit"), "b"),
            ),
            ("drag", f"{_GO}<button id=u>Goal</button>", ("drag", Ref("button", "Go"), Ref("button", "Goal"))),
            ("is visible", _GO, ("is", "visible", Ref("button", "Go"))),
            ("get text", _GO, ("get", "text", Ref("button", "Go"))),
            ("get value", "<input id=t aria-label=City value=old>", ("get", "value", Ref("textbox", "City"))),
            ("select-text", _GO, ("select-text", Ref("button", "Go"))),
        )
    ),
    Row(
        id="click fails for a ref of the page before",
        html=f"<a id=a href='SAME/next'>Next</a>{_GO}",
        pages={"next": _GO},
        before=(("click", "#a"),),
        argv=("click", Ref("button", "Go")),
        code="PAGE_CHANGED",
        starts_on="next",
    ),
    Row(
        id="fill fails for a ref of the page before, and writes nothing",
        html="<a id=a href='SAME/next'>Next</a><input aria-label=City>",
        pages={"next": "<input id=t aria-label=City value=old autofocus>"},
        before=(("click", "#a"),),
        argv=("fill", Ref("textbox", "City"), "SECRET"),
        code="PAGE_CHANGED",
        starts_on="next",
    ),
    Row(
        id="click fails for a ref of the same page before it was loaded again",
        html=_GO,
        before=(("reload",),),
        argv=("click", Ref("button", "Go")),
        code="PAGE_CHANGED",
    ),
    Row(
        id="click takes a ref after an address change within the document",
        html=_GO,
        script="history.pushState({}, '', '#there')",
        argv=("click", Ref("button", "Go")),
        log=_CLICKED,
    ),
    Row(
        id="click fails for a ref that no look gave",
        html=_GO,
        before=(("snapshot", "-i"),),
        argv=("click", "@e99999"),
        code="ELEMENT_NOT_FOUND",
    ),
    Row(
        id="click takes a ref after a look that failed",
        html=_GO,
        before=(("is", "visible", Ref("button", "Go")),),
        failing=(("snapshot", "-i", "-s", "#nothing"),),
        argv=("click", Ref("button", "Go")),
        log=_CLICKED,
    ),
)

_SELECTOR_ROWS = (
    Row(
        id="text= skips a hidden element with the same text",
        html=f"<p hidden>Go</p><button style='display:none'>Go</button>{_GO}",
        argv=("click", "text=Go"),
        log=_CLICKED,
    ),
    Row(
        id="text= finds a button by its accessible name alone",
        html="<button id=t aria-label=Search><svg width=20 height=20 style='pointer-events:none'></svg></button>",
        argv=("click", "text=Search"),
        log=_CLICKED,
    ),
    Row(
        id="text= finds text in the middle of a page",
        html="<p>one</p><p>two <b id=t>three</b> four</p>",
        argv=("click", "text=three"),
        log=_CLICKED,
    ),
    Row(
        id="text= takes quotes and brackets as text",
        html='<button id=t>Say "it\'s" [here] (now) \\ > ok</button>',
        argv=("click", 'text=Say "it\'s" [here] (now) \\ > ok'),
        log=_CLICKED,
    ),
    Row(
        id="text= fails for a text that the page does not have",
        html=_GO,
        argv=("click", "text=Nothing like it"),
        code="ELEMENT_NOT_FOUND",
    ),
    Row(
        id="text= takes the first of several buttons and notes it",
        html="<button id=t>Go</button><button id=b>Go</button><button>Going</button>",
        argv=("click", "text=Go"),
        log=_CLICKED,
        note="text=Go matches 2 elements",
    ),
    Row(
        id="role= takes the role and the whole name",
        html="<button id=a>Save all</button><button id=t>Save</button><a id=l href='#x'>Save</a>",
        argv=("click", "role=button name=Save"),
        log=_CLICKED,
    ),
    Row(
        id="role= takes a name with quotes",
        html='<button id=t>Say "it\'s" \\ now</button>',
        argv=("click", 'role=button name=Say "it\'s" \\ now'),
        log=_CLICKED,
    ),
    Row(
        id="role= takes the only element of a role without a name",
        html=f"<p>text</p>{_GO}",
        argv=("click", "role=button"),
        log=_CLICKED,
    ),
    Row(
        id="role= skips a hidden element with the same name",
        html=f"<button hidden>Go</button><button style='visibility:hidden'>Go</button>{_GO}",
        argv=("click", "role=button name=Go"),
        log=_CLICKED,
    ),
    Row(
        id="role= takes the first of several elements and notes it",
        html="<button id=t>Go</button><button id=b>Go</button>",
        argv=("click", "role=button name=Go"),
        log=_CLICKED,
        note="role=button name=Go matches 2 elements",
    ),
    Row(
        id="role= takes a part of a name and notes it",
        html="<button id=t>Save all changes</button><button id=b>Close</button>",
        argv=("click", "role=button name=Save all"),
        log=_CLICKED,
        note="Save all changes",
    ),
    Row(
        id="role= fails for a name that no element has",
        html=_GO,
        argv=("click", "role=button name=Stop"),
        code="ELEMENT_NOT_FOUND",
    ),
    Row(
        id="role= takes a name of a hundred characters",
        html=f"<button id=t aria-label='{'long ' * 18}end'>Go</button>",
        argv=("click", f"role=button name={'long ' * 18}end"),
        log=_CLICKED,
    ),
    Row(
        id="role= refuses a name of several thousand characters",
        html=f"<button id=t aria-label='{'long ' * 600}end'>Go</button>",
        argv=("click", f"role=button name={'long ' * 600}end"),
        code="INVALID_ARGUMENTS",
    ),
    Row(
        id="a CSS selector with several matches takes the first visible element, or is refused",
        html="<button class=x hidden>Go</button><button id=t class=x>Go</button>",
        argv=("click", ".x"),
        log=_CLICKED,
        may_fail="COMMAND_FAILED",
    ),
    Row(
        id="a CSS selector that is no selector is refused",
        html=_GO,
        argv=("click", "#t[[["),
        code="INVALID_ARGUMENTS",
    ),
    Row(
        id="an XPath that is none is refused",
        html=_GO,
        argv=("click", "//button[[["),
        code="INVALID_ARGUMENTS",
    ),
    Row(
        id="an XPath that gives text instead of an element is refused",
        html=_GO,
        argv=("click", "//button/text()"),
        code="ELEMENT_NOT_FOUND",
    ),
)

ROWS = (*_REF_ROWS, *_SELECTOR_ROWS)
