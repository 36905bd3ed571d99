"""Models with one field of most kinds of admin widgets."""

from django.db import models
from wagtail.admin.panels import FieldPanel
from wagtail.fields import RichTextField
from wagtail.models import Page


class Author(models.Model):
    name = models.CharField(max_length=100)
    born = models.DateField(null=True, blank=True)

    def __str__(self) -> str:
        return self.name


class Tag(models.Model):
    name = models.CharField(max_length=40)

    def __str__(self) -> str:
        return self.name


class Book(models.Model):
    class Status(models.TextChoices):
        DRAFT = "draft", "Draft"
        PUBLISHED = "published", "Published"
        WITHDRAWN = "withdrawn", "Withdrawn"

    title = models.CharField(max_length=200)
    slug = models.SlugField(max_length=200)
    author = models.ForeignKey(Author, on_delete=models.PROTECT)
    tags = models.ManyToManyField(Tag, blank=True)
    status = models.CharField(max_length=20, choices=Status.choices, default=Status.DRAFT)
    price = models.DecimalField(max_digits=8, decimal_places=2, default=0)
    in_print = models.BooleanField(default=False)
    first_published = models.DateTimeField(null=True, blank=True)
    summary = models.TextField(blank=True)

    def __str__(self) -> str:
        return self.title


class Chapter(models.Model):
    book = models.ForeignKey(Book, on_delete=models.CASCADE, related_name="chapters")
    position = models.PositiveIntegerField(default=1)
    title = models.CharField(max_length=200)

    def __str__(self) -> str:
        return self.title


class ArticlePage(Page):
    introduction = models.CharField(max_length=250, blank=True)
    body = RichTextField(blank=True)
    content_panels = [*Page.content_panels, FieldPanel("introduction"), FieldPanel("body")]  # noqa: RUF012
