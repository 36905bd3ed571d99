"""Take the screenshots of the live view for the documentation, from a real server and a real browser.

cd tests && ../.venv/bin/python -m support.viewer_pictures ../docs/images
"""

from __future__ import annotations

import sys
from pathlib import Path

from support.pages import running_site
from support.server import running_server
from support.viewer_browser import ViewerPage, eventually, running_viewer_browser

SHOP = """<!doctype html><meta charset=utf-8><title>Harbour Coffee</title><style>
body { margin: 0; font: 17px/1.5 "Liberation Sans", sans-serif; color: #2b2320; background: #faf6f1 }
header { padding: 26px 56px; background: #3b2a22; color: #f6ede3; display: flex; align-items: baseline; gap: 40px }
header b { font-size: 25px } main { padding: 36px 56px }
.rows { display: grid; grid-template-columns: repeat(3, 1fr); gap: 26px } h1 { font-size: 33px; margin: 0 0 22px }
.card { background: #fff; border-radius: 14px; padding: 22px; box-shadow: 0 2px 10px #0001 }
.swatch { height: 130px; border-radius: 10px; margin-bottom: 16px }
.price { color: #8a5a2b; font-weight: bold; margin: 4px 0 }
form { margin-top: 34px; display: flex; gap: 14px }
input { flex: 1; font: inherit; padding: 12px; border: 1px solid #cbb }
button { font: inherit; padding: 12px 26px; border: 0; border-radius: 8px; background: #3b2a22; color: #fff }
</style><header><b>Harbour Coffee</b><span>Beans</span><span>Brewing</span><span>About us</span></header>
<main><h1>Freshly roasted this week</h1><div class=rows>
<div class=card><div class=swatch style="background:#7b4b2a"></div>Sidamo, washed<p class=price>€ 11.50</p></div>
<div class=card><div class=swatch style="background:#a9713d"></div>Huila, honey<p class=price>€ 12.90</p></div>
<div class=card><div class=swatch style="background:#54341f"></div>Mandheling<p class=price>€ 10.80</p></div>
</div><form onsubmit="return false"><input id=mail aria-label="E-mail" placeholder="E-mail for the newsletter">
<button>Subscribe</button></form></main>"""
REPORT = "<!doctype html><title>Quarterly report</title><h1>Quarterly report</h1>"


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with running_site() as site, running_viewer_browser() as browser:
        policy = {
            "open": {
                "allow_hosts": ["harbour-coffee.example", "reports.example"],
                "unsafe_allow_addresses": [f"127.0.0.1:{site.port}"],
                "unsafe_resolve": {
                    "harbour-coffee.example": f"127.0.0.1:{site.port}",
                    "reports.example": f"127.0.0.1:{site.port}",
                },
            }
        }
        site.add("/", SHOP)
        site.add("/q3", REPORT)
        with running_server(policy) as server, browser.page() as page:
            link = f"http://127.0.0.1:{server.port}/vnc/#token={server.token}"
            report, shop = server.session("report"), server.session("newsletter")
            report.ok("open", f"http://reports.example:{site.port}/q3")
            shop.ok("open", f"http://harbour-coffee.example:{site.port}/")
            report.run("open", "http://10.0.0.7/")
            shop.ok("snapshot", "-i")
            shop.ok("fill", "#mail", "ada@example.com")
            shop.ok("get", "title")
            shop.ok("screenshot")
            take(page, link, folder / "viewer-desktop.png")
            page.click_element("#control")
            page.wait_for("document.body.dataset.you === 'yes'", "not in control")
            shop.run("click", "button")
            page.resize(390, 844, phone=True)
            page.wait_for("document.querySelector('#activity').innerText.includes('HUMAN')", "not listed")
            wait_until_stable(page)
            (folder / "viewer-phone.png").write_bytes(page.screenshot())


def take(page: ViewerPage, link: str, path: Path) -> None:
    page.resize(1400, 900)
    page.visit(link)
    page.wait_until_live()
    wait_until_stable(page)
    path.write_bytes(page.screenshot())


def wait_until_stable(page: ViewerPage) -> None:
    """Wait until the shop is shown and two screenshots are equal."""
    eventually(lambda: page.picture().getpixel((300, 140)) == (59, 42, 34), "the shop is not shown")
    eventually(lambda: page.screenshot() == page.screenshot(), "the picture keeps changing")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
