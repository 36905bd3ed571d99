"""Fields, choices, keys and scrolling: the right effect in the page, or an error and a page that was not touched."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.pages import Site, WatchedPage, running_site
from support.server import Session, running_server

_LOG = """<script>
for (const kind of ['input', 'change']) addEventListener(kind, ({target}) => report([kind, target.id,
  target.type === 'checkbox' ? target.checked : target.value ?? target.innerText]), true)
</script>"""

_FORM = """<input id=text value=old><input id=password type=password><input id=code autocomplete=one-time-code>
<textarea id=area>old</textarea><div id=rich contenteditable><p>old</p><p>text</p></div>
<input id=date type=date><input id=time type=time><input id=month type=month><input id=week type=week>
<input id=local type=datetime-local><input id=number type=number value=1><input id=range type=range min=0 max=10>
<input id=colour type=color><input id=email type=email><input id=short maxlength=3>
<input id=readonly readonly value=kept><input id=disabled disabled value=kept>
<fieldset disabled><input id=grouped value=kept></fieldset><input id=aria aria-disabled=true value=kept>
<div inert><input id=inert value=kept></div><input id=hidden style="display:none" value=kept>
<input id=file type=file><input id=button type=button value=kept><button id=real>kept</button>
<input id=box type=checkbox><input id=radio type=radio><select id=list><option>a<option>b</select>
<span id=span>kept</span><label id=label for=text>Name</label><label id=lone>Nothing</label>
<div id=wrapper><input id=inner></div>"""


@pytest.fixture(scope="module")
def other_site() -> Iterator[Site]:
    """A site on another host, so that its frames have a process of their own."""
    with running_site("127.0.0.2") as running:
        yield running


@pytest.fixture(scope="module")
def browser(site: Site, other_site: Site) -> Iterator[Session]:
    """One session for all tests of this module. Each test opens its own page."""
    addresses = [f"{each.host}:{each.port}" for each in (site, other_site)]
    with running_server({"open": {"unsafe_allow_addresses": addresses}}) as server:
        yield server.session("fields")


def form(site: Site, body: str = _FORM) -> WatchedPage:
    return site.watch(body + _LOG)


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        *(("text", "new", "new"), ("text", "", ""), ("area", "one\ntwo\n", "one\ntwo\n"), ("area", "", "")),
        *(("rich", "new", "new"), ("rich", "one\n\n  two", "one\n\n  two"), ("rich", "", "")),
        *(("date", "2026-12-24", "2026-12-24"), ("date", "", ""), ("time", "09:05", "09:05")),
        *(("month", "2026-12", "2026-12"), ("week", "2026-W50", "2026-W50")),
        *(("local", "2026-12-24T18:30", "2026-12-24T18:30"), ("local", "2026-12-24 18:30", "2026-12-24T18:30")),
        *(("number", "12.5", "12.5"), ("number", "", ""), ("range", "7", "7"), ("colour", "#FF8800", "#ff8800")),
        *(("email", "a@b.example", "a@b.example"), ("short", "abc", "abc")),
    ],
)
def test_fill_replaces_the_value_and_returns_what_the_field_holds(
    browser: Session, site: Site, field: str, text: str, value: str
) -> None:
    page = form(site)
    browser.ok("open", page.url)
    assert browser.ok("fill", f"#{field}", text) == {"filled": f"#{field}", "value": value}
    if field == "rich":
        assert page.reports[-1][2].split() == text.split()
    elif field != "date" or text:
        assert page.reports[-1][1:] == [field, value]
    assert {report[1] for report in page.reports} <= {field}


@pytest.mark.parametrize(
    ("field", "text", "code", "advice"),
    [
        *(("readonly", "x", "NOT_EDITABLE", "click #readonly"), ("disabled", "x", "NOT_EDITABLE", "enables")),
        *(("grouped", "x", "NOT_EDITABLE", "enables"), ("aria", "x", "NOT_EDITABLE", "enables")),
        *(("inert", "x", "NOT_EDITABLE", "activates"), ("hidden", "x", "NOT_EDITABLE", "shows")),
        *(("file", "x", "NOT_EDITABLE", "without the file"), ("button", "x", "NOT_EDITABLE", "click #button")),
        *(("real", "x", "NOT_EDITABLE", "click #real"), ("box", "x", "NOT_EDITABLE", "check #box")),
        *(("radio", "x", "NOT_EDITABLE", "check #radio"), ("list", "b", "NOT_EDITABLE", "select #list")),
        *(("span", "x", "NOT_EDITABLE", "snapshot"), ("lone", "x", "NOT_EDITABLE", "snapshot")),
        ("wrapper", "x", "NOT_EDITABLE", "<input#inner"),
        *(("date", "24.12.2026", "COMMAND_FAILED", "2026-12-24"), ("time", "9:05", "COMMAND_FAILED", "09:05")),
        *(("number", "abc", "COMMAND_FAILED", "12.5"), ("range", "11", "COMMAND_FAILED", "from 0 to 10")),
        *(("range", "", "COMMAND_FAILED", "from 0 to 10"), ("colour", "red", "COMMAND_FAILED", "#ff8800")),
        *(("short", "abcd", "COMMAND_FAILED", "Shorten"), ("text", "two\nlines", "COMMAND_FAILED", "press Enter")),
    ],
)
def test_fill_refuses_what_a_field_does_not_take_and_touches_nothing(
    browser: Session, site: Site, field: str, text: str, code: str, advice: str
) -> None:
    page = form(site)
    browser.ok("open", page.url)
    browser.ok("focus", "#area")
    outcome = browser.run("fill", f"#{field}", text)
    assert (outcome.exit_code, outcome.meta["name"], outcome.stdout) == (1, code, "")
    assert advice in outcome.stderr.splitlines()[-1]
    assert page.reports == []
    browser.ok("press", "End")
    browser.ok("press", "z")
    assert page.reports == [["input", "area", "oldz"]], "the focus has moved"


def test_fill_of_a_label_fills_its_field_and_reports_it(browser: Session, site: Site) -> None:
    page = form(site)
    browser.ok("open", page.url)
    outcome = browser.run("fill", "#label", "new")
    assert outcome.data == {"filled": "#label", "value": "new"}
    assert "NOTE: #label is not a field itself" in outcome.stderr
    assert page.reports == [["input", "text", "new"]]


@pytest.mark.promise("output:passwords-are-not-echoed")
@pytest.mark.parametrize("command", ["fill", "type"])
@pytest.mark.parametrize("field", ["password", "code"])
def test_secrets_are_not_repeated(browser: Session, site: Site, command: str, field: str) -> None:
    page = form(site)
    browser.ok("open", page.url)
    outcome = browser.run(command, f"#{field}", "s3cr3t")
    assert outcome.exit_code == 0
    assert "s3cr3t" not in outcome.stdout + outcome.stderr
    assert page.reports[-1] == ["input", field, "s3cr3t"]
    outcome = browser.run("get", "value", f"#{field}")
    assert outcome.exit_code == 1
    assert "s3cr3t" not in outcome.stdout + outcome.stderr


_THIEVES = """<input id=other><input id=later onfocus="setTimeout(() => other.focus())">
<input id=focus onfocus="other.focus()"><input id=before onbeforeinput="other.focus()">
<input id=key onkeydown="other.focus()"><input id=input oninput="other.focus()">
<textarea id=area onfocus="setTimeout(() => other.focus())"></textarea>
<div id=rich contenteditable onfocus="setTimeout(() => other.focus())"></div>
<iframe id=frame srcdoc="<input id=inner autofocus>"></iframe>
<input id=window onfocus="setTimeout(() => frame.contentDocument.getElementById('inner').focus())">
<script>
frame.onload = () => frame.contentWindow.addEventListener('input', () => report(['leak', 'inner', '']))
</script>"""


@pytest.mark.promise("text:lands-in-the-named-field")
@pytest.mark.parametrize("command", ["fill", "type"])
@pytest.mark.parametrize("field", ["later", "focus", "before", "key", "input", "area", "rich", "window"])
def test_text_never_lands_in_another_field(browser: Session, site: Site, command: str, field: str) -> None:
    page = form(site, _THIEVES)
    browser.ok("open", page.url)
    outcome = browser.run(command, f"#{field}", "s3cr3t")
    browser.ok("get", "text", "body")
    assert {report[1] for report in page.reports} <= {field}
    if outcome.exit_code == 0:
        assert page.reports[-1][2] == "s3cr3t"
    else:
        assert "s3cr3t" not in [report[2] for report in page.reports] or command == "type"


@pytest.mark.promise("text:lands-in-the-named-field")
def test_keys_do_not_reach_a_page_that_replaces_the_page_of_the_field(browser: Session, site: Site) -> None:
    after = site.watch("<input id=next autofocus oninput='report(this.value)'>")
    page = site.watch(f"<input id=f oninput=\"if (this.value === 'se') location = '{after.url}'\">")
    browser.ok("open", page.url)
    browser.run("type", "#f", "secret " * 100)
    browser.ok("wait", "#next")
    assert after.reports == []
    browser.ok("type", "#next", "x")
    assert after.reports == ["x"]


def test_fill_updates_the_state_of_a_framework_that_tracks_values(browser: Session, site: Site) -> None:
    """The page replaces the setter of the value, as React does, and ignores events without a change."""
    page = site.watch("""<input id=name value=old><input id=day type=date><script>
    for (const field of [document.getElementById('name'), day]) {
      const native = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value')
      let tracked = native.get.call(field)
      Object.defineProperty(field, 'value', {get() { return native.get.call(this) },
        set(value) { tracked = String(value); native.set.call(this, value) }})
      field.addEventListener('input', () => {
        const value = native.get.call(field)
        if (value !== tracked) { tracked = value; report([field.id, value]) }
      })
    }</script>""")
    browser.ok("open", page.url)
    browser.ok("fill", "#name", "new")
    browser.ok("fill", "#name", "")
    browser.ok("fill", "#day", "2026-12-24")
    assert page.reports == [["name", "new"], ["name", ""], ["day", "2026-12-24"]]


@pytest.mark.parametrize(
    ("handler", "text", "value"),
    [
        ("this.value = this.value.toUpperCase()", "abc", "ABC"),
        ("this.value = this.value.replace(/(...)(....)/, '$1-$2')", "5551234", "555-1234"),
        ("setTimeout(() => this.value = '#' + this.value)", "7", "#7"),
    ],
)
def test_fill_reports_how_a_page_formats_the_text(
    browser: Session, site: Site, handler: str, text: str, value: str
) -> None:
    browser.ok("open", site.watch(f'<input id=f oninput="{handler}">').url)
    outcome = browser.run("fill", "#f", text)
    assert outcome.data == {"filled": "#f", "value": value}
    assert "NOTE: the page changed the form of the text" in outcome.stderr


@pytest.mark.parametrize("handler", ["this.value = ''", "this.value = this.value.slice(0, 2)", "this.remove()"])
@pytest.mark.parametrize("command", ["fill", "type"])
def test_text_that_a_page_does_not_keep_is_an_error(browser: Session, site: Site, command: str, handler: str) -> None:
    browser.ok("open", site.watch(f'<input id=f oninput="{handler}">').url)
    outcome = browser.run(command, "#f", "abcdef")
    assert outcome.exit_code == 1
    assert outcome.meta["name"] == ("ELEMENT_GONE" if "remove" in handler else "COMMAND_FAILED")


def test_a_field_that_is_replaced_while_it_gets_the_focus_receives_nothing(browser: Session, site: Site) -> None:
    page = form(site, """<input id=f onfocus="this.outerHTML = '<input id=g>'">""")
    browser.ok("open", page.url)
    assert browser.run("fill", "#f", "abc").meta["name"] == "ELEMENT_GONE"
    assert page.reports == []


def test_a_rule_that_the_value_breaks_is_reported(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch("<input id=f type=number max=10>").url)
    outcome = browser.run("fill", "#f", "42")
    assert outcome.data["value"] == "42"
    assert "NOTE: the field reports:" in outcome.stderr


@pytest.mark.parametrize("is_same_site", [True, False])
def test_fill_of_a_frame_fills_its_editable_body(
    browser: Session, site: Site, other_site: Site, is_same_site: bool
) -> None:
    editor = (site if is_same_site else other_site).watch("""<body contenteditable><p>old</p>
    <script>document.body.oninput = () => report(document.body.innerText.trim())</script></body>""")
    browser.ok("open", site.watch(f"<iframe id=editor src='{editor.url}'></iframe><iframe id=plain></iframe>").url)
    assert browser.ok("fill", "#editor", "new") == {"filled": "#editor", "value": "new"}
    assert browser.ok("type", "#editor", " text") == {"typed": "#editor", "value": "new text"}
    assert editor.reports[-1] == "new text"
    assert browser.run("fill", "#plain", "x").meta["name"] == "NOT_EDITABLE"


def test_fields_in_shadow_roots_and_dialogs_are_filled(browser: Session, site: Site) -> None:
    page = form(
        site,
        """<div id=host></div><input id=outside><dialog id=d><input id=inside></dialog><script>
        host.attachShadow({mode: 'open'}).innerHTML = '<input id=deep oninput="report(this.value)">'; d.showModal()
        </script>""",
    )
    browser.ok("open", page.url)
    browser.ok("fill", "#inside", "in the dialog")
    assert browser.run("fill", "#outside", "x").meta["name"] == "ELEMENT_COVERED"
    browser.ok("press", "Escape")
    browser.ok("fill", "#deep", "in the shadow")
    assert "in the shadow" in page.reports
    assert ["input", "outside", "x"] not in page.reports


def test_type_sends_key_events_with_the_caret_at_the_end(browser: Session, site: Site) -> None:
    page = site.watch("""<textarea id=f>old</textarea><script>
    for (const kind of ['keydown', 'keypress', 'beforeinput', 'input', 'keyup'])
      f.addEventListener(kind, event => report([kind, event.key ?? event.data, event.isTrusted]))</script>""")
    browser.ok("open", page.url)
    assert browser.ok("type", "#f", "a\n") == {"typed": "#f", "value": "olda\n"}
    kinds = ["keydown", "keypress", "beforeinput", "input", "keyup"]
    assert [report[0] for report in page.reports] == kinds * 2
    assert page.reports[0] == ["keydown", "a", True]
    assert page.reports[5] == ["keydown", "Enter", True]


@pytest.mark.parametrize(
    ("field", "text", "code"),
    [
        *(("readonly", "x", "NOT_EDITABLE"), ("disabled", "x", "NOT_EDITABLE"), ("span", "x", "NOT_EDITABLE")),
        *(("range", "3", "NOT_EDITABLE"), ("short", "abcd", "COMMAND_FAILED"), ("text", "a\nb", "COMMAND_FAILED")),
        *(("number", "abc", "COMMAND_FAILED"), ("area", "x" * 4_001, "COMMAND_FAILED")),
    ],
)
def test_type_refuses_what_a_field_does_not_take(
    browser: Session, site: Site, field: str, text: str, code: str
) -> None:
    page = form(site)
    browser.ok("open", page.url)
    outcome = browser.run("type", f"#{field}", text)
    assert (outcome.exit_code, outcome.meta["name"]) == (1, code)
    assert page.reports == []


def test_type_sends_keys_to_elements_that_handle_them_by_themselves(browser: Session, site: Site) -> None:
    page = site.watch("""<div id=grid tabindex=0>grid</div><p id=plain>text</p><button id=button>b</button>
    <input id=sink style="width:1px;height:1px;padding:0;border:0"><input id=clear style="opacity:0"><script>
    for (const id of ['grid', 'sink', 'clear', 'button', 'plain']) document.getElementById(id).onkeydown = event => {
      report([id, event.key]); if ('value' in event.target) event.target.value = '' }</script>""")
    browser.ok("open", page.url)
    assert browser.ok("type", "#grid", "ab") == {"typed": "#grid"}
    assert page.reports == [["grid", "a"], ["grid", "b"]]
    for sink in ("sink", "clear"):
        outcome = browser.run("type", f"#{sink}", "cd")
        assert outcome.exit_code == 0
        assert "NOTE: the page handles the keys" in outcome.stderr
        assert page.reports[-2:] == [[sink, "c"], [sink, "d"]]
    for selector in ("#plain", "#button"):
        assert browser.run("type", selector, "x").meta["name"] == "NOT_EDITABLE"
    assert len(page.reports) == 6


def test_a_terminal_receives_the_keys_of_the_text_alone(browser: Session, site: Site) -> None:
    """A terminal passes every key on to a program, for example a shell."""
    page = site.watch(
        """<div class="xterm"><textarea id=t style="opacity:0;width:5px;height:5px"></textarea><pre>$ </pre></div>
        <script>t.onkeydown = (event) => { event.preventDefault(); report(event.key) }</script>"""
    )
    browser.ok("open", page.url)
    refused = browser.run("fill", "#t", "ls")
    assert (refused.stderr.partition(":")[0], page.reports) == ("NOT_EDITABLE", [])
    assert browser.ok("type", "#t", "ls\n") == {"typed": "#t"}
    assert page.reports == ["l", "s", "Enter"]


def test_a_dialog_while_text_is_entered_is_reported(browser: Session, site: Site) -> None:
    page = site.watch("""<input id=f onkeydown="if (event.key === 'b') confirm('sure?')" onchange="report('change')">
    <input id=other oninput="report(this.value)">""")
    browser.ok("open", page.url)
    assert browser.run("type", "#f", "abc").meta["name"] == "DIALOG_OPEN"
    browser.ok("dialog", "accept")
    browser.ok("focus", "#other")
    browser.ok("press", "x")
    assert page.reports[-1] == "x", "input is still discarded"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("b", "abcb"), ("Shift+b", "abcB"), ("Shift+1", "abc!"), ("é", "abcé"), ("Space", "abc "), ("+", "abc+")),
        *(("Backspace", "ab"), ("Control+a", "abc"), ("Escape", "abc"), ("F5", "abc"), ("Control+w", "abc")),
    ],
)
def test_press_enters_the_character_of_the_key(browser: Session, site: Site, key: str, value: str) -> None:
    page = site.watch("<input id=f value=abc onkeyup='report(this.value)' oninput='report(this.value)'>")
    browser.ok("open", page.url)
    browser.ok("focus", "#f")
    browser.ok("press", "End")
    page.reports.clear()
    assert browser.ok("press", key)["pressed"] == key
    assert page.reports[-1] == value
    assert browser.ok("get", "url")["url"] == page.url
    assert len(browser.ok("tab", "list")["tabs"]) == 1


_BOXES = """<style>.unseen{position:absolute;width:1px;height:1px;clip:rect(0,0,0,0);overflow:hidden}</style>
<input type=checkbox id=native><label><input type=checkbox id=labelled style="display:none">behind a label</label>
<label for=terms>I accept the <a href="#left">terms</a></label><input type=checkbox id=terms class=unseen>
<input type=checkbox id=unlabelled class=unseen>
<div id=custom role=checkbox aria-checked=false onclick="this.ariaChecked = this.ariaChecked !== 'true'">custom</div>
<div id=late role=switch aria-checked=false
  onclick="setTimeout(() => this.ariaChecked = this.ariaChecked !== 'true', 100)">late</div>
<div id=menu role=menuitemcheckbox aria-checked=false onclick="this.ariaChecked = this.ariaChecked !== 'true'">m</div>
<div style="height:40px;overflow:auto"><p style="height:500px"></p><input type=checkbox id=inner></div>
<script>addEventListener('click', event => report([event.target.id, event.isTrusted]), true)</script>"""


@pytest.mark.parametrize("box", ["native", "labelled", "terms", "unlabelled", "custom", "late", "menu", "inner"])
def test_check_and_uncheck_end_in_the_named_state(browser: Session, site: Site, box: str) -> None:
    page = site.watch(_BOXES)
    browser.ok("open", page.url)
    for command, answer, state in (("check", "checked", True), ("uncheck", "unchecked", False)):
        for _ in range(2):
            assert browser.ok(command, f"#{box}") == {answer: f"#{box}"}
            assert browser.ok("is", "checked", f"#{box}") == {"checked": state}
    assert [report for report in page.reports if report[0] == box] == [[box, True]] * 2
    assert browser.ok("get", "url")["url"] == page.url, "a link in the label was clicked"


@pytest.mark.parametrize(
    ("body", "command", "code"),
    [
        ("<input type=checkbox id=b onclick='return false'>", "check", "COMMAND_FAILED"),
        ("<div id=b role=checkbox aria-checked=false>b</div>", "check", "COMMAND_FAILED"),
        ("<input type=checkbox id=b disabled>", "check", "NOT_EDITABLE"),
        ("<fieldset disabled><input type=checkbox id=b></fieldset>", "check", "NOT_EDITABLE"),
        ("<input type=radio id=b checked>", "uncheck", "COMMAND_FAILED"),
        ("<input id=b>", "check", "NOT_EDITABLE"),
        ("<input type=checkbox id=b style='display:none'>", "check", "COMMAND_FAILED"),
        (
            "<div style='position:relative'><input type=checkbox id=b>"
            "<div id=cover style='position:absolute;inset:0;background:red'></div></div>",
            *("check", "ELEMENT_COVERED"),
        ),
    ],
)
def test_a_box_that_cannot_be_set_is_an_error(browser: Session, site: Site, body: str, command: str, code: str) -> None:
    page = site.watch(f"{body}<script>addEventListener('click', event => report(event.isTrusted), true)</script>")
    browser.ok("open", page.url)
    outcome = browser.run(command, "#b")
    assert (outcome.exit_code, outcome.meta["name"]) == (1, code)
    assert page.reports in ([], [True])
    assert (page.reports == [True]) == (code == "COMMAND_FAILED" and "display:none" not in body and "radio" not in body)


_LISTS = """<select id=one><option value=a>Apple<option value=b>Two   words<option value=c disabled>Cherry
<optgroup label=g disabled><option value=d>Date</optgroup></select>
<select id=many multiple><option value=x selected>X<option value=y>Y<option value=z>Z</select>
<select id=stubborn onchange="this.value = 'a'"><option>a<option>b</select><select id=off disabled><option>a</select>
<div id=combo role=combobox tabindex=0>Choose</div><input id=text>
<script>for (const kind of ['input', 'change']) addEventListener(kind, ({target}) =>
  report([kind, target.id, ...[...target.selectedOptions].map(option => option.value)]))</script>"""


@pytest.mark.parametrize(
    ("argv", "selected"),
    [
        (("#one", "b"), ["b"]),
        (("#one", "Two words"), ["b"]),
        (("#many", "y", "Z"), ["y", "z"]),
        (("#many", "x", "y", "z"), ["x", "y", "z"]),
    ],
)
def test_select_by_value_or_label_sends_input_and_change(
    browser: Session, site: Site, argv: tuple[str, ...], selected: list[str]
) -> None:
    page = site.watch(_LISTS)
    browser.ok("open", page.url)
    assert browser.ok("select", *argv) == {"selected": selected}
    assert page.reports == [[kind, argv[0][1:], *selected] for kind in ("input", "change")]
    browser.ok("select", *argv)
    assert len(page.reports) == 2, "selecting the same options again is not a change"


@pytest.mark.parametrize(
    ("argv", "code", "advice"),
    [
        (("#one", "nope"), "COMMAND_FAILED", "'Apple (a)'"),
        (("#one", "App"), "COMMAND_FAILED", "'Apple (a)'"),
        (("#many", "y", "nope"), "COMMAND_FAILED", "'Y (y)'"),
        (("#one", "c"), "COMMAND_FAILED", "another option"),
        (("#one", "Date"), "COMMAND_FAILED", "another option"),
        (("#one", "a", "b"), "COMMAND_FAILED", "one value"),
        (("#off", "a"), "NOT_EDITABLE", "enables"),
        (("#combo", "a"), "NOT_EDITABLE", "click #combo"),
        (("#text", "a"), "NOT_EDITABLE", "fill #text"),
    ],
)
def test_select_refuses_and_changes_nothing(
    browser: Session, site: Site, argv: tuple[str, ...], code: str, advice: str
) -> None:
    page = site.watch(_LISTS)
    browser.ok("open", page.url)
    outcome = browser.run("select", *argv)
    assert (outcome.exit_code, outcome.meta["name"]) == (1, code)
    assert advice in outcome.stderr.splitlines()[-1]
    assert page.reports == []


def test_a_selection_that_the_page_reverts_is_an_error(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch(_LISTS).url)
    assert browser.run("select", "#stubborn", "b").meta["name"] == "COMMAND_FAILED"


@pytest.mark.parametrize(
    ("argv", "selected"),
    [
        (("#p",), "The quick brown fox"),
        (("#p", "quick brown"), "quick brown"),
        (("#d", "one Second"), "one\n\nSecond"),
        (("#i", "world"), "world"),
        (("#i",), "hello world"),
        (("#n",), "123"),
        (("#e", "me"), "me"),
    ],
)
def test_select_text_selects_a_passage(browser: Session, site: Site, argv: tuple[str, ...], selected: str) -> None:
    page = site.watch("""<p id=p>The <b>quick</b>
    brown fox</p><div id=d><p>First one</p><p>Second one</p></div><input id=i value="hello world">
    <input id=n type=number value=123><div id=e contenteditable>edit me</div>
    <script>document.onselectionchange = () => report(getSelection().toString())</script>""")
    browser.ok("open", page.url)
    assert browser.ok("select-text", *argv) == {"selected_text": selected}
    page.wait_for(selected)


def test_select_text_answers_when_an_editor_has_followed_the_selection(browser: Session, site: Site) -> None:
    page = site.watch("""<div id=e contenteditable>edit me</div><script>document.onselectionchange =
    () => setTimeout(() => report(getSelection().toString()), 10)</script>""")
    browser.ok("open", page.url)
    browser.ok("select-text", "#e", "edit")
    assert page.reports[-1:] == ["edit"]


@pytest.mark.parametrize("argv", [("#p", "slow"), ("#secret",), ("#unselectable",), ("#empty",), ("#blank",)])
def test_select_text_fails_when_there_is_nothing_to_select(browser: Session, site: Site, argv: tuple[str, ...]) -> None:
    browser.ok(
        "open",
        site.watch("""<p id=p>quick</p><input id=secret type=password value=x><p id=empty><input id=blank>
        <p id=unselectable style="user-select:none">text</p>""").url,
    )
    assert browser.run("select-text", *argv).exit_code == 1


def test_focus_fails_on_an_element_that_cannot_have_it(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch("<input id=f><p id=p>text").url)
    assert browser.ok("focus", "#f") == {"focused": "#f"}
    assert browser.run("focus", "#p").meta["name"] == "COMMAND_FAILED"


def test_scroll_reports_position_and_maximum(browser: Session, site: Site) -> None:
    browser.ok(
        "open",
        site.watch("""<style>body{margin:0;height:5000px}</style>
        <div id=box style="height:100px;overflow:auto;scroll-behavior:smooth">
        <p id=in style="height:400px;margin:0"></div>
        <div id=fixed style="height:50px;overflow:hidden"><p id=cut style="height:400px"></div>""").url,
    )
    assert browser.ok("scroll", "down", 120, "-s", "#in") == {
        "scrolled": "down",
        "moved": 120,
        "position": 120,
        "max": 300,
        "of": "<div#box>",
    }
    assert browser.ok("scroll", "down", 1_000, "-s", "#in")["moved"] == 180
    outcome = browser.run("scroll", "down", 10, "-s", "#in")
    assert outcome.data["moved"] == 0
    assert "NOTE: nothing moved" in outcome.stderr
    moved = browser.ok("scroll", "down", 10, "-s", "#cut")
    assert (moved["moved"], moved["of"]) == (10, "page")
    assert browser.ok("scroll", "up", 1_000)["position"] == 0


def test_scroll_moves_the_main_part_of_an_application(browser: Session, site: Site) -> None:
    browser.ok(
        "open",
        site.watch("""<style>html,body{height:100%;margin:0;overflow:hidden}
        div,main{position:absolute;height:100%;overflow:auto}</style>
        <div id=side style="left:0;width:100px"><p style="height:9000px"></div>
        <main id=main style="left:100px;right:0"><p style="height:9000px"></main>""").url,
    )
    assert browser.ok("scroll")["of"] == "<main#main>"
    outcome = browser.run("scroll", "right")
    assert outcome.data["moved"] == 0
    assert "NOTE: nothing moved" in outcome.stderr


def test_scroll_of_an_element_that_a_script_scrolls_sends_it_a_wheel_event(browser: Session, site: Site) -> None:
    page = site.watch("""<style>body{height:5000px}</style><canvas id=map></canvas><script>
    map.addEventListener('wheel', event => { event.preventDefault(); report(event.deltaY) }, {passive: false})
    document.onscroll = () => report('page')</script>""")
    browser.ok("open", page.url)
    outcome = browser.run("scroll", "down", 200, "-s", "#map")
    assert outcome.data == {"scrolled": "down", "of": "<canvas#map>"}
    assert "NOTE: the page scrolls <canvas#map> by itself" in outcome.stderr
    assert page.reports == [200]


def test_get_reads_values_counts_and_attributes(browser: Session, site: Site) -> None:
    browser.ok(
        "open",
        site.watch("""<p>one<p>two<input id=i value=typed><select id=m multiple><option selected>a<option>b
        <option selected>c</select><div id=e contenteditable><p>x</p><p>y</p></div><a id=a href="/there" title=T>a</a>
        <input id=h type=hidden value=token>""").url,
    )
    assert browser.ok("get", "value", "#i") == {"value": "typed"}
    assert browser.ok("get", "value", "#m") == {"value": ["a", "c"]}
    assert browser.ok("get", "value", "#e") == {"value": "x\ny"}
    assert browser.ok("get", "count", "body > p") == {"count": 2}
    assert browser.ok("get", "count", "#no") == {"count": 0}
    assert browser.ok("get", "attr", "href", "#a") == {"attr": "href", "value": "/there"}
    assert browser.ok("get", "attr", "alt", "#a") == {"attr": "alt", "value": None}
    assert browser.run("get", "value", "p").meta["name"] == "COMMAND_FAILED"
    assert browser.run("get", "value", "#h").meta["name"] == "COMMAND_FAILED"


def test_a_long_text_is_read_in_parts(browser: Session, site: Site) -> None:
    text = " ".join(str(number) for number in range(12_000))
    browser.ok("open", site.watch(f"<p id=p>{text}</p>").url)
    first = browser.run("get", "text", "#p")
    offset = first.stderr.rpartition("get text #p --from ")[2].split()[0]
    read = first.data["text"].partition("…[")[0] + browser.ok("get", "text", "#p", "--from", offset)["text"]
    assert read.partition("…[")[0] == text[: len(read.partition("…[")[0])]
    assert len(read) > 40_000


def test_is_visible_is_false_for_empty_and_hidden_elements(browser: Session, site: Site) -> None:
    browser.ok(
        "open",
        site.watch("""<p id=shown>x<p id=gone style="display:none">x<p id=unseen style="visibility:hidden">x
        <div id=empty></div><div id=contents style="display:contents">x</div>
        <iframe style="display:none" srcdoc="<p id=framed>x"></iframe>""").url,
    )
    visible = {name: browser.ok("is", "visible", f"#{name}")["visible"] for name in ("shown", "contents")}
    hidden = {
        name: browser.ok("is", "visible", f"#{name}")["visible"] for name in ("gone", "unseen", "empty", "framed")
    }
    assert all(visible.values())
    assert not any(hidden.values())
