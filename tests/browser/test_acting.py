"""Commands that act on a page, such as click, fill, press and scroll: the page receives the right events."""

from __future__ import annotations

import pytest

from support.pages import Site, WatchedPage
from support.server import Session
from support.snapshots import ref_of


@pytest.fixture
def page(browser: Session, site: Site) -> WatchedPage:
    watched = site.watch(
        """<style>body{height:4000px;width:4000px;margin:0}</style>
        <button id=b>Press</button> <button id=other>Other</button>
        <input type=checkbox id=box> <input type=radio name=r id=one> <input type=radio name=r id=two>
        <textarea id=t>old</textarea> <input id=i>
        <select id=s><option value=a>Apple<option value=b>Banana</select>
        <select id=m multiple><option value=x>X<option value=y>Y<option value=z>Z</select>
        <div id=pane style="width:100px;height:100px;overflow:auto"><div style="width:2000px;height:2000px"></div></div>
        <script>
        for (const kind of ['click', 'dblclick', 'mouseover', 'focusin'])
          document.addEventListener(kind, event => event.target.id && report([kind, event.target.id, event.isTrusted]))
        for (const kind of ['change', 'input'])
          document.addEventListener(kind, ({target}) => report([kind, target.id,
            ['checkbox', 'radio'].includes(target.type) ? target.checked
            : target.multiple ? [...target.selectedOptions].map(option => option.value) : target.value]))
        document.addEventListener('keydown', event => report(['key', event.key, event.ctrlKey, event.shiftKey]))
        document.addEventListener('scroll', () => report(['scrolled', scrollX, scrollY]))
        pane.addEventListener('scroll', () => report(['pane', pane.scrollLeft, pane.scrollTop]))
        </script>"""
    )
    browser.ok("open", watched.url)
    return watched


def test_pages_see_a_mouse_that_can_hover(browser: Session, site: Site) -> None:
    watched = site.watch(
        "<script>report(['(pointer: fine)', '(hover: hover)'].map((query) => matchMedia(query).matches))</script>"
    )
    browser.ok("open", watched.url)
    assert watched.reports == [[True, True]]


def test_a_click_is_a_trusted_event(browser: Session, page: WatchedPage) -> None:
    assert browser.ok("click", "#b") == {"clicked": "#b", "changed": False}
    page.wait_for(["click", "b", True])


def test_click_accepts_a_ref_a_css_selector_and_an_xpath(browser: Session, page: WatchedPage) -> None:
    ref = ref_of(browser.ok("snapshot", "-i")["snapshot"], "button", "Other")
    for selector in (ref, "button#other", "xpath=//button[text()='Other']"):
        page.reports.clear()
        browser.ok("click", selector)
        page.wait_for(["click", "other", True])


def test_a_click_moves_the_mouse_before_it_presses_the_button(browser: Session, site: Site) -> None:
    """The events arrive in the order of a real mouse, and the button matches `:hover` when it is pressed."""
    kinds = ["mouseover", "mousemove", "mousedown", "mouseup", "click"]
    page = site.watch(
        f"""<button id=b>Press</button><script>
        for (const kind of {kinds}) b.addEventListener(kind, () => report([kind, b.matches(':hover')]))</script>"""
    )
    browser.ok("open", page.url)
    for _ in range(5):
        page.reports.clear()
        browser.ok("click", "#b")
        page.wait_for(["click", True])
        events = [kind for kind, hovered in page.reports if hovered]
        assert events == [kind for kind in kinds if kind in events]
        assert {"mousedown", "mouseup"} <= {*events}


def test_click_accepts_a_menu_that_opens_over_its_button_on_the_press(browser: Session, site: Site) -> None:
    """The select of Material UI opens its list on mousedown."""
    watched = site.watch(
        """<div id="list" style="display: none; position: fixed; inset: 0"></div>
        <div id="select" role="combobox" aria-expanded="false" tabindex="0">Second class</div><script>
        select.addEventListener("mousedown", () => {
          select.ariaExpanded = "true"; list.style.display = "block"; report("open") })</script>"""
    )
    browser.ok("open", watched.url)
    assert browser.ok("click", "#select")["changed"] is True
    assert watched.reports == ["open"]


def test_click_accepts_a_menu_that_handles_pointer_events_alone(browser: Session, site: Site) -> None:
    """The menus of JupyterLab suppress the mouse events, and close when the pointer is released."""
    watched = site.watch(
        """<div id="entry">Save</div><script>
        entry.addEventListener("pointerdown", (event) => event.preventDefault())
        entry.addEventListener("pointerup", () => { entry.remove(); report("saved") })</script>"""
    )
    browser.ok("open", watched.url)
    browser.ok("click", "#entry")
    assert watched.reports == ["saved"]


def test_click_waits_for_a_cover_that_goes_away(browser: Session, site: Site) -> None:
    watched = site.watch(
        """<style>#list { position: fixed; inset: 0 }</style><button id="go" onclick="report('go')">Go</button>
        <div id="list" hidden></div><button id="open" style="position: relative; z-index: 1">Open</button><script>
        document.querySelector("#open").addEventListener("click", () => {
          list.hidden = false; setTimeout(() => { list.hidden = true }, 500) })</script>"""
    )
    browser.ok("open", watched.url)
    browser.ok("click", "#open")
    browser.ok("click", "#go")
    assert watched.reports == ["go"]


def test_click_on_a_field_reaches_the_frame_that_a_component_draws_over_it(browser: Session, site: Site) -> None:
    watched = site.watch(
        """<style>#frame { position: relative; width: 200px; height: 40px }
        #frame input { pointer-events: none; position: absolute; inset: 0 }</style>
        <div id="frame" onclick="report('open')"><input id="field"></div>"""
    )
    browser.ok("open", watched.url)
    browser.ok("click", "#field")
    assert watched.reports == ["open"]


def test_click_accepts_an_option_whose_list_closes_on_the_press(browser: Session, site: Site) -> None:
    """The list of Gradio selects on mousedown and moves away."""
    watched = site.watch(
        """<ul id="list" role="listbox"><li id="one" role="option">One</li></ul><script>
        one.addEventListener("mousedown", () => { list.style.marginTop = "300px"; report("one") })</script>"""
    )
    browser.ok("open", watched.url)
    browser.ok("click", "#one")
    assert watched.reports == ["one"]


def test_dblclick_sends_a_double_click(browser: Session, page: WatchedPage) -> None:
    browser.ok("dblclick", "#b")
    page.wait_for(["dblclick", "b", True])


def test_a_click_at_a_point_moves_the_mouse_there_first(browser: Session, site: Site) -> None:
    watched = site.watch(
        """<div id="board" style="position: fixed; inset: 0"></div><script>
        for (const kind of ["mousemove", "click"])
          board.addEventListener(kind, (event) => report([kind, event.clientX, event.clientY]))</script>"""
    )
    browser.ok("open", watched.url)
    answer = browser.ok("click", "--at", "150,90")
    assert answer["on"] == "<div#board>"
    assert watched.reports[-2:] == [["mousemove", 150, 90], ["click", 150, 90]]


def test_drag_rests_at_its_end_for_pages_that_poll_the_pointer(browser: Session, site: Site) -> None:
    """SortableJS polls every 50 ms and drops at the last polled place."""
    watched = site.watch(
        """<div id="a" style="height: 60px">a</div><div id="b" style="height: 60px">b</div><script>
        let moved = 0
        addEventListener("mousemove", (event) => { moved = event.timeStamp })
        addEventListener("mouseup", (event) => report(event.timeStamp - moved > 100))</script>"""
    )
    browser.ok("open", watched.url)
    browser.ok("drag", "#a", "#b")
    assert watched.reports == [True]


def test_drag_waits_for_an_element_that_moves(browser: Session, site: Site) -> None:
    watched = site.watch(
        """<style>#card { width: 40px; position: relative; transition: left 600ms linear; left: 0 }
        #card.moved { left: 800px } #target { margin-top: 40px; height: 60px; background: silver }</style>
        <button onclick="card.classList.toggle('moved')">move</button>
        <div id="card" draggable="true">card</div><div id="target">target</div><script>
        card.addEventListener("dragstart", (event) => event.dataTransfer.setData("text/plain", "x"))
        target.addEventListener("dragover", (event) => event.preventDefault())
        target.addEventListener("drop", (event) => { event.preventDefault(); report("dropped") })</script>"""
    )
    browser.ok("open", watched.url)
    for _ in range(3):
        browser.ok("click", "text=move")
        browser.ok("drag", "#card", "#target")
    assert watched.reports == ["dropped"] * 3


def test_drag_fails_when_another_element_receives_the_press(browser: Session, site: Site) -> None:
    watched = site.watch(
        """<style>#cover { display: none; position: fixed; inset: 0 }</style>
        <div id="card" style="margin: 300px">card</div><div id="cover"></div><div id="target">target</div>
        <script>card.addEventListener("mousemove", () => { cover.style.display = "block" })</script>"""
    )
    browser.ok("open", watched.url)
    outcome = browser.run("drag", "#card", "#target")
    assert outcome.stderr.startswith("ELEMENT_COVERED")


def test_hover_moves_the_mouse_without_a_click(browser: Session, page: WatchedPage) -> None:
    browser.ok("hover", "#other")
    page.wait_for(["mouseover", "other", True])
    assert not any(report[0] == "click" for report in page.reports)


def test_key_presses_go_to_the_focused_element(browser: Session, page: WatchedPage) -> None:
    browser.ok("focus", "#i")
    page.wait_for(["focusin", "i", True])
    browser.ok("press", "q")
    page.wait_for(["input", "i", "q"])


def test_repeating_check_or_uncheck_changes_nothing(browser: Session, page: WatchedPage) -> None:
    for command, wanted in (("check", True), ("check", True), ("uncheck", False), ("uncheck", False)):
        browser.ok(command, "#box")
        assert browser.ok("is", "checked", "#box")["checked"] is wanted
    assert [report for report in page.reports if report[:2] == ["change", "box"]] == [
        ["change", "box", True],
        ["change", "box", False],
    ]


def test_check_selects_a_radio_button(browser: Session, page: WatchedPage) -> None:
    browser.ok("check", "#two")
    page.wait_for(["change", "two", True])
    assert browser.ok("is", "checked", "#one")["checked"] is False


def test_fill_replaces_the_text_of_a_field(browser: Session, page: WatchedPage) -> None:
    browser.ok("fill", "#t", "new")
    page.wait_for(["input", "t", "new"])


def test_fill_with_an_empty_text_empties_the_field(browser: Session, page: WatchedPage) -> None:
    browser.ok("fill", "#t", "")
    page.wait_for(["input", "t", ""])


def test_type_appends_text_key_by_key(browser: Session, page: WatchedPage) -> None:
    assert browser.ok("type", "#t", "XyZ") == {"typed": "#t", "value": "oldXyZ"}
    assert [report[1] for report in page.reports if report[0] == "key"] == ["X", "y", "Z"]
    values = [report[2] for report in page.reports if report[:2] == ["input", "t"]]
    assert values == ["oldX", "oldXy", "oldXyZ"]


def test_numbers_and_booleans_in_argv_are_sent_as_text(browser: Session, page: WatchedPage) -> None:
    browser.ok("fill", "#t", 12.5)
    page.wait_for(["input", "t", "12.5"])
    browser.ok("fill", "#t", True)
    page.wait_for(["input", "t", "true"])


def test_select_selects_an_option_by_its_value(browser: Session, page: WatchedPage) -> None:
    assert browser.ok("select", "#s", "b") == {"selected": ["b"]}
    page.wait_for(["change", "s", "b"])


def test_select_selects_several_options(browser: Session, page: WatchedPage) -> None:
    browser.ok("select", "#m", "x", "z")
    page.wait_for(["change", "m", ["x", "z"]])


def test_select_fails_for_an_unknown_option(browser: Session, page: WatchedPage) -> None:
    outcome = browser.run("select", "#s", "cherry")
    assert (outcome.exit_code, outcome.meta["name"]) == (1, "COMMAND_FAILED")
    assert not any(report[:2] == ["change", "s"] for report in page.reports)


def test_press_sends_keys_and_key_combinations(browser: Session, page: WatchedPage) -> None:
    browser.ok("focus", "#i")
    for key in ("a", "Enter", "ArrowLeft", "Escape", "Tab", "Control+a", "Shift+Tab"):
        browser.ok("press", key)
    for report in (
        *(["key", "a", False, False], ["key", "Enter", False, False], ["key", "ArrowLeft", False, False]),
        *(["key", "Escape", False, False], ["key", "Tab", False, False], ["key", "a", True, False]),
        ["key", "Tab", False, True],
    ):
        assert report in page.reports, report


def test_control_a_selects_the_text_of_a_field(browser: Session, page: WatchedPage) -> None:
    browser.ok("focus", "#t")
    browser.ok("press", "Control+a")
    browser.ok("press", "Q")
    page.wait_for(["input", "t", "Q"])


def test_a_date_field_accepts_key_presses(browser: Session, site: Site) -> None:
    page = site.watch("<input type=date id=d oninput='report(this.value)'>")
    browser.ok("open", page.url)
    browser.ok("focus", "#d")
    for key in "12252016":
        browser.ok("press", key)
    page.wait_for("2016-12-25")


def test_scroll_moves_the_page_in_each_direction(browser: Session, page: WatchedPage) -> None:
    for argv, position in (
        (("scroll", "down", 500), [0, 500]),
        (("scroll", "right", 250), [250, 500]),
        (("scroll", "up", 200), [250, 300]),
        (("scroll", "left", 100), [150, 300]),
    ):
        browser.ok(*argv)
        page.wait_for(["scrolled", *position])


def test_scroll_without_arguments_scrolls_down(browser: Session, page: WatchedPage) -> None:
    browser.ok("scroll")
    page.wait_for(["scrolled", 0, 300])


def test_scroll_of_an_element_does_not_scroll_the_page(browser: Session, page: WatchedPage) -> None:
    for option, position in (("-s", 120), ("--selector", 240)):
        browser.ok("scroll", "down", 120, option, "#pane")
        page.wait_for(["pane", 0, position])
    assert not any(report[0] == "scrolled" for report in page.reports)


def test_an_action_on_a_missing_element_fails_without_events(browser: Session, page: WatchedPage) -> None:
    for argv in (
        *(("click", "#no"), ("dblclick", "#no"), ("hover", "#no"), ("focus", "#no"), ("check", "#no")),
        *(("uncheck", "#no"), ("fill", "#no", "x"), ("type", "#no", "x"), ("select", "#no", "x"), ("click", "@e999")),
    ):
        outcome = browser.run(*argv)
        assert outcome.exit_code == 1, argv
        assert outcome.meta["name"] in ("ELEMENT_NOT_FOUND", "COMMAND_FAILED"), argv
        assert outcome.stdout == ""
    assert page.reports == []


def test_text_and_xpath_selectors_find_an_element(browser: Session, site: Site) -> None:
    page = site.watch("""<div><button onclick="report('first')">Cancel</button>
      <button onclick="report('second')">Save "it's" now</button></div><p>Save me</p>""")
    browser.ok("open", page.url)
    browser.ok("click", "//button[1]")
    page.wait_for("first")
    browser.ok("click", """text=Save "it's" now""")
    page.wait_for("second")
    assert browser.ok("get", "text", "text=Save me") == {"text": "Save me"}
    assert browser.run("click", "text=No such text").exit_code == 1
