"""Rows with pages that try to make a success false: false geometry and values, swapped elements, stolen focus."""

from __future__ import annotations

from support.truth import Ref, Row

_CLICKED = ("mousedown@t", "mouseup@t", "click@t")
_COVER = "<div id=cover style='position:fixed;inset:0;opacity:0'></div>"
_BUTTONS = """<style>button { position: absolute; width: 120px; height: 40px; top: 50px }</style>
<button id=t style='left:20px' onclick="note('cancelled')">Cancel</button>
<button id=evil style='left:300px' onclick="note('deleted')">Delete</button>
<script>const swap = () => { [t.style.left, evil.style.left] = [evil.style.left, t.style.left] }</script>"""

_DOCUMENT_NAMES = (
    "querySelector querySelectorAll getElementById evaluate elementFromPoint elementsFromPoint activeElement body head "
    "documentElement readyState createRange createTreeWalker getSelection hasFocus getAnimations designMode defaultView "
    "scrollingElement location title URL cookie children nodeType addEventListener execCommand caretPositionFromPoint "
    "createElement forms all fullscreenElement pointerLockElement"
)
_ELEMENT_NAMES = (
    "isConnected getBoundingClientRect getClientRects checkVisibility matches closest contains getRootNode parentNode "
    "parentElement assignedSlot host shadowRoot ownerDocument nodeName localName tagName id className type value disabled "
    "readOnly labels control innerText textContent children querySelectorAll getAttribute hasAttribute scrollIntoView "
    "focus offsetWidth offsetHeight clientLeft isContentEditable inert style tabIndex nodeType attributes childNodes "
    "elementFromPoint addEventListener dispatchEvent click checked selected options cloneNode form"
)
_CLOBBERED_DOCUMENT = "".join(f"<img name={name} width=1 height=1>" for name in _DOCUMENT_NAMES.split())
_CLOBBERED_FORM = (
    "<form id=t style='display:block;width:300px;height:60px;background:silver'>{inside}"
    + "".join(f"<input type=hidden name={name}>" for name in _ELEMENT_NAMES.split())
    + "</form>"
)
_PATCHED = """<script>
// Every function of the page's own world that a script could call gives a false answer.
const fake = value => () => value
const box = {left: 900, top: 900, right: 990, bottom: 990, x: 900, y: 900, width: 90, height: 90}
Element.prototype.getBoundingClientRect = fake(box); Element.prototype.getClientRects = fake([box])
Element.prototype.checkVisibility = fake(true); Element.prototype.matches = fake(false)
Element.prototype.closest = fake(null); Node.prototype.contains = fake(true)
Element.prototype.scrollIntoView = fake(); HTMLElement.prototype.focus = fake()
Document.prototype.querySelectorAll = fake([]); Document.prototype.querySelector = fake(null)
Document.prototype.elementFromPoint = fake(document.documentElement); Document.prototype.evaluate = fake(null)
EventTarget.prototype.dispatchEvent = fake(true); EventTarget.prototype.addEventListener = fake()
Event.prototype.composedPath = fake([]); JSON.stringify = fake('"fake"'); JSON.parse = fake(null)
Array.prototype.map = fake([]); Array.prototype.filter = fake([]); Array.prototype.includes = fake(false)
Array.from = fake([]); Promise.prototype.then = function () { return this }; Function.prototype.call = fake()
Object.defineProperty(Object.prototype, 'problem', {get: fake('covered'), configurable: true})
Object.defineProperty(window, 'innerWidth', {get: fake(9)}); Object.defineProperty(window, 'innerHeight', {get: fake(9)})
window.getComputedStyle = fake({display: 'none', visibility: 'hidden'}); window.requestAnimationFrame = fake(0)
window.setTimeout = fake(0); window.MutationObserver = class { observe() {} disconnect() {} }
</script>"""

_FALSE_ANSWERS = (
    Row(
        id="click hits its target on a page that patched every function of its own world",
        html=f"<button id=t>Go</button>{_PATCHED}",
        argv=("click", "#t"),
        log=_CLICKED,
    ),
    Row(
        id="click finds a covered target on a page that patched every function of its own world",
        html=f"<button id=t>Go</button>{_COVER}{_PATCHED}",
        argv=("click", "#t"),
        code="ELEMENT_COVERED",
        names=("cover",),
    ),
    Row(
        id="click finds a hidden target on a page that calls it visible",
        html=f"<button id=t hidden>Go</button>{_PATCHED}",
        argv=("click", "#t"),
        code="COMMAND_FAILED",
    ),
    Row(
        id="fill writes into its field on a page that patched every function of its own world",
        html=f"<input id=t value=old><input id=other value=keep>{_PATCHED}",
        argv=("fill", "#t", "new"),
        values={"t": "new"},
        data={"value": "new"},
    ),
    Row(
        id="fill sets a date on a page that patched every function of its own world",
        html=f"<input id=t type=date value=2020-01-02>{_PATCHED}",
        argv=("fill", "#t", "2026-12-24"),
        values={"t": "2026-12-24"},
        log=("input@t!", "change@t!"),
    ),
    Row(
        id="fill does not believe a value that a getter of the page invents",
        html="""<input id=t value=old onbeforeinput='event.preventDefault()'><script>
        Object.defineProperty(t, 'value', {get: () => 'new', set() {}}) </script>""",
        argv=("fill", "#t", "new"),
        code="COMMAND_FAILED",
        never=("input",),
        active="t",
    ),
    Row(
        id="check does not believe a state that a getter of the page invents",
        html="""<input id=t type=checkbox onclick='event.preventDefault()'><script>
        Object.defineProperty(HTMLInputElement.prototype, 'checked', {get: () => true}) </script>""",
        argv=("check", "#t"),
        code="COMMAND_FAILED",
        never=("change",),
        active="t",
    ),
    Row(
        id="select does not believe a state that a getter of the page invents",
        html="""<select id=t onchange='this.selectedIndex = 0'><option>a<option>b</select><script>
        Object.defineProperty(t, 'value', {get: () => 'b'})</script>""",
        argv=("select", "#t", "b"),
        code="COMMAND_FAILED",
        never=("click",),
        active="t",
    ),
    Row(
        id="is checked does not believe a getter of the page",
        html="<input id=t type=checkbox><script>Object.defineProperty(t, 'checked', {get: () => true})</script>",
        argv=("is", "checked", "#t"),
        data={"checked": False},
    ),
    Row(
        id="get text does not believe a getter of the page",
        html="<p id=t>real</p><script>Object.defineProperty(t, 'innerText', {get: () => 'fake'})</script>",
        argv=("get", "text", "#t"),
        data={"text": "real"},
    ),
    Row(
        id="click does not count a click event that a script made",
        html=f"""<button id=t>Go</button><script>t.onpointerdown = () => {{
        document.body.insertAdjacentHTML('beforeend', `{_COVER}`); t.click()
        t.dispatchEvent(new MouseEvent('click', {{bubbles: true}})) }}</script>""",
        argv=("click", "#t"),
        code="ELEMENT_COVERED",
        never=("note",),
        active="t",
    ),
    Row(
        id="dblclick does not count a double click that a script made",
        html=f"""<button id=t>Go</button><script>t.onclick = () => {{
        document.body.insertAdjacentHTML('beforeend', `{_COVER}`)
        t.dispatchEvent(new MouseEvent('dblclick', {{bubbles: true}})) }}</script>""",
        argv=("dblclick", "#t"),
        code="ELEMENT_COVERED",
        never=("note",),
        active="body",
    ),
)

_CLOBBERING = (
    Row(
        id="click hits its target on a page whose images take the names of the document's functions",
        html=f"{_CLOBBERED_DOCUMENT}<button id=t>Go</button>",
        argv=("click", "#t"),
        log=_CLICKED,
        data={"changed": False},
    ),
    Row(
        id="click by XPath hits its target on a page whose images take the names of the document's functions",
        html=f"{_CLOBBERED_DOCUMENT}<button id=t>Go</button>",
        argv=("click", "//button"),
        log=_CLICKED,
    ),
    Row(
        id="click by text hits its target on a page whose images take the names of the document's functions",
        html=f"{_CLOBBERED_DOCUMENT}<button id=t>Go</button>",
        argv=("click", "text=Go"),
        log=_CLICKED,
    ),
    Row(
        id="click by ref hits its target on a page whose images take the names of the document's functions",
        html=f"{_CLOBBERED_DOCUMENT}<button id=t>Go</button>",
        argv=("click", Ref("button", "Go")),
        log=_CLICKED,
    ),
    Row(
        id="click finds a covered target on a page whose images take the names of the document's functions",
        html=f"{_CLOBBERED_DOCUMENT}<button id=t>Go</button>{_COVER}",
        argv=("click", "#t"),
        code="ELEMENT_COVERED",
    ),
    Row(
        id="fill writes into its field on a page whose images take the names of the document's functions",
        html=f"{_CLOBBERED_DOCUMENT}<input id=t value=old><input id=other value=keep>",
        argv=("fill", "#t", "new"),
        values={"t": "new"},
        data={"value": "new"},
    ),
    Row(
        id="type writes into its field on a page whose images take the names of the document's functions",
        html=f"{_CLOBBERED_DOCUMENT}<input id=t value=old><input id=other value=keep>",
        argv=("type", "#t", "XY"),
        values={"t": "oldXY"},
    ),
    Row(
        id="scroll moves a page whose images take the names of the document's functions",
        html=f"{_CLOBBERED_DOCUMENT}<div style='height:4000px'></div><div id=box class=box></div>",
        argv=("scroll", "down", 300),
        data={"moved": 300, "position": 300},
    ),
    Row(
        id="click hits a form whose fields take the names of its functions",
        html=_CLOBBERED_FORM.format(inside=""),
        argv=("click", "#t"),
        log=_CLICKED,
    ),
    Row(
        id="click hits a button in a form whose fields take the names of its functions",
        html=_CLOBBERED_FORM.format(inside="<button id=b type=button>Go</button>"),
        argv=("click", "#b"),
        log=("mousedown@b", "mouseup@b", "click@b"),
    ),
    Row(
        id="fill writes into a field of a form whose fields take the names of its functions",
        html=_CLOBBERED_FORM.format(inside="<input id=i value=old>"),
        argv=("fill", "#i", "new"),
        values={"i": "new"},
    ),
    Row(
        id="click finds a form whose fields take the names of its functions covered",
        html=_CLOBBERED_FORM.format(inside="") + _COVER,
        argv=("click", "#t"),
        code="ELEMENT_COVERED",
    ),
    Row(
        id="fill refuses a form whose fields take the names of its functions",
        html=_CLOBBERED_FORM.format(inside=""),
        argv=("fill", "#t", "SECRET"),
        code="NOT_EDITABLE",
    ),
    Row(
        id="a frame with the name of the page functions changes nothing",
        html="<iframe name=browserShell srcdoc='text'></iframe><a id=browserShell></a><button id=t>Go</button>",
        argv=("click", "#t"),
        log=_CLICKED,
    ),
)

_SWAPPING = (
    Row(
        id="click reaches its button after the page swapped two buttons under the mouse",
        html=f"{_BUTTONS}<script>t.onmouseover = () => {{ swap(); t.onmouseover = null }}</script>",
        argv=("click", "#t"),
        log=("note@cancelled",),
    ),
    Row(
        id="click does not reach the wrong button when the page swaps them at each move",
        html=f"{_BUTTONS}<script>t.onmouseover = swap</script>",
        argv=("click", "#t"),
        log=("note@cancelled",),
        never=("note@deleted",),
        may_fail="ELEMENT_COVERED",
        may_touch=True,
    ),
    Row(
        id="click does not reach the wrong button when the page swaps them at pointerdown",
        html=f"{_BUTTONS}<script>addEventListener('pointerdown', swap, true)</script>",
        argv=("click", "#t"),
        code="ELEMENT_COVERED",
        never=("note",),
        active="t",
    ),
    Row(
        id="click does not reach the wrong button when the page swaps them at mousedown",
        html=f"{_BUTTONS}<script>addEventListener('mousedown', swap, true)</script>",
        argv=("click", "#t"),
        code="ELEMENT_COVERED",
        never=("note",),
        active="t",
    ),
    Row(
        id="click does not take an element that replaced its target under the mouse",
        html="""<div id=place><button id=t onclick="note('old')">Go</button></div><script>
        t.onmouseover = () => { place.innerHTML = '<button id=t>Go</button>'; t.onclick = () => note('new') }</script>""",
        argv=("click", Ref("button", "Go")),
        code="ELEMENT_GONE",
    ),
    Row(
        id="check does not change another box that took the place of its target",
        html="""<style>input { position: absolute; left: 20px; top: 20px }</style><input id=evil type=checkbox style='left:200px'>
        <input id=t type=checkbox><script>t.onmouseover = () => {
        [t.style.left, evil.style.left] = ['200px', '20px']; t.onmouseover = null }</script>""",
        argv=("check", "#t"),
        values={"t": True},
    ),
    Row(
        id="click finds an invisible frame of another site over its target",
        html="<button id=t>Go</button><iframe id=f src='CROSS/over' style='position:fixed;inset:0;width:100%;height:100%;opacity:0'></iframe>",
        frames={"over": "<button id=b style='position:fixed;inset:0;width:100%;height:100%'>Pay</button>"},
        argv=("click", "#t"),
        code="ELEMENT_COVERED",
    ),
)

_STEALING = (
    Row(
        id="type does not write into a frame of another site that takes the focus all the time",
        html="<input id=t><iframe src='CROSS/thief'></iframe>",
        frames={"thief": "<input id=s value=keep><script>setInterval(() => s.focus(), 1)</script>"},
        argv=("type", "#t", "SECRET"),
        values={"t": "SECRET"},
        may_fail="COMMAND_FAILED",
        may_touch=True,
    ),
    Row(
        id="fill does not write into a frame of another site that takes the focus all the time",
        html="<input id=t><iframe src='CROSS/thief'></iframe>",
        frames={"thief": "<input id=s value=keep><script>setInterval(() => s.focus(), 1)</script>"},
        argv=("fill", "#t", "SECRET"),
        values={"t": "SECRET"},
        may_fail="COMMAND_FAILED",
        may_touch=True,
    ),
    Row(
        id="type does not write into a field that takes the focus all the time",
        html="<input id=t><input id=s value=keep><script>setInterval(() => s.focus(), 1)</script>",
        argv=("type", "#t", "SECRETSECRETSECRETSECRET"),
        values={"t": "SECRETSECRETSECRETSECRET"},
        may_fail="COMMAND_FAILED",
        may_touch=True,
    ),
    Row(
        id="type does not write into a field that takes the focus at keypress",
        html="<input id=t onkeypress='s.focus()'><input id=s value=keep>",
        argv=("type", "#t", "SECRET"),
        code="COMMAND_FAILED",
        never=("input",),
        active="s",
    ),
    Row(
        id="type does not write into a field that takes the focus at beforeinput",
        html="<input id=t onbeforeinput='s.focus()'><input id=s value=keep>",
        argv=("type", "#t", "SECRET"),
        values={"t": "SECRET"},
        may_fail="COMMAND_FAILED",
        may_touch=True,
    ),
    Row(
        id="fill does not write into a field that takes the focus when text is selected",
        html="<input id=t value=old onselect='s.focus()'><input id=s value=keep><script>document.onselectionchange = () => s.focus()</script>",
        argv=("fill", "#t", "SECRET"),
        values={"t": "SECRET"},
        may_fail="COMMAND_FAILED",
        may_touch=True,
    ),
    Row(
        id="type does not write into an editor that takes the focus at the first key",
        html="<input id=t onkeydown='e.focus()'><div id=e contenteditable>keep</div>",
        argv=("type", "#t", "SECRET"),
        code="COMMAND_FAILED",
        never=("input",),
        active="e",
    ),
    Row(
        id="fill does not write into a field in a shadow root that takes the focus",
        html="""<input id=t onfocus='root.getElementById("s").focus()'><div id=host></div><script>
        const root = host.attachShadow({mode: 'closed'}); roots.push(root); root.innerHTML = '<input id=s value=keep>'</script>""",
        argv=("fill", "#t", "SECRET"),
        code="COMMAND_FAILED",
        active="host",
    ),
    Row(
        id="fill does not answer with a password that the page copies into a text field",
        html="<input id=t type=password oninput='s.value = this.value'><input id=s value=keep>",
        argv=("fill", "#t", "s3cret-word"),
        values={"t": "s3cret-word", "s": "s3cret-word"},
        lacks=("s3cret-word",),
    ),
    Row(
        id="fill does not answer with a password whose field becomes a text field",
        html="<input id=t type=password oninput='this.type = \"text\"'>",
        argv=("fill", "#t", "s3cret-word"),
        values={"t": "s3cret-word"},
        lacks=("s3cret-word",),
    ),
    Row(
        id="type does not answer with a password that the page refuses",
        html="<input id=t type=password oninput='this.value = this.value.slice(0, 3)'>",
        argv=("type", "#t", "s3cret-word"),
        code="COMMAND_FAILED",
        values={"t": "s3c"},
        lacks=("s3c",),
        active="t",
    ),
)

_POINTS = tuple(
    Row(
        id=f"{' '.join(argv)} is refused",
        html="<button id=t style='position:fixed;inset:0;width:100%;height:100%'>Go</button>",
        argv=argv,
        code=code,
    )
    for argv, code in (
        (("click", "--at", "-1,5"), "INVALID_ARGUMENTS"),
        (("click", "--at", "5,-60"), "INVALID_ARGUMENTS"),
        (("click", "--at", "5.5,5"), "INVALID_ARGUMENTS"),
        (("click", "--at", "1e1,5"), "INVALID_ARGUMENTS"),
        (("click", "--at", "NaN,5"), "INVALID_ARGUMENTS"),
        (("click", "--at", "5"), "INVALID_ARGUMENTS"),
        (("click", "--at", "5,5,5"), "INVALID_ARGUMENTS"),
        (("click", "--at", "٣,5"), "INVALID_ARGUMENTS"),
        (("click", "--at", "99999999999999999999,5"), "INVALID_ARGUMENTS"),
        (("click", "--at", "9000,5"), "COMMAND_FAILED"),
        (("click", "--at", "5,9000"), "COMMAND_FAILED"),
        (("hover", "--at", "9000,5"), "COMMAND_FAILED"),
        (("dblclick", "--at", "9000,5"), "COMMAND_FAILED"),
        (("drag", "--from", "5,5", "--to", "5,9000"), "COMMAND_FAILED"),
        (("drag", "--from", "5,9000", "--to", "5,5"), "COMMAND_FAILED"),
        (("drag", "--from", "5,5", "--to", "-5,5"), "INVALID_ARGUMENTS"),
        (("click", "--at", "9000,5", "#t"), "COMMAND_FAILED"),
        (("click", "--at", "-5,5", "#t"), "INVALID_ARGUMENTS"),
    )
)

_SELECTORS = tuple(
    Row(
        id=f"click {selector[:60]!r} of {len(selector)} characters is refused",
        html="<button id=t>Go</button><button id=other>Other</button><script>window.hacked = () => note('hacked')</script>",
        argv=("click", selector),
        code=code,
    )
    for selector, code in (
        ("text=</script><script>hacked()</script>", "ELEMENT_NOT_FOUND"),
        ("text='); hacked(); ('", "ELEMENT_NOT_FOUND"),
        ('text="); hacked(); ("', "ELEMENT_NOT_FOUND"),
        ("text=${hacked()}", "ELEMENT_NOT_FOUND"),
        ("text=`+hacked()+`", "ELEMENT_NOT_FOUND"),
        ("text=\\u0022);hacked();//", "ELEMENT_NOT_FOUND"),
        ('role=button name="); hacked(); ("', "ELEMENT_NOT_FOUND"),
        ("role=button name=\\", "ELEMENT_NOT_FOUND"),
        ("role=script name=x", "INVALID_ARGUMENTS"),
        ("role=button] name=Go", "INVALID_ARGUMENTS"),
        ("#t'); hacked(); ('", "INVALID_ARGUMENTS"),
        ("#t, #other'", "INVALID_ARGUMENTS"),
        ('//button[@onclick="hacked()"]', "ELEMENT_NOT_FOUND"),
        ("//*[contains(., '); hacked(); ('')]", "INVALID_ARGUMENTS"),
        ("@e1, #other", "INVALID_ARGUMENTS"),
        ("@e1 >> #other", "INVALID_ARGUMENTS"),
        ("@e01", "ELEMENT_NOT_FOUND"),
        ("@E1", "INVALID_ARGUMENTS"),
        ("@e99999999999999999999", "INVALID_ARGUMENTS"),
        ("text=" + "x" * 5000, "INVALID_ARGUMENTS"),
        (":is(" * 400 + "a" + ")" * 400, "INVALID_ARGUMENTS"),
    )
)

ROWS = (*_FALSE_ANSWERS, *_CLOBBERING, *_SWAPPING, *_STEALING, *_POINTS, *_SELECTORS)
