"""The answer of an act: what it changed, the navigation it started, and the notes about it."""

from __future__ import annotations

import pytest

from support.pages import Site
from support.server import Session

TICKER = "<p id=clock></p><script>setInterval(() => clock.textContent = performance.now(), 30)</script>"
SINGLE_PAGE_APP = """<div id=app></div><script>
setTimeout(() => app.innerHTML = '<button>First</button>', 700)</script>"""


@pytest.fixture
def target(site: Site) -> str:
    return site.watch("<h1>Next</h1>", title="Next").url


@pytest.mark.parametrize(
    ("script", "changed"),
    [
        ("", False),
        ("out.textContent = 'now'", True),
        ("setTimeout(() => out.textContent = 'soon', 50)", True),
        ("out.hidden = true", True),
        ("out.style.display = 'none'", True),
        ("box.checked = true; box.dispatchEvent(new Event('change'))", False),
    ],
)
def test_a_click_reports_whether_the_page_changed(browser: Session, site: Site, script: str, changed: bool) -> None:
    page = site.watch(
        f'{TICKER}<p id=out>out</p><input type=checkbox id=box><button id=b onclick="{script}">b</button>'
    )
    browser.ok("open", page.url)
    browser.ok("wait", 600)  # The clock has changed often enough to be known as noise.
    assert browser.ok("click", "#b") == {"clicked": "#b", "changed": changed}


@pytest.mark.parametrize(
    "markup",
    [
        "<a id=b href='{url}'>b</a>",
        "<button id=b onclick=\"location = '{url}'\">b</button>",
        "<button id=b onclick=\"setTimeout(() => location = '{url}', 50)\">b</button>",
        "<form action='{url}'><button id=b>b</button></form>",
    ],
)
def test_a_click_that_leads_to_another_page_waits_for_it(
    browser: Session, site: Site, target: str, markup: str
) -> None:
    browser.ok("open", site.watch(markup.format(url=target)).url)
    outcome = browser.run("click", "#b")
    assert outcome.data["title"] == "Next"
    assert outcome.data["url"].startswith(target)
    assert "changed" not in outcome.data


def test_a_url_that_changes_within_the_document_is_reported(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch("<button id=b onclick=\"history.pushState(0, '', '?p=2')\">b</button>").url)
    assert browser.ok("click", "#b")["url"].endswith("?p=2")


def test_a_click_in_a_frame_reports_the_change_in_the_frame(browser: Session, site: Site) -> None:
    inner = site.watch("<p id=out></p><button onclick=\"out.textContent = 'x'\">inner</button>")
    browser.ok("open", site.watch(f"<iframe src='{inner.url}'></iframe>").url)
    browser.ok("wait", "--text", "inner")
    assert browser.ok("click", "text=inner")["changed"] is True


def test_a_field_that_gets_the_focus_is_named(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch("<input id=name><button id=b onclick='document.all.name.focus()'>b</button>").url)
    assert "the focus is now in <input#name>" in browser.run("click", "#b").stderr


def test_a_canvas_is_not_reported_as_unchanged(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch("<p>A drawing</p><canvas id=c width=100 height=100></canvas>").url)
    outcome = browser.run("click", "--at", "10,10", "#c")
    assert outcome.data == {"clicked": "#c"}
    assert "take a screenshot" in outcome.stderr


def test_open_waits_for_the_first_controls_of_a_single_page_app(browser: Session, site: Site) -> None:
    outcome = browser.run("open", site.watch(SINGLE_PAGE_APP).url)
    assert outcome.stderr == ""
    assert browser.ok("click", "text=First")["clicked"] == "text=First"


def test_open_reports_a_page_that_shows_no_controls_in_time(browser: Session, site: Site) -> None:
    page = site.watch("<div id=app></div><script>setInterval(() => app.className = Math.random(), 50)</script>")
    assert "the page shows no controls yet" in browser.run("open", page.url).stderr


def test_open_of_a_page_without_scripts_does_not_wait_for_controls(browser: Session, site: Site) -> None:
    path = "/plain-text"
    site.pages[path] = "<!doctype html><title>Plain</title>"
    assert browser.run("open", f"http://127.0.0.1:{site.port}{path}").stderr == ""


def test_an_element_that_the_page_replaces_on_release_was_clicked(browser: Session, site: Site) -> None:
    page = site.watch("""<div id=b style="width:99px">Item</div><script>
      b.onmouseup = () => { report('released'); b.replaceChildren('Done') }</script>""")
    browser.ok("open", page.url)
    assert browser.ok("click", "#b")["changed"] is True
    page.wait_for("released")
