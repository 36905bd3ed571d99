"""Roles and states of elements, by HTML-AAM 1.0 and WAI-ARIA 1.3, under the names that agent-browser prints."""

from __future__ import annotations

from itertools import islice

from browser_shell.browser.page.look_tree import Node, Tree, words

_ARIA_ROLES = words(
    "alert alertdialog application article banner blockquote button caption cell checkbox code columnheader combobox "
    "complementary contentinfo definition dialog document feed figure form grid gridcell group heading img image link "
    "list listbox listitem log main marquee math menu menubar menuitem menuitemcheckbox menuitemradio meter navigation "
    "note option paragraph progressbar radio radiogroup region row rowgroup rowheader scrollbar search searchbox "
    "separator slider spinbutton status switch tab table tablist tabpanel term textbox timer toolbar tooltip tree "
    "treegrid treeitem"
)
"""Roles that an element may claim. Anything else in a `role` attribute is ignored, so a page cannot add role names."""

_TAG_ROLES = {
    **{"article": "article", "aside": "complementary", "audio": "Audio", "blockquote": "blockquote"},
    **{"button": "button", "canvas": "Canvas", "caption": "caption", "datalist": "listbox", "dd": "definition"},
    **{"details": "group", "dialog": "dialog", "dl": "DescriptionList", "dt": "term", "embed": "EmbeddedObject"},
    **{"fieldset": "group", "figcaption": "Figcaption", "figure": "figure", "footer": "contentinfo", "form": "form"},
    **{f"h{level}": "heading" for level in range(1, 7)},
    **{"header": "banner", "hr": "separator", "iframe": "Iframe", "frame": "Iframe", "img": "image"},
    **{"legend": "Legend", "label": "LabelText", "li": "listitem", "main": "main", "math": "math", "menu": "list"},
    **{"meter": "meter", "nav": "navigation", "object": "EmbeddedObject", "ol": "list", "optgroup": "group"},
    **{"option": "option", "output": "status", "p": "paragraph", "pre": "Pre", "progress": "progressbar"},
    **{"search": "search", "section": "region", "svg": "image", "table": "table", "tbody": "rowgroup", "td": "cell"},
    **{"textarea": "textbox", "tfoot": "rowgroup", "th": "columnheader", "thead": "rowgroup", "tr": "row"},
    **{"ul": "list", "video": "Video"},
}
_INPUT_ROLES = {
    **dict.fromkeys(("button", "submit", "reset", "image", "file"), "button"),
    **{"checkbox": "checkbox", "color": "ColorWell", "date": "Date", "number": "spinbutton", "radio": "radio"},
    **{"range": "slider", "search": "searchbox", "time": "InputTime"},
    **dict.fromkeys(("datetime-local", "month", "week"), "DateTime"),
}
_MAX_CELLS = 50
_SECRETS = ("current-password", "new-password", "one-time-code")
"""Values of `autocomplete` for fields whose value is never shown."""
_MAX_SELECTED = 20
_NO_ROLE = frozenset({"presentation", "none"})

FIELD_ROLES = words(
    "textbox searchbox combobox listbox checkbox radio switch slider spinbutton Date DateTime InputTime ColorWell"
)
CONTROL_ROLES = FIELD_ROLES | words(
    "button link menuitem menuitemcheckbox menuitemradio option tab treeitem scrollbar DisclosureTriangle Canvas Video "
    "Audio"
)
NAMED_BY_CONTENT = words(
    "button cell checkbox columnheader DisclosureTriangle gridcell heading LabelText Legend link menuitem "
    "menuitemcheckbox menuitemradio option radio row rowheader switch tab tooltip treeitem caption Figcaption"
)
"""WAI-ARIA 1.3 §5.2.8.4: roles whose name is their text."""
MESSAGES = frozenset({"alert", "status", "log"})
CHECKABLE = frozenset({"checkbox", "radio", "switch", "menuitemcheckbox", "menuitemradio"})

_FORMATS = {
    **{"date": "YYYY-MM-DD", "time": "HH:MM", "datetime-local": "YYYY-MM-DDTHH:MM", "month": "YYYY-MM"},
    **{"week": "YYYY-Www"},
}


def role_of(node: Node, tree: Tree) -> str:
    """Return the role of an element: its `role` attribute, else that of its tag; `generic` if neither has one."""
    claimed = _claimed_role(node)
    if claimed is not None:
        return claimed
    match node.tag:
        case "a" | "area":
            return "link" if _leads_somewhere(node) else "generic"
        case "input":
            return _input_role(node)
        case "select":
            return "listbox" if _shows_several_options(node) else "combobox"
        case "li" | "summary":
            return _role_in_parent(node)
        case "header" | "footer":
            return "generic" if node.in_section else _TAG_ROLES[node.tag]
        case "th":
            return "rowheader" if _is_row_header(node, tree) else "columnheader"
        case "section" | "form":
            return _TAG_ROLES[node.tag] if _has_label(node) or node.tag == "form" else "generic"
        case "img":
            return "generic" if node.attributes.get("alt") == "" and not node.is_clickable else "image"
        case _:
            role = _TAG_ROLES.get(node.tag, "generic")
    return "textbox" if role in ("generic", "paragraph") and is_editing_host(node) else role


def states_of(node: Node, role: str) -> list[str]:
    """Return the states of an element as they are printed."""
    found = []
    if role == "heading":
        level = node.get("aria-level") or (node.tag[1:] if node.tag[:1] == "h" else "2")
        found.append(f"level={level}" if level.isdigit() and len(level) < 3 else "level=2")
    if role in CHECKABLE:
        mixed = node.get("aria-checked") == "mixed"
        found += ["checked=mixed"] if mixed else ["checked"] if is_checked(node) else []
    if is_disabled(node):
        found.append("disabled")
    expanded = "expanded" if role != "DisclosureTriangle" else ""
    if expanded and node.get("aria-expanded") in ("true", "false"):
        found.append(f"expanded={node.get('aria-expanded')}")
    elif role == "DisclosureTriangle" and node.parent is not None:
        found.append(f"expanded={'true' if 'open' in node.parent.attributes else 'false'}")
    found += [
        word
        for word, holds in (
            ("pressed", node.get("aria-pressed") in ("true", "mixed")),
            ("selected", node.is_selected or node.get("aria-selected") == "true"),
            ("current", node.get("aria-current") not in ("", "false")),
            ("required", "required" in node.attributes or node.get("aria-required") == "true"),
            ("readonly", role in FIELD_ROLES and _is_read_only(node)),
            ("invalid", node.get("aria-invalid") not in ("", "false")),
            ("multiple", role == "listbox" and _takes_several(node)),
            ("haspopup", node.get("aria-haspopup") not in ("", "false") and role in ("menuitem", "button", "link")),
        )
        if holds
    ]
    return found


def value_of(node: Node, role: str, tree: Tree) -> str:
    """Return the value that the page shows, or '' for an element without one. Never that of a password field."""
    if is_password(node):
        return ""
    if node.tag == "select":
        selected = (option for option in tree.below(node) if option.is_selected)
        return " | ".join(option_label(option, tree) for option in islice(selected, _MAX_SELECTED))
    if node.tag == "input" and (
        role in CHECKABLE or input_type(node) in ("submit", "reset", "button", "image", "hidden")
    ):
        return ""
    if node.value is not None:
        return node.value.rpartition("\\")[2] if input_type(node) == "file" else node.value
    if role in ("slider", "spinbutton", "progressbar", "meter", "scrollbar"):
        own = node.get("value") if node.tag in ("progress", "meter") else ""
        return node.get("aria-valuetext") or node.get("aria-valuenow") or own
    return ""


def expected_format(node: Node) -> str:
    """Return what an empty date or time field takes, or ''."""
    return _FORMATS.get(input_type(node), "") if node.tag == "input" and not node.value else ""


def input_type(node: Node) -> str:
    return node.get("type").lower() if node.tag == "input" else ""


def is_password(node: Node) -> bool:
    """Whether the field takes a password or a one-time code, also while the page shows it as text."""
    return input_type(node) == "password" or any(word in (node.get("autocomplete") or "") for word in _SECRETS)


def is_checked(node: Node) -> bool:
    return node.is_checked or node.get("aria-checked") == "true"


def is_editing_host(node: Node) -> bool:
    """Whether the element begins an editable area, such as the body of a rich text editor."""
    return node.attributes.get("contenteditable", "false").lower() in ("", "true", "plaintext-only")


def is_disabled(node: Node) -> bool:
    """Whether a control is disabled by itself or by a `fieldset` around it (HTML §4.10.19.5)."""
    if node.get("aria-disabled") == "true":
        return True
    if node.tag not in ("button", "input", "select", "textarea", "option", "optgroup", "fieldset"):
        return False
    return "disabled" in node.attributes or node.in_disabled_fieldset


def is_focusable(node: Node) -> bool:
    """Whether the Tab key reaches the element because of its `tabindex`."""
    tabindex = node.get("tabindex")
    return tabindex.isdigit()


def option_label(option: Node, tree: Tree) -> str:
    """Return the label of an `option`, whose text is not rendered while its list is closed."""
    label = option.get("label") or "".join(node.text for node in islice(tree.below(option), _MAX_CELLS))
    return " ".join(label.split())


def _claimed_role(node: Node) -> str | None:
    """Return the first known role of the `role` attribute; None without one."""
    for word in node.get("role").lower().split()[:8]:
        if word in _NO_ROLE:
            return None if node.tag in ("a", "button", "input", "select", "textarea") else "generic"
        if word in _ARIA_ROLES:
            return "image" if word == "img" else word
        if word == "generic":
            return "generic"
    return None


def _leads_somewhere(node: Node) -> bool:
    return "href" in node.attributes or node.is_clickable or node.has_pointer


def _role_in_parent(node: Node) -> str:
    """Return the role of an element that depends on the element around it."""
    parent = node.parent
    if node.tag == "summary":
        return "DisclosureTriangle" if parent is not None and parent.tag == "details" else "generic"
    return "menuitem" if parent is not None and parent.get("role") in ("menu", "menubar") else "listitem"


def _input_role(node: Node) -> str:
    kind = input_type(node)
    if kind in _INPUT_ROLES:
        return _INPUT_ROLES[kind]
    return "combobox" if node.get("list") else "textbox"


def _shows_several_options(node: Node) -> bool:
    size = node.get("size")
    return "multiple" in node.attributes or (size.isdigit() and int(size[:4]) > 1)


def _takes_several(node: Node) -> bool:
    return "multiple" in node.attributes or node.get("aria-multiselectable") == "true"


def _is_read_only(node: Node) -> bool:
    return "readonly" in node.attributes or node.get("aria-readonly") == "true"


def _has_label(node: Node) -> bool:
    return bool(node.get("aria-label") or node.get("aria-labelledby") or node.get("title"))


def _is_row_header(node: Node, tree: Tree) -> bool:
    """Whether a `th` begins a row of data. A `th` in a row of headers names its column."""
    row = node.parent
    if row is None or row.tag != "tr":
        return False
    return any(cell.tag == "td" for cell in islice(tree.children(row), _MAX_CELLS))
