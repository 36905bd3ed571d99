"""Closed lists of the roles and attributes that commands may name, and selectors by role and name."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PREFIX = "role="
_ROLE_SELECTOR = re.compile(r"role=([A-Za-z]{1,30})(?:\s+name=(.*))?")
_QUOTES = ('"', "'")

_ARIA_ROLES = (
    "alert alertdialog application article banner blockquote button caption cell checkbox code columnheader combobox "
    "complementary contentinfo definition deletion dialog directory document emphasis feed figure form generic grid "
    "gridcell group heading img insertion link list listbox listitem log main marquee math menu menubar menuitem "
    "menuitemcheckbox menuitemradio meter navigation none note option paragraph presentation progressbar radio "
    "radiogroup region row rowgroup rowheader scrollbar search searchbox separator slider spinbutton status strong "
    "subscript superscript switch tab table tablist tabpanel term textbox time timer toolbar tooltip tree treegrid "
    "treeitem image mark comment suggestion"
)
"""WAI-ARIA 1.3 §5.4 without abstract roles."""
_OTHER_ROLES = (
    "audio canvas clickable color colorwell date datetime disclosuretriangle editable file iframe labeltext month "
    "statictext summary video week"
)
"""Elements without an ARIA role, by the names that snapshots give them."""
ROLES = frozenset(f"{_ARIA_ROLES} {_OTHER_ROLES}".split())
"""Roles in lower case."""

_ATTRIBUTES = (
    "accept action alt aria-busy aria-checked aria-controls aria-current aria-describedby aria-description "
    "aria-disabled aria-expanded aria-haspopup aria-hidden aria-invalid aria-label aria-labelledby aria-level "
    "aria-live aria-modal aria-multiselectable aria-orientation aria-placeholder aria-posinset aria-pressed "
    "aria-readonly aria-required aria-roledescription aria-rowcount aria-rowindex aria-colcount aria-colindex "
    "aria-selected aria-setsize aria-sort aria-valuemax aria-valuemin aria-valuenow aria-valuetext autocomplete "
    "checked class colspan contenteditable data-cy data-id data-index data-key data-name data-qa data-state "
    "data-status data-test data-test-id data-testid data-type data-value datetime dir disabled download draggable "
    "enctype for form headers height hidden href hreflang id inputmode label lang list loading max maxlength media "
    "method min minlength multiple name open pattern placeholder readonly rel required role rows rowspan scope "
    "selected size span src srcset start state step tabindex target title type width wrap"
)
_GEOMETRY = "cx cy d fill font-size points r rx ry stroke transform x x1 x2 y y1 y2"
"""Places, sizes and colours of SVG shapes."""
ATTRIBUTES = frozenset(f"{_ATTRIBUTES} {_GEOMETRY}".split())
"""Attributes that `get attr` reads. `value` is missing because it may be a password or a token: `get value` reads
fields. `content`, `nonce`, `srcdoc`, `style` and event handlers hold tokens or code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleSelector:
    """An element by its role and, if `name` is not empty, its accessible name."""

    role: str
    """In lower case."""
    name: str = ""

    def __str__(self) -> str:
        return f"{_PREFIX}{self.role} name={self.name}" if self.name else f"{_PREFIX}{self.role}"


def is_role_selector(text: str) -> bool:
    """Whether a selector is meant as one by role. It may still be malformed."""
    return text.lstrip().lower().startswith(_PREFIX)


def parse_role_selector(text: str) -> RoleSelector:
    """Parse `role=button` or `role=button name=Save`, whose name may be in quotes. Raises: ValueError with the rule."""
    match = _ROLE_SELECTOR.fullmatch(text.strip())
    if match is None:
        raise ValueError("must be role=ROLE or role=ROLE name=NAME, for example role=button name=Save")
    role, name = match[1].lower(), match[2]
    read_role(role)
    if name is None:
        return RoleSelector(role=role)
    name = name.strip()
    if len(name) > 1 and name[0] in _QUOTES and name[-1] == name[0]:
        name = name[1:-1].strip()
    if not name:
        raise ValueError("must say which name after name=")
    return RoleSelector(role=role, name=name)


def read_role(text: str) -> str:
    """Return a role in lower case. Raises: ValueError with the rule."""
    if text.lower() not in ROLES:
        raise ValueError("must be an ARIA role such as button, link, textbox, checkbox, row or heading")
    return text.lower()


def read_attribute(text: str) -> str:
    """Return the name of an attribute in lower case. Raises: ValueError with the rule."""
    if text.lower() not in ATTRIBUTES:
        raise ValueError(
            "must be an attribute such as href, src, alt, title, class, id, name, type, placeholder, aria-expanded or "
            "data-testid; for the value of a field use get value SEL"
        )
    return text.lower()
