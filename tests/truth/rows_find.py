"""Rows of `find`."""

from __future__ import annotations

from support.truth import Row

ROWS = (
    Row(
        id="find counts the matches of a text",
        html="<p>one apple</p><button>Apple pie</button><p hidden>apple</p><input aria-label='Apple count'>",
        argv=("find", "apple"),
        data={"matches": 3},
    ),
    Row(
        id="find takes a role",
        html="<p>one apple</p><button>Apple pie</button>",
        argv=("find", "apple", "--role", "button"),
        data={"matches": 1},
    ),
    Row(
        id="find tells that nothing matches",
        html="<p>one apple</p>",
        argv=("find", "banana"),
        data={"matches": 0},
    ),
    Row(
        id="find limits what it shows",
        html="<p>apple</p>" * 9,
        argv=("find", "apple", "--limit", 2),
        data={"matches": 9, "shown": 2},
    ),
    Row(
        id="find reads frames of other sites",
        html="<p>apple</p><iframe src='CROSS/inner'></iframe>",
        frames={"inner": "<button>apple</button>"},
        argv=("find", "apple"),
        data={"matches": 2},
    ),
)
