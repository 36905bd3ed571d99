"""The typical task of an agent: open, snapshot, fill, click, wait, screenshot, close."""

from __future__ import annotations

from support.pages import Site
from support.server import Session
from support.snapshots import ref_of

LOGIN = """<title>Sign in</title>
<form onsubmit="event.preventDefault(); setTimeout(() => {
  document.querySelector('#out').textContent = 'Welcome ' + user.value }, 150)">
<label>Name <input id=user></label><label>Password <input id=pass type=password></label>
<button>Sign in</button></form><p id=out></p>"""


def test_an_agent_signs_in(browser: Session, site: Site) -> None:
    opened = browser.ok("open", site.add("/login", LOGIN))
    assert opened["title"] == "Sign in"

    snapshot = browser.ok("snapshot", "-i")["snapshot"]
    browser.ok("fill", ref_of(snapshot, "textbox", "Name"), "Ada")
    browser.ok("fill", ref_of(snapshot, "textbox", "Password"), "hunter2")
    browser.ok("click", ref_of(snapshot, "button", "Sign in"))
    browser.ok("wait", "--text", "Welcome Ada")
    screenshot = browser.run("screenshot")

    assert screenshot.attachments[0][0] == "image/jpeg"
    assert screenshot.attachments[0][1].startswith(b"\xff\xd8\xff")
    assert browser.ok("close") == {"closed": True}
