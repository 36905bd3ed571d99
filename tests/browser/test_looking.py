"""Commands that read a page: snapshot, screenshot, pdf, get text, is."""

from __future__ import annotations

import io
import re

import pytest
from PIL import Image

from support.pages import Site
from support.server import Outcome, Session
from support.snapshots import ref_of

FORM = """<h1>Order</h1><p>Plain words</p>
<div><ul><li>one<ul><li>two<ul><li>three<ul><li>four</li></ul></li></ul></li></ul></li></ul></div>
<a href="/target">a link</a><button id=go onclick="report('go')">Go</button>
<div style="cursor: pointer" onclick="report('div')">No role</div>
<fieldset id=part><input aria-label=Inside></fieldset>"""


def image_of(outcome: Outcome) -> Image.Image:
    assert outcome.exit_code == 0, outcome.stderr
    mime_type, content = outcome.attachments[0]
    assert outcome.data["attached"] == mime_type == "image/jpeg"
    assert outcome.data["bytes"] == len(content)
    return Image.open(io.BytesIO(content))


def colour_at(image: Image.Image, x: int, y: int) -> str:
    pixel = image.convert("RGB").getpixel((x, y))
    assert isinstance(pixel, tuple)
    return "red" if pixel[0] > 200 and pixel[1] < 80 else "white" if min(pixel) > 240 else "other"


def test_a_snapshot_contains_the_page_as_a_tree(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch(FORM).url)
    data = browser.ok("snapshot")
    assert 'heading "Order"' in data["snapshot"]
    assert 'StaticText "Plain words"' in data["snapshot"]
    assert "refs" not in data
    assert "lifecycle" not in data


def test_an_interactive_snapshot_omits_plain_text(browser: Session, site: Site) -> None:
    page = site.watch(FORM)
    browser.ok("open", page.url)
    for option in ("-i", "--interactive"):
        snapshot = browser.ok("snapshot", option)["snapshot"]
        assert "Plain words" not in snapshot
        browser.ok("click", ref_of(snapshot, "button", "Go"))
    assert page.reports == ["go", "go"]


def test_a_cursor_snapshot_lists_clickable_elements_without_a_role(browser: Session, site: Site) -> None:
    page = site.watch(FORM)
    browser.ok("open", page.url)
    for option in ("-C", "--cursor"):
        snapshot = browser.ok("snapshot", "-i", option)["snapshot"]
        assert "clickable" in snapshot
        browser.ok("click", ref_of(snapshot, "generic", "No role"))
    assert page.reports == ["div", "div"]


def test_a_compact_snapshot_omits_empty_structure(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch(FORM).url)
    whole = browser.ok("snapshot")["snapshot"]
    for option in ("-c", "--compact"):
        compact = browser.ok("snapshot", option)["snapshot"]
        assert len(compact) < len(whole)
        assert 'button "Go"' in compact


def test_a_snapshot_with_urls_contains_the_targets_of_links(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch(FORM).url)
    assert "/target" not in browser.ok("snapshot")["snapshot"]
    for option in ("-u", "--urls"):
        assert f"url={site.origin}/target" in browser.ok("snapshot", option)["snapshot"]


def test_a_depth_limits_the_levels_of_a_snapshot(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch(FORM).url)
    assert '"four"' in browser.ok("snapshot", "-d", 50)["snapshot"]
    for option in ("-d", "--depth"):
        shallow = browser.ok("snapshot", option, 3)["snapshot"]
        assert '"one"' in shallow
        assert '"four"' not in shallow


def test_a_selector_limits_a_snapshot_to_an_element(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch(FORM).url)
    for option in ("-s", "--selector"):
        snapshot = browser.ok("snapshot", option, "#part")["snapshot"]
        assert 'textbox "Inside"' in snapshot
        assert "Order" not in snapshot


def test_the_refs_option_adds_the_map_of_refs(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch(FORM).url)
    data = browser.ok("snapshot", "--refs")
    ref = ref_of(data["snapshot"], "button", "Go").removeprefix("@")
    assert data["refs"][ref] == {"role": "button", "name": "Go"}


def test_a_delta_snapshot_contains_only_changes(browser: Session, site: Site) -> None:
    page = site.watch(
        "<button id=b onclick=\"document.querySelector('h1').textContent = 'After'\">b</button><h1>Before</h1>"
    )
    browser.ok("open", page.url)
    assert browser.ok("snapshot", "--delta")["snapshot"]["kind"] == "full"
    assert browser.ok("snapshot", "--delta")["snapshot"]["kind"] == "unchanged"
    browser.ok("click", "#b")
    changed = browser.ok("snapshot", "--delta")["snapshot"]
    assert changed["kind"] != "unchanged"
    assert "After" in str(changed)


def test_a_full_delta_snapshot_contains_the_whole_tree(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch(FORM).url)
    browser.ok("snapshot", "--delta")
    full = browser.ok("snapshot", "--delta", "--full")["snapshot"]
    assert full["kind"] == "full"
    assert 'button "Go"' in full["tree"]


def test_refs_of_the_previous_page_are_invalid(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch("<button>Only here</button>").url)
    ref = ref_of(browser.ok("snapshot")["snapshot"], "button", "Only here")
    browser.ok("open", site.watch("<p>no button at all</p>").url)
    assert browser.run("click", ref).exit_code == 1


def test_a_screenshot_contains_the_visible_page(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch("<style>html{background:red}</style>").url)
    assert colour_at(image_of(browser.run("screenshot")), 200, 200) == "red"


def test_a_screenshot_of_an_element_has_its_size(browser: Session, site: Site) -> None:
    page = site.watch(
        "<style>body{margin:20px}</style><div id=box style='background:red;width:120px;height:60px'></div>"
    )
    browser.ok("open", page.url)
    image = image_of(browser.run("screenshot", "#box"))
    assert image.size == (120, 60)
    assert colour_at(image, 60, 30) == "red"


def test_a_screenshot_of_a_ref_has_its_size(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch("<button style='width:150px;height:40px'>wide</button>").url)
    ref = ref_of(browser.ok("snapshot")["snapshot"], "button", "wide")
    assert image_of(browser.run("screenshot", ref)).size == (150, 40)


def test_a_full_screenshot_contains_the_whole_page(browser: Session, site: Site) -> None:
    page = site.watch(
        "<style>body{margin:0}</style><div style='height:2500px'></div><div style='background:red;height:100px'></div>"
    )
    browser.ok("open", page.url)
    assert image_of(browser.run("screenshot")).height < 2000
    for option in ("-f", "--full"):
        image = image_of(browser.run("screenshot", option))
        assert image.height == 2600
        assert colour_at(image, 50, 2550) == "red"


def test_an_annotated_screenshot_labels_elements_with_their_refs(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch(FORM).url)
    plain = image_of(browser.run("screenshot")).convert("RGB")
    outcome = browser.run("screenshot", "--annotate")
    refs = {entry.get("name"): entry["ref"] for entry in outcome.data["annotations"]}
    assert f"@{refs['Go']}" == ref_of(browser.ok("snapshot")["snapshot"], "button", "Go")
    assert image_of(outcome).convert("RGB").tobytes() != plain.tobytes()


def test_a_pdf_is_returned_as_an_attachment(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch("<p>printed</p>").url)
    outcome = browser.run("pdf")
    mime_type, content = outcome.attachments[0]
    assert mime_type == outcome.data["attached"] == "application/pdf"
    assert content.startswith(b"%PDF-")
    assert outcome.data["bytes"] == len(content)


@pytest.mark.promise("output:no-server-path")
def test_screenshots_and_pdfs_leave_no_file_and_return_no_path(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch("<p>x</p>").url)
    outcomes = [browser.run("screenshot"), browser.run("screenshot", "--annotate"), browser.run("pdf")]
    assert all("path" not in outcome.data for outcome in outcomes)
    text = " ".join(outcome.stdout + outcome.stderr for outcome in outcomes)
    assert not re.search(r"/(tmp|run|root|home|var|usr|work)\b", text), text
    assert [path for path in (browser.server.devtools_directory / "out").rglob("*") if path.is_file()] == []


def test_get_text_returns_visible_text_only(browser: Session, site: Site) -> None:
    page = site.watch("<div id=d>visible <span style='display:none'>hidden</span>&amp; \N{SNOWMAN}</div>")
    browser.ok("open", page.url)
    assert browser.ok("get", "text", "#d")["text"].strip() == "visible & \N{SNOWMAN}"


def test_get_text_accepts_a_ref_and_an_xpath(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch("<button>named</button><p>para</p>").url)
    ref = ref_of(browser.ok("snapshot")["snapshot"], "button", "named")
    assert browser.ok("get", "text", ref)["text"] == "named"
    assert browser.ok("get", "text", "xpath=//p")["text"] == "para"


def test_a_long_text_is_truncated_with_a_warning(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch(f"<p>{'word ' * 200_000}</p>").url)
    outcome = browser.run("get", "text", "body")
    assert outcome.exit_code == 0
    assert len(outcome.stdout) <= 30_000
    assert outcome.data["text"].startswith("word word")
    assert "cut" in outcome.data["text"][-60:]
    assert outcome.stderr.startswith("OUTPUT_TRUNCATED")


def test_is_returns_the_state_of_an_element(browser: Session, site: Site) -> None:
    page = site.watch(
        "<p id=shown>x</p><p id=hidden style='display:none'>x</p><input id=on><input id=off disabled>"
        "<input type=checkbox id=ticked checked><input type=checkbox id=clear>"
    )
    browser.ok("open", page.url)
    states = {
        (state, selector): browser.ok("is", state, selector)[state]
        for state, selector in (
            *(("visible", "#shown"), ("visible", "#hidden")),
            *(("enabled", "#on"), ("enabled", "#off")),
            *(("checked", "#ticked"), ("checked", "#clear")),
        )
    }
    assert list(states.values()) == [True, False, True, False, True, False]


def test_reading_a_missing_element_fails(browser: Session, site: Site) -> None:
    browser.ok("open", site.watch("").url)
    for argv in (("is", "visible", "#no"), ("is", "enabled", "#no"), ("is", "checked", "#no"), ("get", "text", "#no")):
        outcome = browser.run(*argv)
        assert (outcome.exit_code, outcome.meta["name"]) == (1, "ELEMENT_NOT_FOUND"), argv
