"""Rows of `click`: kinds of elements, targets that cannot be hit, and targets that move."""

from __future__ import annotations

from support.truth import Row

_CLICKED = ("mousedown@t", "mouseup@t", "click@t")
_TALL = "<div style='height:3000px'></div>"
_COVER = "<div id=cover style='position:fixed;inset:0;{style}'>{text}</div>"

_HIT = (
    # what, HTML of an element with the id t
    ("a button", "<button id=t>Go</button>"),
    ("a link without a target page", "<a id=t href='#x'>Go</a>"),
    ("a text field", "<input id=t>"),
    ("a div with a listener", "<div id=t>Go</div>"),
    ("an element of SVG", "<svg width=100 height=100><circle id=t cx=50 cy=50 r=40 /></svg>"),
    ("a canvas", "<canvas id=t width=100 height=50></canvas>"),
    ("an image", "<img id=t width=50 height=50 alt=Go src='data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA='>"),
    ("a summary", "<details><summary id=t>more</summary>text</details>"),
    ("an element below the window", f"{_TALL}<button id=t>Go</button>"),
    (
        "an element right of the window",
        "<div style='width:4000px'></div><button id=t style='margin-left:3500px'>Go</button>",
    ),
    ("an element in a scroll box", f"<div style='height:90px;overflow:auto'>{_TALL}<button id=t>Go</button></div>"),
    (
        "an element in a scroll box in a scroll box",
        f"<div style='height:200px;overflow:auto'>{_TALL}<div style='height:90px;overflow:auto'>{_TALL}"
        "<button id=t>Go</button></div></div>",
    ),
    (
        "an element in a hidden overflow",
        f"<div style='height:90px;overflow:hidden'>{_TALL}<button id=t>Go</button></div>",
    ),
    (
        "an element that is below a sticky header after scrolling",
        f"<div id=head style='position:sticky;top:0;height:120px;background:gray'>head</div>{_TALL}"
        f"<button id=t>Go</button>{_TALL}",
    ),
    ("a rotated element", "<button id=t style='margin:80px;transform:rotate(45deg)'>A longer text</button>"),
    ("a scaled element", "<button id=t style='transform:scale(.4);transform-origin:0 0'>Go</button>"),
    ("a zoomed element", "<div style='zoom:2.5'><button id=t style='margin:20px'>Go</button></div>"),
    ("a tilted element", "<button id=t style='margin:60px;transform:perspective(200px) rotateY(40deg)'>Go</button>"),
    ("a transparent element", "<button id=t style='opacity:0'>Go</button>"),
    (
        "a fixed element on a scrolled page",
        f"<button id=t style='position:fixed;top:5px'>Go</button>{_TALL}<script>scrollTo(0, 999)</script>",
    ),
    (
        "a link over two lines, whose centre belongs to no line",
        "<div style='width:300px;font:20px/40px monospace'>0123456789012345 <a id=t href='#x'>first second</a> text</div>",
    ),
    ("an element that shows its children only", "<div id=t style='display:contents'><button id=c>Go</button></div>"),
    (
        "an element that stands behind a small cover",
        "<button id=t style='width:300px;height:60px'>Go</button><div style='position:absolute;left:8px;top:8px;width:40px;height:40px;background:gray'></div>",
    ),
    (
        "an element behind a cover that takes no clicks",
        "<button id=t>Go</button>" + _COVER.format(style="pointer-events:none", text=""),
    ),
    ("a popover", "<div id=p popover><button id=t>Go</button></div><script>p.showPopover()</script>"),
    (
        "a button in a modal dialog",
        "<button id=b>behind</button><dialog id=d><button id=t>Go</button></dialog><script>d.showModal()</script>",
    ),
    (
        "a button in the top layer over a modal dialog",
        "<dialog id=d><p>text</p></dialog><dialog id=e><button id=t>Go</button></dialog><script>d.showModal(); e.showModal()</script>",
    ),
    ("an element whose id needs an escape", "<button id=t data-x='a\"b'>Go</button>"),
    (
        "a button with an icon inside",
        "<button id=t><svg width=20 height=20 style='pointer-events:none'><rect width=20 height=20 /></svg></button>",
    ),
    ("an element in right-to-left text", "<div dir=rtl style='width:3000px'><button id=t>Go</button></div>"),
    (
        "an element in a page in quirks of negative margins",
        "<button id=t style='margin-left:-20px;width:100px'>Go</button>",
    ),
    (
        "an element that is partly outside of the window",
        "<button id=t style='position:absolute;left:-60px;width:100px'>Go</button>",
    ),
    ("an element larger than the window", "<div id=t style='height:4000px;width:3000px;background:silver'>Go</div>"),
    (
        "an element in columns",
        "<div style='columns:3;height:60px;width:600px'>one<br>two<br>three<br>four<br>five<br><button id=t>Go</button></div>",
    ),
    (
        "a table row",
        "<table><tr id=t><td id=c>cell</td></tr></table>",
    ),
    (
        "an option-like item in a scrolled list",
        f"<ul style='height:90px;overflow:auto'>{'<li>item</li>' * 40}<li id=t>Go</li></ul>",
    ),
)

_NOT_HIT = (
    # what, HTML, code, words of the message
    ("a disabled button", "<button id=t disabled>Go</button>", "COMMAND_FAILED", ("disabled",)),
    (
        "a button in a disabled fieldset",
        "<fieldset disabled><button id=t>Go</button></fieldset>",
        "COMMAND_FAILED",
        ("disabled",),
    ),
    ("an inert button", "<div inert><button id=t>Go</button></div>", "ELEMENT_COVERED", ()),
    ("a hidden button", "<button id=t hidden>Go</button>", "COMMAND_FAILED", ("visible",)),
    ("an invisible button", "<button id=t style='visibility:hidden'>Go</button>", "COMMAND_FAILED", ("visible",)),
    (
        "an element without a size",
        "<button id=t style='width:0;height:0;padding:0;border:0;overflow:hidden'>Go</button>",
        "COMMAND_FAILED",
        (),
    ),
    (
        "a button in a closed details element",
        "<details><summary>more</summary><button id=t>Go</button></details>",
        "COMMAND_FAILED",
        (),
    ),
    ("a button in a closed dialog", "<dialog><button id=t>Go</button></dialog>", "COMMAND_FAILED", ()),
    ("a closed popover", "<div popover><button id=t>Go</button></div>", "COMMAND_FAILED", ()),
    ("an element without display", "<div style='display:none'><button id=t>Go</button></div>", "COMMAND_FAILED", ()),
    (
        "a covered button",
        "<button id=t>Go</button>" + _COVER.format(style="background:gray", text="Please wait"),
        "ELEMENT_COVERED",
        ("cover",),
    ),
    (
        "a button under a transparent cover",
        "<button id=t>Go</button>" + _COVER.format(style="opacity:0", text=""),
        "ELEMENT_COVERED",
        ("cover",),
    ),
    (
        "a button behind a modal dialog",
        "<button id=t>Go</button><dialog id=cover>text</dialog><script>cover.showModal()</script>",
        "ELEMENT_COVERED",
        (),
    ),
    (
        "a button that takes no clicks",
        "<div id=under><button id=t style='pointer-events:none'>Go</button></div>",
        "ELEMENT_COVERED",
        (),
    ),
    (
        "an element that no scrolling shows",
        "<button id=t style='position:absolute;left:-2000px'>Go</button>",
        "COMMAND_FAILED",
        (),
    ),
    (
        "an element above the page",
        "<button id=t style='position:absolute;top:-2000px'>Go</button>",
        "COMMAND_FAILED",
        (),
    ),
    (
        "a button cut off by its box",
        "<div style='width:50px;height:20px;overflow:clip'><button id=t style='margin:100px'>Go</button></div>",
        "ELEMENT_COVERED",
        (),
    ),
    ("a missing element", "<p>text</p>", "ELEMENT_NOT_FOUND", ("#t",)),
    (
        "a button under the frame of another page",
        "<button id=t>Go</button><iframe id=cover style='position:fixed;inset:0;width:100%;height:100%' srcdoc='text'></iframe>",
        "ELEMENT_COVERED",
        (),
    ),
)

_SLIDE = "<button id=t style='position:relative;left:0;transition:left .3s linear'>Go</button>"
_MOVE = """<button id=t style='position:absolute;top:100px;width:120px;height:60px'>Go</button><script>
let x = 0; const step = () => { x = (x + {speed}) % 400; t.style.left = x + 'px'; requestAnimationFrame(step) }; step()
</script>"""

_MOVING_ROWS = (
    Row(
        id="click hits a target that slides for 300 ms",
        html=_SLIDE,
        script="t.getBoundingClientRect(); t.style.left = '400px'",
        argv=("click", "#t"),
        log=_CLICKED,
    ),
    Row(
        id="click hits a target that slides into the window",
        html="<div style='overflow:clip'><button id=t style='position:relative;left:1900px;transition:left .3s'>Go</button></div>",
        script="t.getBoundingClientRect(); t.style.left = '0px'",
        argv=("click", "#t"),
        log=_CLICKED,
        may_fail="COMMAND_FAILED",
    ),
    Row(
        id="click hits a target whose box grows for 300 ms",
        html="<div id=m style='height:0;overflow:hidden;transition:height .3s linear'><div style='height:200px'></div><button id=t>Go</button></div>",
        script="m.getBoundingClientRect(); m.style.height = '300px'",
        argv=("click", "#t"),
        log=_CLICKED,
    ),
    Row(
        id="click hits a target that a script slides",
        html="<button id=t style='position:relative'>Go</button>",
        script="""const start = performance.now(); const step = now => {
        t.style.left = Math.min(400, Math.max(0, now - start) * 1.3) + 'px'; if (now - start < 320) requestAnimationFrame(step) }
        requestAnimationFrame(step)""",
        argv=("click", "#t"),
        log=_CLICKED,
    ),
    Row(
        id="click hits a target below a section that a script unfolds",
        html="<div id=m style='height:0'></div><button id=t>Go</button>",
        script="""const start = performance.now(); const step = now => {
        m.style.height = Math.min(300, Math.max(0, now - start)) + 'px'; if (now - start < 320) requestAnimationFrame(step) }
        requestAnimationFrame(step)""",
        argv=("click", "#t"),
        log=_CLICKED,
    ),
    Row(
        id="click hits a target that moves endlessly",
        html=_MOVE.replace("{speed}", "1"),
        argv=("click", "#t"),
        log=_CLICKED,
        may_fail="COMMAND_FAILED",
    ),
    Row(
        id="click hits a target that moves endlessly and fast, or fails",
        html=_MOVE.replace("{speed}", "37"),
        argv=("click", "#t"),
        log=_CLICKED,
        may_fail="ELEMENT_COVERED",
        may_touch=True,
    ),
    Row(
        id="click hits a button that becomes enabled after 200 ms, or fails",
        html="<button id=t disabled>Go</button>",
        script="setTimeout(() => { t.disabled = false }, 200)",
        argv=("click", "#t"),
        log=_CLICKED,
        may_fail="COMMAND_FAILED",
    ),
    Row(
        id="click hits a button whose cover fades after 300 ms, or fails",
        html="<button id=t>Go</button>" + _COVER.format(style="background:gray", text="wait"),
        script="setTimeout(() => cover.remove(), 300)",
        argv=("click", "#t"),
        log=_CLICKED,
        may_fail="ELEMENT_COVERED",
    ),
    Row(
        id="click hits a target on a page with smooth scrolling",
        html=f"<style>html {{ scroll-behavior: smooth }}</style>{_TALL}<button id=t>Go</button>{_TALL}",
        argv=("click", "#t"),
        log=_CLICKED,
    ),
    Row(
        id="click fails when the page pulls the target away at mousedown",
        html="<button id=t>Go</button><script>t.onmousedown = () => { t.style.marginLeft = '600px' }</script>",
        argv=("click", "#t"),
        code="ELEMENT_COVERED",
        never=("note",),
        active="t",
    ),
    Row(
        id="click follows a target that jumps away under the mouse",
        html="<button id=t style='position:absolute'>Go</button><script>t.onmouseover = () => { t.style.left = '600px' }</script>",
        argv=("click", "#t"),
        log=_CLICKED,
    ),
    Row(
        id="click fails when the page covers the target at mousedown",
        html="""<button id=t>Go</button><script>t.onmousedown = () => { const cover = document.createElement('div')
        cover.id = 'cover'; cover.style = 'position:fixed;inset:0'; document.body.append(cover) }</script>""",
        argv=("click", "#t"),
        code="ELEMENT_COVERED",
        never=("note",),
        active="t",
    ),
)

ROWS = (
    *(
        Row(
            id=f"click hits {what}",
            html=html,
            argv=("click", "#t"),
            log=("mousedown@c", "mouseup@c", "click@c") if "id=c>" in html else _CLICKED,
            may_fail="COMMAND_FAILED" if "display:contents" in html else "",
        )
        for what, html in _HIT
    ),
    *(
        Row(id=f"click refuses {what}", html=html, argv=("click", "#t"), code=code, names=names)
        for what, html, code, names in _NOT_HIT
    ),
    *_MOVING_ROWS,
)
