"""Rows of `click`: what a click changes, and how the answer names it."""

from __future__ import annotations

from support.truth import Ref, Row

_CLICKED = ("mousedown@t", "mouseup@t", "click@t")
_TALL = "<div style='height:3000px'></div>"
_COVER = "<div id=cover style='position:fixed;inset:0;{style}'>{text}</div>"

ROWS = (
    Row(
        id="click tells that nothing changed",
        html="<button id=t>Go</button>",
        argv=("click", "#t"),
        log=_CLICKED,
        data={"clicked": "#t", "changed": False},
    ),
    Row(
        id="click tells that nothing changed on a page with a clock",
        html="<button id=t>Go</button><p id=p></p><script>setInterval(() => { p.textContent = Date.now() }, 50)</script>",
        before=(("wait", 600),),
        argv=("click", "#t"),
        log=_CLICKED,
        data={"changed": False},
    ),
    *(
        Row(
            id=f"click tells that {what}",
            html=f"<button id=t>Go</button><p id=p>text</p><script>t.onclick = () => {{ {code} }}</script>",
            argv=("click", "#t"),
            log=_CLICKED,
            data={"clicked": "#t", "changed": True},
        )
        for what, code in (
            ("text changed", "p.textContent = 'new'"),
            ("text changed after 60 ms", "setTimeout(() => { p.textContent = 'new' }, 60)"),
            ("an element was added", "document.body.append(document.createElement('hr'))"),
            ("an element was hidden", "p.hidden = true"),
            ("a class changed", "p.className = 'red'"),
            ("the address changed without a new document", "history.pushState({}, '', '#there')"),
            ("a menu opened", "p.setAttribute('aria-expanded', 'true')"),
        )
    ),
    Row(
        id="click tells that a checkbox changed",
        html="<input id=t type=checkbox>",
        argv=("click", "#t"),
        values={"t": True},
        data={"changed": True},
    ),
    Row(
        id="click tells that a details element opened",
        html="<details id=d><summary id=t>more</summary>text</details>",
        argv=("click", "#t"),
        values={"d": True},
        data={"changed": True},
    ),
    Row(
        id="click succeeds when the button removes itself",
        html="<button id=t onclick='this.remove()'>Go</button>",
        argv=("click", "#t"),
        log=_CLICKED,
        data={"changed": True},
    ),
    Row(
        id="click succeeds when the button removes itself at mousedown and the page counts that as its click",
        html="<button id=t onmousedown=\"note('done'); this.remove()\">Go</button>",
        argv=("click", "#t"),
        log=("note@done",),
        may_fail="COMMAND_FAILED",
    ),
    Row(
        id="click succeeds when a handler stops the event",
        html="""<button id=t>Go</button><script>
        for (const kind of ['mousedown', 'mouseup', 'click']) t.addEventListener(kind, event => {
          event.preventDefault(); event.stopImmediatePropagation(); if (kind === 'click') note('done') }, true)</script>""",
        argv=("click", "#t"),
        log=("note@done",),
    ),
    Row(
        id="click succeeds when the page stops the event at the window",
        html="""<button id=t>Go</button><script>
        addEventListener('click', event => { event.stopImmediatePropagation(); note('done') }, true)</script>""",
        argv=("click", "#t"),
        log=("note@done",),
    ),
    Row(
        id="click on a label changes its checkbox",
        html="<label id=l>Box <input id=t type=checkbox></label>",
        argv=("click", "#l"),
        values={"t": True},
    ),
    Row(
        id="click on a label moves the focus to its field",
        html="<label id=l for=t>Box</label> <input id=t>",
        argv=("click", "#l"),
        active="t",
    ),
    Row(
        id="click on a submit button submits the form",
        html="<form id=f onsubmit='event.preventDefault()'><input id=i required value=x><button id=t>Go</button></form>",
        argv=("click", "#t"),
        log=("click@t", "submit@f"),
    ),
    Row(
        id="click on an option-like button of a menu closes the menu",
        html="<div id=m><button id=t onclick='m.hidden = true'>Go</button></div>",
        argv=("click", "#t"),
        log=_CLICKED,
        data={"changed": True},
    ),
    Row(
        id="click follows a link and tells the new page",
        html="<a id=t href='SAME/next'>Go</a>",
        pages={"next": "<p>arrived</p>"},
        argv=("click", "#t"),
        log=("click@/t",),
        ends_on="next",
        data={"title": "next"},
    ),
    Row(
        id="click follows a link to another site and tells the new page",
        html="<a id=t href='CROSS/next'>Go</a>",
        pages={"next": "<p>arrived</p>"},
        argv=("click", "#t"),
        ends_on="next",
        data={"title": "next"},
    ),
    Row(
        id="click tells the new page of a script that leaves after 50 ms",
        html="<button id=t onclick=\"setTimeout(() => { location.href = 'SAME/next' }, 50)\">Go</button>",
        pages={"next": "<p>arrived</p>"},
        argv=("click", "#t"),
        ends_on="next",
        data={"title": "next"},
    ),
    Row(
        id="click submits a form to another page",
        html="<form action='SAME/next'><input id=q name=q value=x><button id=t>Go</button></form>",
        pages={"next": "<p>arrived</p>"},
        argv=("click", "#t"),
        ends_on="next",
        data={"title": "next"},
    ),
    Row(
        id="click leaves the page at mousedown",
        html="<button id=t onmousedown=\"location.href = 'SAME/next'\">Go</button>",
        pages={"next": "<p>arrived</p>"},
        argv=("click", "#t"),
        ends_on="next",
        data={"title": "next"},
    ),
    Row(
        id="click tells that a tab opened",
        html="<a id=t target=_blank href='SAME/next'>Go</a>",
        pages={"next": "<p>arrived</p>"},
        argv=("click", "#t"),
        log=_CLICKED,
        note="tab",
    ),
    Row(
        id="click tells that a dialog opened",
        html="<button id=t onclick=\"note(confirm('sure?'))\">Go</button>",
        argv=("click", "#t"),
        after=(("dialog", "accept"),),
        log=("note@true",),
        note="dialog",
    ),
    Row(
        id="click moves the focus to a field and tells it",
        html="<button id=t onclick='i.focus()'>Go</button><input id=i aria-label=City>",
        argv=("click", "#t"),
        log=_CLICKED,
        active="i",
    ),
    Row(
        id="click on a button by ref",
        html="<button id=a>Go</button><button id=t>Go</button>",
        argv=("click", Ref("button", "Go", 1)),
        log=_CLICKED,
    ),
    Row(
        id="click by XPath",
        html="<button id=a>Other</button><button id=t>Go</button>",
        argv=("click", "//button[. = 'Go']"),
        log=_CLICKED,
    ),
    Row(
        id="click on the area of an image map",
        html="""<img usemap='#m' width=200 height=100 src='data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA='>
        <map name=m><area id=a shape=rect coords='0,0,100,100' href='#a' alt=Left>
        <area id=t shape=rect coords='100,0,200,100' href='#b' alt=Right></map>""",
        argv=("click", "#t"),
        log=_CLICKED,
    ),
)
