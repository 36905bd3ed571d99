"""Rows about frames and shadow roots."""

from __future__ import annotations

from support.truth import Ref, Row

_TALL = "<div style='height:2000px'></div>"
_CONTROLS = (
    "<button id=t>Go</button><input id=i aria-label=City value=old>"
    "<input id=c type=checkbox aria-label=Box><select id=s aria-label=Fruit><option>a<option>b</select>"
)
_INNER = (
    "<input id=top value=keep><p>some text</p><iframe src='{where}/inner' style='margin:30px' title=Inner></iframe>"
)
_CLICKED = ("mousedown@inner/t", "mouseup@inner/t", "click@inner/t")
_KINDS = (
    # what, where the page in the frame is
    ("a frame of the same origin", "SAME"),
    ("a frame of the same site and another port", "PORT"),
    ("a frame of another site", "CROSS"),
)
_NESTED = (
    ("a frame of another site in one of the same origin", "SAME", "CROSS"),
    ("a frame of the same origin in one of another site", "CROSS", "SAME"),
    ("a frame of another port in one of another site", "CROSS", "PORT"),
    ("a frame of its own site in a frame of another site", "CROSS", "CROSS"),
)


def _in_frame(where: str, what: str) -> tuple[Row, ...]:
    html = _INNER.format(where=where)
    frames = {"inner": _CONTROLS}
    return (
        Row(
            id=f"click hits a button in {what}",
            html=html,
            frames=frames,
            argv=("click", Ref("button", "Go")),
            log=_CLICKED,
        ),
        Row(
            id=f"click finds a button by role in {what}",
            html=html,
            frames=frames,
            argv=("click", "role=button name=Go"),
            log=_CLICKED,
        ),
        Row(
            id=f"dblclick hits a button in {what}",
            html=html,
            frames=frames,
            argv=("dblclick", Ref("button", "Go")),
            log=(*_CLICKED, *_CLICKED, "dblclick@inner/t"),
        ),
        Row(
            id=f"hover reaches an element in {what}",
            html=html,
            frames={"inner": "<button id=t onmouseover=\"note('in')\">Go</button>"},
            argv=("hover", Ref("button", "Go")),
            log=("note@inner/in",),
        ),
        Row(
            id=f"fill replaces the text of a field in {what}",
            html=html,
            frames=frames,
            argv=("fill", Ref("textbox", "City"), "new"),
            values={"inner/i": "new"},
            log=("input@inner/i",),
        ),
        Row(
            id=f"type appends to a field in {what}",
            html=html,
            frames=frames,
            argv=("type", Ref("textbox", "City"), "XY"),
            values={"inner/i": "oldXY"},
            log=("keydown:X@inner/i", "keydown:Y@inner/i"),
        ),
        Row(
            id=f"check checks a checkbox in {what}",
            html=html,
            frames=frames,
            argv=("check", Ref("checkbox", "Box")),
            values={"inner/c": True},
        ),
        Row(
            id=f"select selects an option in {what}",
            html=html,
            frames=frames,
            argv=("select", Ref("combobox", "Fruit"), "b"),
            values={"inner/s": "b"},
        ),
        Row(
            id=f"press goes to the field with the focus in {what}",
            html=html,
            frames=frames,
            before=(("focus", Ref("textbox", "City")), ("press", "End")),
            argv=("press", "x"),
            values={"inner/i": "oldx"},
        ),
        Row(
            id=f"click scrolls to a button in {what}, which has to scroll too",
            html=f"{_TALL}{html}",
            frames={"inner": f"{_TALL}<button id=t>Go</button>{_TALL}"},
            argv=("click", Ref("button", "Go")),
            log=_CLICKED,
        ),
        Row(
            id=f"click scrolls a box in {what}",
            html=html,
            frames={"inner": f"<div style='height:60px;overflow:auto'>{_TALL}<button id=t>Go</button></div>"},
            argv=("click", Ref("button", "Go")),
            log=_CLICKED,
        ),
        Row(
            id=f"click refuses a button in {what} under a cover of the page around it",
            html=f"{html}<div id=cover style='position:fixed;inset:0;background:gray'>wait</div>",
            frames=frames,
            argv=("click", Ref("button", "Go")),
            code="ELEMENT_COVERED",
            names=("cover",),
        ),
        Row(
            id=f"click refuses a covered button in {what}",
            html=html,
            frames={"inner": "<button id=t>Go</button><div id=cover style='position:fixed;inset:0'>wait</div>"},
            argv=("click", Ref("button", "Go")),
            code="ELEMENT_COVERED",
            names=("cover",),
        ),
        Row(
            id=f"fill refuses a read-only field in {what} and leaves the focus where it is",
            html=html,
            frames={"inner": "<input id=i aria-label=City value=old readonly>"},
            before=(("focus", "#top"),),
            argv=("fill", Ref("textbox", "City"), "SECRET"),
            code="NOT_EDITABLE",
            active="top",
        ),
        Row(
            id=f"fill does not write into the page around {what} when it takes the focus",
            html=html.replace(
                "<p>", "<script>addEventListener('blur', () => top.document.getElementById('top').focus())</script><p>"
            ),
            frames={"inner": "<input id=i aria-label=City value=old onfocus='parent.focus()'>"},
            argv=("fill", Ref("textbox", "City"), "SECRET"),
            values={"inner/i": "SECRET"},
            may_fail="COMMAND_FAILED",
            may_touch=True,
        ),
        Row(
            id=f"click fails for a ref of {what} that shows another page now",
            html=html,
            frames=frames,
            pages={"other": _CONTROLS},
            script=f"document.querySelector('iframe').src = '{where}/other'",
            frames_later=("other",),
            argv=("click", Ref("button", "Go")),
            code="PAGE_CHANGED",
        ),
        Row(
            id=f"click fails for a ref of {what} that was removed",
            html=html,
            frames=frames,
            script="document.querySelector('iframe').remove()",
            frames_later=(),
            argv=("click", Ref("button", "Go")),
            code="PAGE_CHANGED",
        ),
        Row(
            id=f"click at a point of a canvas in {what}",
            html=html,
            frames={
                "inner": "<canvas id=t role=img aria-label=Board width=100 height=80></canvas><script>"
                "t.onclick = event => note(event.offsetX + ',' + event.offsetY)</script>"
            },
            argv=("click", "--at", "33,22", "role=img name=Board"),
            log=("note@inner/33,22",),
        ),
        Row(
            id=f"click tells that text changed in {what}",
            html=html,
            frames={"inner": "<button id=t onclick=\"p.textContent = 'new'\">Go</button><p id=p>old</p>"},
            argv=("click", Ref("button", "Go")),
            log=_CLICKED,
            data={"changed": True},
        ),
    )


def _in_nested_frame(what: str, outer: str, inner: str) -> tuple[Row, ...]:
    html = f"<input id=top value=keep><iframe src='{outer}/middle' width=500 height=300 style='margin:20px'></iframe>"
    middle = (
        f"<p>text</p><input id=m value=keep><iframe src='{inner}/inner' style='border:5px solid;margin:15px'></iframe>"
    )
    return (
        Row(
            id=f"click hits a button in {what}",
            html=html,
            frames={"middle": middle, "inner": _CONTROLS},
            argv=("click", Ref("button", "Go")),
            log=_CLICKED,
        ),
        Row(
            id=f"fill replaces the text of a field in {what}",
            html=html,
            frames={"middle": middle, "inner": _CONTROLS},
            argv=("fill", Ref("textbox", "City"), "new"),
            values={"inner/i": "new"},
        ),
        Row(
            id=f"click scrolls all pages around {what}",
            html=_TALL + html,
            frames={"middle": _TALL + middle, "inner": f"{_TALL}<button id=t>Go</button>{_TALL}"},
            argv=("click", Ref("button", "Go")),
            log=_CLICKED,
        ),
        Row(
            id=f"click refuses a button in {what} that the middle page covers",
            html=html,
            frames={"middle": f"{middle}<div id=cover style='position:fixed;inset:0'></div>", "inner": _CONTROLS},
            argv=("click", Ref("button", "Go")),
            code="ELEMENT_COVERED",
            names=("cover",),
        ),
    )


_SHADOW = """<div id=host style='display:inline-block'></div><script>
const root = host.attachShadow({{mode: '{mode}'}}); roots.push(root)
root.innerHTML = `{inside}`
for (const kind of ['mousedown', 'mouseup', 'click']) root.addEventListener(kind, event => note(kind + ' ' + event.target.id), true)
</script>"""
_IN_SHADOW = ("note@mousedown t", "note@mouseup t", "note@click t")
_SLOTTED = """<div id=host><button id=t slot=action>Go</button></div><script>
host.attachShadow({mode: 'open'}).innerHTML = '<p>before</p><div style="padding:20px"><slot name=action></slot></div>'</script>"""
_DEEP = """<div id=host></div><script>
const outer = host.attachShadow({mode: 'open'}); outer.innerHTML = '<section id=inner></section>'
const root = outer.getElementById('inner').attachShadow({mode: 'MODE'}); roots.push(root)
root.innerHTML = '<button id=t>Go</button>'
for (const kind of ['mousedown', 'mouseup', 'click']) root.addEventListener(kind, event => note(kind + ' ' + event.target.id), true)
</script>"""

_OTHER_ROWS = (
    Row(
        id="fill replaces the text of the editor by its ref",
        html="<div id=t contenteditable role=textbox aria-label=Body><p>one</p></div><input id=other value=keep>",
        argv=("fill", Ref("textbox", "Body"), "new"),
        values={"t": "new"},
    ),
    Row(
        id="fill replaces the text of an editable body in a frame",
        html="<iframe src='SAME/editor' title=Editor></iframe><input id=other value=keep>",
        frames={"editor": "<body id=t contenteditable aria-label=Letter role=textbox><p>one</p><p>two</p></body>"},
        argv=("fill", Ref("textbox", "Letter"), "new"),
        values={"editor/t": "new"},
    ),
    Row(
        id="fill writes into a field in a shadow root by ref",
        html="""<div id=host></div><input id=other value=keep><script>
        const root = host.attachShadow({mode: 'open'}); roots.push(root)
        root.innerHTML = '<label>City <input id=t value=old></label>'</script>""",
        argv=("fill", Ref("textbox", "City"), "new"),
        values={"t": "new"},
    ),
    Row(
        id="fill writes into a field in a closed shadow root by ref",
        html="""<div id=host></div><input id=other value=keep><script>
        const root = host.attachShadow({mode: 'closed'}); roots.push(root)
        root.innerHTML = '<label>City <input id=t value=old></label>'</script>""",
        argv=("fill", Ref("textbox", "City"), "new"),
        values={"t": "new"},
    ),
    Row(
        id="scroll moves a frame of another site",
        html="<iframe src='CROSS/inner' width=300 height=200></iframe>",
        frames={"inner": "<div style='height:3000px'><button>Go</button></div>"},
        argv=("scroll", "down", 150, "-s", Ref("button", "Go")),
        scrolls={"inner/page": (0, 150), "page": (0, 0)},
    ),
    Row(
        id="focus reaches a field in a shadow root by ref",
        html="""<div id=host></div><script>
        const root = host.attachShadow({mode: 'open'}); root.innerHTML = '<input id=t aria-label=City>'</script>""",
        argv=("focus", Ref("textbox", "City")),
        active="t",
    ),
    Row(
        id="check takes a custom checkbox by ref",
        html="""<div id=t role=checkbox tabindex=0 aria-checked=false aria-label=Box>box</div><script>
        t.onclick = () => t.setAttribute('aria-checked', 'true')</script>""",
        argv=("check", Ref("checkbox", "Box")),
        values={"t": "true"},
    ),
)

_SHADOW_ROWS = (
    *(
        row
        for mode in ("open", "closed")
        for row in (
            Row(
                id=f"click hits a button in a shadow root that is {mode}",
                html=_SHADOW.format(mode=mode, inside="<button id=t>Go</button>"),
                argv=("click", Ref("button", "Go")),
                log=_IN_SHADOW,
            ),
            Row(
                id=f"click finds a button by role in a shadow root that is {mode}",
                html=_SHADOW.format(mode=mode, inside="<button id=t>Go</button>"),
                argv=("click", "role=button name=Go"),
                log=_IN_SHADOW,
            ),
            Row(
                id=f"click refuses a covered button in a shadow root that is {mode}",
                html=_SHADOW.format(
                    mode=mode, inside="<button id=t>Go</button><div id=cover style='position:fixed;inset:0'></div>"
                ),
                argv=("click", Ref("button", "Go")),
                code="ELEMENT_COVERED",
            ),
            Row(
                id=f"check checks a checkbox in a shadow root that is {mode}",
                html=_SHADOW.format(mode=mode, inside="<input id=t type=checkbox aria-label=Box>"),
                argv=("check", Ref("checkbox", "Box")),
                values={"t": True},
            ),
            Row(
                id=f"select selects an option in a shadow root that is {mode}",
                html=_SHADOW.format(mode=mode, inside="<select id=t aria-label=Fruit><option>a<option>b</select>"),
                argv=("select", Ref("combobox", "Fruit"), "b"),
                values={"t": "b"},
            ),
            Row(
                id=f"type appends to a field in a shadow root that is {mode}",
                html=_SHADOW.format(mode=mode, inside="<input id=t aria-label=City value=old>"),
                argv=("type", Ref("textbox", "City"), "XY"),
                values={"t": "oldXY"},
            ),
            Row(
                id=f"click hits a button in a shadow root in a shadow root that is {mode}",
                html=_DEEP.replace("MODE", mode),
                argv=("click", Ref("button", "Go")),
                log=_IN_SHADOW,
            ),
        )
    ),
    Row(
        id="click hits an element in a slot",
        html=_SLOTTED,
        argv=("click", "#t"),
        log=("mousedown@t", "mouseup@t", "click@t"),
    ),
    Row(
        id="click hits an element in a slot by ref",
        html=_SLOTTED,
        argv=("click", Ref("button", "Go")),
        log=("mousedown@t", "mouseup@t", "click@t"),
    ),
    Row(
        id="click on the host of a shadow root hits what it shows",
        html=_SHADOW.format(mode="open", inside="<button id=t>Go</button>"),
        argv=("click", "#host"),
        log=("click@t",),
    ),
    Row(
        id="click on the host of a closed shadow root hits what it shows",
        html=_SHADOW.format(mode="closed", inside="<button id=t>Go</button>"),
        argv=("click", "#host"),
        log=("click@host",),
    ),
    Row(
        id="fill takes a host with one field in its shadow root for that field",
        html=_SHADOW.format(mode="open", inside="<input id=t value=old>") + "<input id=other value=keep>",
        argv=("fill", "#host", "new"),
        values={"t": "new"},
    ),
    Row(
        id="fill refuses a host with several fields in its shadow root",
        html=_SHADOW.format(mode="open", inside="<input id=t value=old><input id=u value=old>"),
        argv=("fill", "#host", "SECRET"),
        code="NOT_EDITABLE",
    ),
)

ROWS = (
    *(row for what, where in _KINDS for row in _in_frame(where, what)),
    *(row for what, outer, inner in _NESTED for row in _in_nested_frame(what, outer, inner)),
    *_SHADOW_ROWS,
    *_OTHER_ROWS,
)
