"""Rows of `scroll`, `select-text`, `get`, `is` and `find`."""

from __future__ import annotations

from support.truth import Row

_BOX = "<div id=box class=box style='height:100px;width:100px;overflow:auto'><div id=in style='height:500px;width:600px'>text</div></div>"
_PAGE = "<style>body { margin: 0; width: 3000px; height: 4000px }</style>"

_SCROLL_ROWS = (
    Row(
        id="scroll moves the page down and tells the position",
        html=_PAGE,
        argv=("scroll", "down", 300),
        scrolls={"page": (0, 300)},
        data={"scrolled": "down", "moved": 300, "position": 300, "of": "page"},
    ),
    Row(
        id="scroll moves the page up",
        html=f"{_PAGE}<p>text</p><script>scrollTo(0, 1000)</script>",
        argv=("scroll", "up", 300),
        scrolls={"page": (0, 700)},
        data={"moved": 300, "position": 700},
    ),
    Row(
        id="scroll moves the page right",
        html=_PAGE,
        argv=("scroll", "right", 120),
        scrolls={"page": (120, 0)},
        data={"moved": 120, "position": 120},
    ),
    Row(
        id="scroll moves the page left",
        html=f"{_PAGE}<p>text</p><script>scrollTo(500, 0)</script>",
        argv=("scroll", "left", 120),
        scrolls={"page": (380, 0)},
        data={"moved": 120, "position": 380},
    ),
    Row(
        id="scroll tells that the page did not move",
        html="<p>short</p>",
        argv=("scroll", "down", 300),
        scrolls={"page": (0, 0)},
        data={"moved": 0, "position": 0, "max": 0},
    ),
    Row(
        id="scroll stops at the end and tells how far it came",
        html=_BOX,
        argv=("scroll", "down", 10_000, "-s", "#box"),
        data={"moved": 415, "position": 415, "max": 415},
        scrolls={"box": (0, 415)},
    ),
    Row(
        id="scroll moves a box",
        html=_BOX,
        argv=("scroll", "down", 150, "-s", "#box"),
        scrolls={"box": (0, 150), "page": (0, 0)},
        data={"moved": 150, "position": 150},
    ),
    Row(
        id="scroll moves a box to the right",
        html=_BOX,
        argv=("scroll", "right", 150, "-s", "#box"),
        scrolls={"box": (150, 0)},
    ),
    Row(
        id="scroll moves the box around an element that cannot scroll",
        html=_BOX,
        argv=("scroll", "down", 150, "-s", "#in"),
        scrolls={"box": (0, 150), "page": (0, 0)},
    ),
    Row(
        id="scroll moves the page for an element without a scroll box",
        html=f"{_PAGE}<p id=t>text</p>",
        argv=("scroll", "down", 150, "-s", "#t"),
        scrolls={"page": (0, 150)},
    ),
    Row(
        id="scroll is done at once on a page with smooth scrolling",
        html=f"<style>html {{ scroll-behavior: smooth }}</style>{_PAGE}",
        argv=("scroll", "down", 900),
        scrolls={"page": (0, 900)},
        data={"position": 900},
    ),
    Row(
        id="scroll moves a box whose page hides the overflow of the body",
        html=f"<style>html, body {{ height: 100%; overflow: hidden }}</style>{_BOX}",
        argv=("scroll", "down", 150),
        scrolls={"box": (0, 150)},
    ),
    Row(
        id="scroll loads more of an endless list",
        html="""<div id=l></div><script>
        const more = () => { for (let i = 0; i < 20; i++) l.append(Object.assign(document.createElement('p'), {textContent: 'row'})) }
        more(); more(); addEventListener('scroll', () => { if (innerHeight + scrollY > document.body.scrollHeight - 50) { more(); note('more') } })
        </script>""",
        argv=("scroll", "down", 10_000),
        after=(("wait", 100),),
        log=("note@more",),
    ),
    Row(
        id="scroll fails for a missing element",
        html=_BOX,
        argv=("scroll", "down", 150, "-s", "#nothing"),
        code="ELEMENT_NOT_FOUND",
    ),
    Row(
        id="scroll moves a text area",
        html="<textarea id=t class=box rows=3 cols=20></textarea><script>t.value = 'line\\n'.repeat(100)</script>",
        argv=("scroll", "down", 40, "-s", "#t"),
        scrolls={"t": (0, 40)},
    ),
)

_TEXT_ROWS = (
    Row(
        id="select-text selects a part of a paragraph",
        html="<p id=t>The quick <b>brown</b> fox</p>",
        argv=("select-text", "#t", "quick brown"),
        selection="quick brown",
        data={"selected_text": "quick brown"},
    ),
    Row(
        id="select-text selects a whole element",
        html="<p>before</p><p id=t>The quick <b>brown</b> fox</p><p>after</p>",
        argv=("select-text", "#t"),
        selection="The quick brown fox",
    ),
    Row(
        id="select-text selects a part of a field",
        html="<input id=t value='The quick fox'>",
        argv=("select-text", "#t", "quick"),
        selection="quick",
        active="t",
    ),
    Row(
        id="select-text selects a part of a text area",
        html="<textarea id=t>The quick\nfox</textarea>",
        argv=("select-text", "#t", "quick"),
        selection="quick",
    ),
    Row(
        id="select-text selects text for the next key in an editor",
        html="<div id=t contenteditable>The quick fox</div>",
        before=(("select-text", "#t", "quick"),),
        argv=("press", "x"),
        values={"t": "The x fox"},
    ),
    Row(
        id="select-text fails for a text that the element does not have",
        html="<p id=t>The quick fox</p>",
        argv=("select-text", "#t", "slow"),
        code="COMMAND_FAILED",
        selection="",
    ),
    Row(
        id="select-text fails for text that cannot be selected",
        html="<p id=t style='user-select:none'>The quick fox</p>",
        argv=("select-text", "#t", "quick"),
        code="COMMAND_FAILED",
        may_fail="",
    ),
    Row(
        id="select-text tells the page that the selection changed",
        html="<p id=t>The quick fox</p><script>document.addEventListener('selectionchange', () => { app.seen = String(getSelection()) })</script>",
        argv=("select-text", "#t", "quick"),
        app={"seen": "quick"},
    ),
)

_GET_ROWS = (
    *(
        Row(id=f"get value reads {what}", html=html, argv=("get", "value", "#t"), data={"value": value})
        for what, html, value in (
            ("a text field", "<input id=t value=old><script>t.value = 'now'</script>", "now"),
            ("a text area", "<textarea id=t>one\ntwo</textarea>", "one\ntwo"),
            ("a select", "<select id=t><option value=a>Apple<option value=b selected>Banana</select>", "b"),
            ("a number field", "<input id=t type=number value=49.90>", "49.90"),
            ("a range", "<input id=t type=range value=30>", "30"),
            ("a date field", "<input id=t type=date value=2026-12-24>", "2026-12-24"),
            ("an editable element", "<div id=t contenteditable>old <b>bold</b></div>", "old bold"),
            ("a read-only field", "<input id=t value=old readonly>", "old"),
            ("a disabled field", "<input id=t value=old disabled>", "old"),
        )
    ),
    Row(
        id="get value does not give a password",
        html="<input id=t type=password value=s3cret-word>",
        argv=("get", "value", "#t"),
        code="COMMAND_FAILED",
        lacks=("s3cret-word",),
    ),
    Row(
        id="get value fails for an element without one",
        html="<p id=t>text</p>",
        argv=("get", "value", "#t"),
        code="COMMAND_FAILED",
    ),
    Row(
        id="get value reads the value of the page, not of a property that hides it",
        html="<input id=t value=old><script>Object.defineProperty(t, 'value', {get: () => 'fake'})</script>",
        argv=("get", "value", "#t"),
        data={"value": "old"},
    ),
    Row(
        id="get count counts elements",
        html="<p>1</p><p>2</p><p hidden>3</p>",
        argv=("get", "count", "p"),
        data={"count": 3},
    ),
    Row(id="get count counts none", html="<p>1</p>", argv=("get", "count", "b"), data={"count": 0}),
    Row(
        id="get attr reads an attribute",
        html="<a id=t href='/x?y=1'>Go</a>",
        argv=("get", "attr", "href", "#t"),
        data={"attr": "href", "value": "/x?y=1"},
    ),
    Row(
        id="get attr tells that an attribute is missing",
        html="<a id=t>Go</a>",
        argv=("get", "attr", "href", "#t"),
        data={"value": None},
    ),
    Row(
        id="get attr refuses an attribute outside of the list",
        html="<a id=t nonce=x>Go</a>",
        argv=("get", "attr", "nonce", "#t"),
        code="INVALID_ARGUMENTS",
    ),
    Row(
        id="get text reads what a person reads",
        html="<p id=t>one <b>two</b><span hidden>three</span></p>",
        argv=("get", "text", "#t"),
        data={"text": "one two"},
    ),
    Row(
        id="get text fails for a missing element",
        html="<p>one</p>",
        argv=("get", "text", "#t"),
        code="ELEMENT_NOT_FOUND",
    ),
)

_IS_ROWS = tuple(
    Row(
        id=f"is {question} is {answer} for {what}".lower(),
        html=html,
        argv=("is", question, "#t"),
        data={question: answer},
    )
    for question, answer, what, html in (
        ("visible", True, "a paragraph", "<p id=t>text</p>"),
        ("visible", False, "a hidden paragraph", "<p id=t hidden>text</p>"),
        ("visible", False, "an invisible paragraph", "<p id=t style='visibility:hidden'>text</p>"),
        ("visible", False, "an element without a size", "<p id=t style='width:0;height:0;overflow:hidden'>text</p>"),
        ("visible", True, "an element below the window", "<div style='height:3000px'></div><p id=t>text</p>"),
        (
            "visible",
            False,
            "the content of a closed details element",
            "<details><summary>s</summary><p id=t>text</p></details>",
        ),
        ("enabled", True, "a field", "<input id=t>"),
        ("enabled", False, "a disabled field", "<input id=t disabled>"),
        ("enabled", False, "a field in a disabled fieldset", "<fieldset disabled><input id=t></fieldset>"),
        ("enabled", False, "a button with aria-disabled", "<button id=t aria-disabled=true>Go</button>"),
        ("checked", True, "a checked checkbox", "<input id=t type=checkbox checked>"),
        ("checked", False, "a checkbox", "<input id=t type=checkbox>"),
        ("checked", True, "a custom checkbox that is checked", "<div id=t role=checkbox aria-checked=true>x</div>"),
        ("checked", False, "a custom switch", "<div id=t role=switch aria-checked=false>x</div>"),
        ("checked", True, "a selected radio button", "<input id=t type=radio checked>"),
    )
)

ROWS = (*_SCROLL_ROWS, *_TEXT_ROWS, *_GET_ROWS, *_IS_ROWS)
