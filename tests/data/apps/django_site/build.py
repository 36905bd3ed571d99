"""Create the database: a user, authors, tags, 120 books and a blog.

Writes migrations into this folder, so run it in a copy.
"""

import datetime
import os

os.environ["DJANGO_SETTINGS_MODULE"] = "settings"

import django
from django.core.management import call_command

django.setup()
call_command("makemigrations", "library", verbosity=0)
call_command("migrate", verbosity=0)

from django.contrib.auth.models import User  # noqa: E402
from library.models import ArticlePage, Author, Book, Tag  # noqa: E402
from wagtail.models import Page, Site  # noqa: E402

User.objects.create_superuser("admin", "admin@example.com", "correct horse")
authors = [Author.objects.create(name=name) for name in ("Ada Lovelace", "Grace Hopper", "Mary Shelley", "Jane Austen")]
for name in (
    "Biography",
    "Computing",
    "Fiction",
    "Gothic",
    "History",
    "Mathematics",
    "Poetry",
    "Romance",
    "Science",
    "Travel",
):
    Tag.objects.create(name=name)
for number in range(1, 121):
    Book.objects.create(
        title=f"Volume {number:03}",
        slug=f"volume-{number:03}",
        author=authors[number % len(authors)],
        price=number,
        in_print=number % 2 == 0,
        status=list(Book.Status)[number % 3],
        first_published=datetime.datetime(2020, 1, 1, 12, tzinfo=datetime.UTC) + datetime.timedelta(days=number),
    )
root = Page.get_first_root_node()
for child in root.get_children():
    child.delete()
home = root.add_child(instance=ArticlePage(title="Blog", slug="blog"))
Site.objects.all().delete()
Site.objects.create(hostname="localhost", root_page=Page.objects.get(pk=home.pk), is_default_site=True)
for title in ("First article", "Second article"):
    Page.objects.get(pk=home.pk).add_child(instance=ArticlePage(title=title, body=f"<p>Text of {title}.</p>"))
