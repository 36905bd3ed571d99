"""Tasks in the Django admin and in Wagtail, checked in their database."""

from __future__ import annotations

from support.applications import PASSWORD, USER, Applications
from support.scripted_agent import Step, Task, TaskBuilder, ref


def _sign_in(apps: Applications, path: str) -> list[list[Step]]:
    """Open a page of the admin through its login form; end with a look at it."""
    return [
        [("open", apps.url("django", path)), ("snapshot", "-i")],
        [
            ("fill", ref("textbox", "Username:"), USER),
            ("fill", ref("textbox", "Password:"), PASSWORD),
            ("click", ref("button", "Log in")),
            ("snapshot", "-i"),
        ],
    ]


def add_a_book_with_chapters(apps: Applications, run: str) -> Task:
    title = f"Notes on {run}"
    return Task(
        goal=f"Add the published book '{title}' by Grace Hopper with date, price, two tags and two chapters.",
        calls=[
            *_sign_in(apps, "/admin/library/book/add/"),
            [
                ("type", ref("textbox", "Title:"), title),
                ("click", "#id_author + .select2"),
                ("type", ".select2-search__field", "grace"),
                ("wait", "--text", "Grace Hopper"),
                ("click", "role=option name=Grace Hopper"),
                ("select", "#id_tags_from", "Computing", "History"),
                ("click", "#id_tags_add"),
            ],
            [
                ("check", "role=radio name=Published"),
                ("fill", "#id_price", "49.90"),
                ("check", "#id_in_print"),
                ("fill", "#id_first_published_0", "1952-12-09"),
                ("fill", "#id_first_published_1", "08:30:00"),
                ("fill", "#id_summary", 'On compilers.\nWith "quotes" & <tags>.'),
                ("fill", "#id_chapters-0-title", "Beginnings"),
                ("click", "text=Add another Chapter"),
                ("fill", "#id_chapters-1-position", "2"),
                ("fill", "#id_chapters-1-title", "Compilers"),
                ("click", "role=button name=Save"),
            ],
        ],
        actual=lambda: apps.query(
            "select b.slug, a.name, b.status, b.price, b.in_print, b.first_published, b.summary,"
            " (select group_concat(name) from (select t.name from library_tag t join library_book_tags x"
            " on x.tag_id = t.id where x.book_id = b.id order by t.name)),"
            " (select group_concat(title) from"
            " (select title from library_chapter where book_id = b.id order by position))"
            " from library_book b join library_author a on a.id = b.author_id where b.title = ?",
            title,
        ),
        expected=[
            (
                title.lower().replace(" ", "-"),
                "Grace Hopper",
                "published",
                49.9,
                1,
                "1952-12-09 08:30:00",
                'On compilers.\r\nWith "quotes" & <tags>.',
                "Computing,History",
                "Beginnings,Compilers",
            )
        ],
    )


def edit_prices_in_the_list(apps: Applications, run: str) -> Task:
    price = float(sum(map(ord, run)))
    return Task(
        goal=f"Find the volumes 031 and 035 in the list, set their price to {price} and toggle one 'in print' box.",
        calls=[
            *_sign_in(apps, "/admin/library/book/"),
            [("fill", "#searchbar", "Volume 03"), ("click", "role=button name=Search"), ("snapshot", "-i")],
            [
                ("fill", "xpath=//tr[contains(., 'Volume 031')]//input[@type='number']", str(price)),
                ("fill", "xpath=//tr[contains(., 'Volume 035')]//input[@type='number']", str(price)),
                ("check", "xpath=//tr[contains(., 'Volume 035')]//input[contains(@name, 'in_print')]"),
                ("click", "input[name=_save]"),
                ("get", "text", ".messagelist"),
            ],
        ],
        actual=lambda: apps.query(
            "select title, price, in_print from library_book"
            " where title in ('Volume 031', 'Volume 035', 'Volume 033') order by title"
        ),
        expected=[("Volume 031", price, 0), ("Volume 033", 33, 0), ("Volume 035", price, 1)],
    )


def withdraw_books_by_an_action(apps: Applications, run: str) -> Task:
    first = 70 if run.endswith("1") else 80
    titles = [f"Volume {first + number:03}" for number in (0, 3, 6)]
    return Task(
        goal=f"Withdraw {titles} with the action of the list, and no other book.",
        calls=[
            *_sign_in(apps, "/admin/library/book/"),
            [
                ("fill", "#searchbar", f"Volume 0{first // 10}"),
                ("press", "Enter"),
                ("wait", "--url", "**q=Volume*"),
                ("snapshot", "-i"),
            ],
            [
                *(
                    ("check", f"xpath=//tr[contains(., '{title}')]//input[@name='_selected_action']")
                    for title in titles
                ),
                ("select", "select[name=action]", "Withdraw selected books"),
                ("click", "role=button name=Go"),
                ("snapshot", "-i", "--delta"),
            ],
        ],
        actual=lambda: apps.query(
            "select group_concat(title) from (select title from library_book"
            " where title like ? and status = 'withdrawn' order by title)",
            f"Volume 0{first // 10}%",
        ),
        expected=[(",".join(sorted({*titles, *(f"Volume {n:03}" for n in range(first, first + 10) if n % 3 == 2)})),)],
    )


def add_an_author_in_a_popup(apps: Applications, run: str) -> Task:
    author, title = f"Emily {run}", f"Heights {run}"
    return Task(
        goal=f"Add the book '{title}' and, in the popup of its form, its author {author}.",
        calls=[
            *_sign_in(apps, "/admin/library/book/add/"),
            [("fill", "#id_title", title), ("fill", "#id_slug", run), ("click", "#add_id_author"), ("tab", "list")],
            [("tab", "switch", "t2"), ("snapshot", "-i")],
            [
                ("fill", ref("textbox", "Name:"), author),
                ("fill", "#id_born", "1818-07-30"),
                ("click", ref("button", "Save")),
            ],
            [
                ("wait", "--text", author),
                ("click", "role=button name=Save and continue editing"),
                ("get", "value", "#id_title"),
            ],
        ],
        actual=lambda: apps.query(
            "select b.title, a.name, a.born from library_book b"
            " join library_author a on a.id = b.author_id where b.slug = ?",
            run,
        ),
        expected=[(title, author, "1818-07-30")],
    )


def delete_a_book(apps: Applications, run: str) -> Task:
    title = f"Volume 11{run[-1]}"
    return Task(
        goal=f"Delete {title} from its own page.",
        calls=[
            *_sign_in(apps, f"/admin/library/book/?q={title.replace(' ', '+')}"),
            [("click", ref("link", title)), ("click", "role=link name=Delete"), ("snapshot", "-i")],
            [("click", "role=button name=Yes, I’m sure"), ("get", "text", ".messagelist")],
        ],
        actual=lambda: apps.query("select count(*) from library_book where title = ?", title),
        expected=[(0,)],
    )


def publish_an_article(apps: Applications, run: str) -> Task:
    title = f"Article {run}"
    (blog,) = apps.query("select id from wagtailcore_page where slug = 'blog'")[0]
    return Task(
        goal=f"In Wagtail, publish the article '{title}' below Blog with an introduction and a body in bold and plain.",
        calls=[
            [("open", apps.url("django", "/cms/")), ("snapshot", "-i")],
            [
                ("fill", "#id_username", USER),
                ("fill", "#id_password", PASSWORD),
                ("press", "Enter"),
                ("wait", "--text", "Site summary"),
            ],
            [("open", apps.url("django", f"/cms/pages/add/library/articlepage/{blog}/")), ("snapshot", "-i")],
            [
                ("fill", "#id_title", title),
                ("fill", "#id_introduction", "In short"),
                ("click", ".public-DraftEditor-content"),
                ("type", ".public-DraftEditor-content", "Plain and strong"),
                ("select-text", ".public-DraftEditor-content", "strong"),
                ("press", "Control+b"),
            ],
            [("snapshot", "-i", "--delta")],
            [
                ("click", "role=button name=More actions"),
                ("click", "role=button name=Publish"),
                ("wait", "--url", "**/cms/pages/*"),
            ],
        ],
        actual=lambda: apps.query(
            "select p.title, p.live, a.introduction, a.body like '%Plain and <b>strong</b>%' from library_articlepage a"
            " join wagtailcore_page p on p.id = a.page_ptr_id where p.title = ?",
            title,
        ),
        expected=[(title, 1, "In short", 1)],
    )


TASKS: tuple[TaskBuilder, ...] = (
    add_a_book_with_chapters,
    edit_prices_in_the_list,
    withdraw_books_by_an_action,
    add_an_author_in_a_popup,
    delete_a_book,
    publish_an_article,
)
