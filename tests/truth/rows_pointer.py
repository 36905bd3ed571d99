"""Rows of `dblclick`, `hover`, `drag` and of points: `click --at`, `hover --at`, `drag --from --to`."""

from __future__ import annotations

from support.truth import Row

_DROP = """<div id=a draggable=true style='width:80px;height:40px;background:silver'>drag me</div>
<div id=z style='width:200px;height:100px;margin-top:{gap}px;background:gray'>here</div><script>
a.ondragstart = event => event.dataTransfer.setData('text/plain', 'cargo')
z.ondragover = event => event.preventDefault()
z.ondrop = event => { event.preventDefault(); note(event.dataTransfer.getData('text/plain')) }</script>"""
_POINTER = """<div id=a style='position:absolute;left:20px;top:20px;width:60px;height:60px;background:silver'>a</div>
<div id=z style='position:absolute;left:300px;top:200px;width:100px;height:100px;background:gray'>z</div><script>
let from = null
a.on{down} = event => {{ from = [event.clientX, event.clientY]; event.preventDefault(); {capture} }}
document.addEventListener('{move}', event => {{ if (from) {{ a.style.left = 20 + event.clientX - from[0] + 'px'
  a.style.top = 20 + event.clientY - from[1] + 'px' }} }})
document.addEventListener('{up}', event => {{ if (!from) return; from = null
  const [box, goal] = [a.getBoundingClientRect(), z.getBoundingClientRect()]
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2]
  note(x > goal.left && x < goal.right && y > goal.top && y < goal.bottom ? 'inside' : 'outside') }})</script>"""
_SORTABLE = """<style>li { height: 30px }</style><ul id=l><li id=one>one</li><li id=two>two</li><li id=three>three</li></ul>
<script>
let held = null
l.onmousedown = event => { held = event.target; event.preventDefault() }
document.addEventListener('mousemove', event => { if (!held) return
  const over = document.elementsFromPoint(event.clientX, event.clientY).find(e => e.localName === 'li' && e !== held)
  if (over) { const box = over.getBoundingClientRect()
    event.clientY > box.top + box.height / 2 ? over.after(held) : over.before(held) } })
document.addEventListener('mouseup', () => { if (held) { held = null
  app.order = Array.from(l.children, item => item.id).join() } })</script>"""
_CANVAS = """<canvas id=t width=300 height=200 style='border:1px solid'></canvas><script>
t.onclick = event => note(event.offsetX + ',' + event.offsetY)</script>"""
_CLICKED = ("mousedown@t", "mouseup@t", "click@t")

_DBLCLICK_ROWS = (
    Row(
        id="dblclick sends two full clicks and the double click",
        html="<button id=t>Go</button>",
        argv=("dblclick", "#t"),
        log=(*_CLICKED, *_CLICKED, "dblclick@t"),
    ),
    Row(
        id="dblclick selects the word under the mouse",
        html="<p><span id=t>word</span></p>",
        argv=("dblclick", "#t"),
        selection="word",
    ),
    Row(
        id="dblclick counts its clicks",
        html="<button id=t onclick='note(event.detail)'>Go</button>",
        argv=("dblclick", "#t"),
        log=("note@1", "note@2"),
    ),
    Row(
        id="dblclick fails when the first click replaces the element, because the second lands elsewhere",
        html="<span id=t onclick=\"this.outerHTML = '<input id=i>'\">text</span>",
        argv=("dblclick", "#t"),
        code="ELEMENT_GONE",
        log=("dblclick@i",),
        values={"i": ""},
        active="i",
    ),
    Row(
        id="dblclick refuses a covered element",
        html="<button id=t>Go</button><div id=cover style='position:fixed;inset:0'></div>",
        argv=("dblclick", "#t"),
        code="ELEMENT_COVERED",
    ),
    Row(
        id="dblclick refuses a disabled button",
        html="<button id=t disabled>Go</button>",
        argv=("dblclick", "#t"),
        code="COMMAND_FAILED",
    ),
    Row(
        id="dblclick scrolls to its target",
        html="<div style='height:90px;overflow:auto'><div style='height:999px'></div><button id=t>Go</button></div>",
        argv=("dblclick", "#t"),
        log=("dblclick@t",),
    ),
)

_HOVER_ROWS = (
    Row(
        id="hover opens a menu of a style sheet",
        html="""<style>#m { display: none } #t:hover #m { display: block }</style>
        <div id=t>menu<div id=m><button id=i onclick="note('item')">Item</button></div></div>""",
        before=(("hover", "#t"),),
        argv=("click", "#i"),
        log=("note@item",),
    ),
    Row(
        id="hover opens a menu of a script",
        html="<div id=t onmouseenter=\"note('in')\">menu</div>",
        argv=("hover", "#t"),
        log=("note@in",),
        never=("click", "mousedown"),
    ),
    Row(
        id="hover scrolls to an element in a scroll box",
        html="""<div style='height:90px;overflow:auto'><div style='height:999px'></div>
        <p id=t onmouseover="note('in')">text</p></div>""",
        argv=("hover", "#t"),
        log=("note@in",),
    ),
    Row(
        id="hover reaches a disabled button",
        html="<button id=t disabled onmouseover=\"note('in')\" onpointerover=\"note('in')\">Go</button>",
        argv=("hover", "#t"),
        may_fail="COMMAND_FAILED",
    ),
    Row(
        id="hover refuses a covered element",
        html="<p id=t onmouseover=\"note('in')\">text</p><div id=cover style='position:fixed;inset:0'></div>",
        argv=("hover", "#t"),
        code="ELEMENT_COVERED",
        names=("cover",),
    ),
    Row(
        id="hover refuses a hidden element",
        html="<p id=t hidden>text</p>",
        argv=("hover", "#t"),
        code="COMMAND_FAILED",
    ),
    Row(
        id="hover takes the mouse from the element before",
        html="<p id=t>text</p><p id=u onmouseover=\"note('in')\" onmouseout=\"note('out')\">text</p>",
        before=(("hover", "#u"),),
        argv=("hover", "#t"),
        log=("note@out",),
    ),
    Row(
        id="hover at a point of an element",
        html="<div id=t style='width:200px;height:100px' onmousemove='app.at = [event.offsetX, event.offsetY]'>text</div>",
        argv=("hover", "--at", "150,20", "#t"),
        app={"at": [150, 20]},
    ),
    Row(
        id="hover at a point of the window",
        html="<style>body { margin: 0 }</style><div id=t style='width:200px;height:100px' onmousemove='app.at = [event.clientX, event.clientY]'>text</div>",
        argv=("hover", "--at", "30,40"),
        app={"at": [30, 40]},
    ),
)

_DRAG_ROWS = (
    Row(
        id="drag carries the data of an HTML5 drag",
        html=_DROP.replace("{gap}", "50"),
        argv=("drag", "#a", "#z"),
        log=("dragstart@a", "drop@z", "note@cargo", "dragend@a"),
        data={"dragged": "#a", "to": "#z"},
    ),
    Row(
        id="drag carries the data to a target below the window",
        html=_DROP.replace("{gap}", "1500"),
        argv=("drag", "#a", "#z"),
        log=("dragstart@a", "drop@z", "note@cargo", "dragend@a"),
        may_fail="COMMAND_FAILED",
    ),
    Row(
        id="drag moves an element of a page that follows the mouse",
        html=_POINTER.format(down="mousedown", move="mousemove", up="mouseup", capture=""),
        argv=("drag", "#a", "#z"),
        log=("note@inside",),
    ),
    Row(
        id="drag moves an element of a page that follows the pointer",
        html=_POINTER.format(down="pointerdown", move="pointermove", up="pointerup", capture=""),
        argv=("drag", "#a", "#z"),
        log=("note@inside",),
    ),
    Row(
        id="drag moves an element of a page that captures the pointer",
        html=_POINTER.format(
            down="pointerdown", move="pointermove", up="pointerup", capture="a.setPointerCapture(event.pointerId)"
        ),
        argv=("drag", "#a", "#z"),
        log=("note@inside",),
    ),
    Row(
        id="drag sorts a list",
        html=_SORTABLE,
        argv=("drag", "#one", "#three"),
        log=("mousedown@one",),
        data={"dragged": "#one", "to": "#three"},
    ),
    Row(
        id="drag by points moves a range",
        html="<style>body { margin: 0 }</style><input id=t type=range value=0 style='position:absolute;left:0;top:0;margin:0;width:200px;height:20px'>",
        argv=("drag", "--from", "8,10", "--to", "100,10"),
        values={"t": "50"},
    ),
    Row(
        id="drag by points draws on a canvas",
        html="""<style>body { margin: 0 }</style><canvas id=t width=300 height=200></canvas><script>
        let down = null
        t.onmousedown = event => { down = event.offsetX + ',' + event.offsetY }
        t.onmouseup = event => { note(down + ' to ' + event.offsetX + ',' + event.offsetY) }</script>""",
        argv=("drag", "--from", "20,30", "--to", "120,140"),
        log=("note@20,30 to 120,140",),
    ),
    Row(
        id="drag refuses a covered start",
        html=_DROP.replace("{gap}", "50") + "<div id=cover style='position:fixed;inset:0'></div>",
        argv=("drag", "#a", "#z"),
        code="ELEMENT_COVERED",
    ),
    Row(
        id="drag refuses a covered goal",
        html=_DROP.replace("{gap}", "50")
        + "<div id=cover style='position:absolute;top:90px;left:0;width:400px;height:300px'></div>",
        argv=("drag", "#a", "#z"),
        code="ELEMENT_COVERED",
        names=("cover",),
    ),
    Row(
        id="drag refuses a missing goal",
        html=_DROP.replace("{gap}", "50"),
        argv=("drag", "#a", "#y"),
        code="ELEMENT_NOT_FOUND",
    ),
    Row(
        id="drag refuses a hidden goal",
        html=_DROP.replace("{gap}", "50") + "<p id=y hidden>text</p>",
        argv=("drag", "#a", "#y"),
        code="COMMAND_FAILED",
    ),
    Row(
        id="drag leaves the mouse button up",
        html=_DROP.replace("{gap}", "50") + "<p id=p style='height:50px' onmousemove='note(event.buttons)'>text</p>",
        before=(("drag", "#a", "#z"),),
        argv=("hover", "#p"),
        log=("note@0",),
    ),
)

_POINT_ROWS = (
    Row(
        id="click at a point of a canvas",
        html=_CANVAS,
        argv=("click", "--at", "31,12", "#t"),
        log=("note@30,11",),
    ),
    Row(
        id="click at the first point of an element",
        html="<button id=t style='width:80px;height:40px'>Go</button>",
        argv=("click", "--at", "0,0", "#t"),
        log=_CLICKED,
    ),
    Row(
        id="click at a point of an element in a scroll box",
        html="<div style='height:250px;overflow:auto'><div style='height:999px'></div>"
        + _CANVAS.replace("border:1px solid", "display:block")
        + "</div>",
        argv=("click", "--at", "40,50", "#t"),
        log=("note@40,50",),
    ),
    Row(
        id="click at a point outside of the element is refused",
        html=_CANVAS,
        argv=("click", "--at", "400,10", "#t"),
        code="COMMAND_FAILED",
    ),
    Row(
        id="click at a covered point of an element is refused",
        html=_CANVAS
        + "<div id=cover style='position:absolute;left:8px;top:8px;width:60px;height:60px;background:gray'></div>",
        argv=("click", "--at", "20,20", "#t"),
        code="ELEMENT_COVERED",
    ),
    Row(
        id="click at a point of the window",
        html="<style>body { margin: 0 }</style><button id=t style='position:absolute;left:100px;top:50px;width:80px;height:40px'>Go</button>",
        argv=("click", "--at", "110,60"),
        log=_CLICKED,
    ),
    Row(
        id="click at a point of the window counts from the visible part of the page",
        html="<style>body { margin: 0; height: 5000px }</style><button id=t style='position:absolute;left:100px;top:1050px;width:80px;height:40px'>Go</button><script>scrollTo(0, 1000)</script>",
        argv=("click", "--at", "110,60"),
        log=_CLICKED,
    ),
    Row(
        id="click at a point left of the window is refused",
        html="<button id=t>Go</button>",
        argv=("click", "--at", "-5,10"),
        code="INVALID_ARGUMENTS",
    ),
    Row(
        id="click at a point below the window is refused",
        html="<button id=t>Go</button>",
        argv=("click", "--at", "10,9000"),
        code="COMMAND_FAILED",
    ),
    Row(
        id="click at a point of SVG",
        html="<svg id=s width=200 height=100><rect id=t x=100 width=100 height=100 /></svg>",
        argv=("click", "--at", "150,50", "#s"),
        log=_CLICKED,
    ),
)

ROWS = (*_DBLCLICK_ROWS, *_HOVER_ROWS, *_DRAG_ROWS, *_POINT_ROWS)
