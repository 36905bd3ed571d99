from playwright.sync_api import Page, expect

PAGE = "data:text/html,<title>Shop</title><h1>Tea</h1><button onclick=\"this.textContent='Sold'\">Buy</button>"


def test_the_button_sells(page: Page):
    page.goto(PAGE)
    page.get_by_role("button", name="Buy").click()
    expect(page.get_by_role("button")).to_have_text("Sold")


def test_the_title_is_coffee(page: Page):
    page.goto(PAGE)
    expect(page).to_have_title("Coffee", timeout=500)


def test_the_page_never_loads(page: Page):
    page.goto(PAGE)
    page.wait_for_selector("#never", timeout=0)
