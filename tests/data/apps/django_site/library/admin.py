from django.contrib import admin

from library.models import Author, Book, Chapter, Tag


class ChapterInline(admin.TabularInline):
    model = Chapter
    extra = 1


@admin.register(Author)
class AuthorAdmin(admin.ModelAdmin):
    search_fields = ("name",)


@admin.register(Tag)
class TagAdmin(admin.ModelAdmin):
    search_fields = ("name",)


@admin.action(description="Withdraw selected books")
def withdraw(_model_admin, _request, queryset):
    queryset.update(status=Book.Status.WITHDRAWN)


@admin.register(Book)
class BookAdmin(admin.ModelAdmin):
    list_display = ("title", "author", "status", "price", "in_print")
    list_editable = ("price", "in_print")
    list_filter = ("status", "in_print")
    list_per_page = 60
    search_fields = ("title",)
    prepopulated_fields = {"slug": ("title",)}  # noqa: RUF012
    autocomplete_fields = ("author",)
    filter_horizontal = ("tags",)
    radio_fields = {"status": admin.HORIZONTAL}  # noqa: RUF012
    inlines = (ChapterInline,)
    actions = (withdraw,)
