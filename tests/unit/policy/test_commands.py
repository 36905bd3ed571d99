"""The grammar of subcommands: the table, and argvs outside it."""

from __future__ import annotations

import pytest

from browser_shell.core.errors import PolicyBlocked
from browser_shell.policy.commands import ALIASES, COMMANDS, FORBIDDEN, parse_command
from support.argv import refusal

SPECIFIED = "open snapshot click fill type press wait screenshot close dblclick hover focus check uncheck select"
ADDED = "back forward reload scroll get is tab dialog pdf drag find select-text"


def test_the_table_has_exactly_the_specified_subcommands() -> None:
    assert set(COMMANDS) == {*SPECIFIED.split(), *ADDED.split()}
    assert not FORBIDDEN & set(COMMANDS)
    assert {"eval", "evaluate", "upload", "download", "route", "unroute"} <= FORBIDDEN


@pytest.mark.parametrize(
    ("argv", "operands", "options"),
    [
        (("open", "https://example.com"), ("https://example.com",), {}),
        (("snapshot",), (), {}),
        (("snapshot", "-i", "-c", "-u", "-C"), (), {"interactive": "", "compact": "", "urls": "", "cursor": ""}),
        (("snapshot", "--depth", "050", "--selector", "#a"), (), {"depth": "50", "selector": "#a"}),
        (("snapshot", "-d", "1", "-s", "main > a"), (), {"depth": "1", "selector": "main > a"}),
        (("snapshot", "--delta", "--full", "--refs"), (), {"delta": "", "full": "", "refs": ""}),
        (("click", "@e12"), ("@e12",), {}),
        (("click", "xpath=//button"), ("xpath=//button",), {}),
        (("click", "//button[1]"), ("//button[1]",), {}),
        (("click", "text=Sign in"), ("text=Sign in",), {}),
        (("click", "role=button name=Save"), ("role=button name=Save",), {}),
        (("click", "--at", "007,0"), (), {"at": "7,0"}),
        (("click", "#canvas", "--at", "9999, 12"), ("#canvas",), {"at": "9999,12"}),
        (("hover", "--at", "1,2", "@e1"), ("@e1",), {"at": "1,2"}),
        (("drag", "@e1", "text=Done"), ("@e1", "text=Done"), {}),
        (("drag", "--from", "1,2", "--to", "3,4"), (), {"from": "1,2", "to": "3,4"}),
        (("select-text", "p"), ("p",), {}),
        (("select-text", "p", "--cdp 1\n"), ("p", "--cdp 1\n"), {}),
        (("find", "Sign in"), ("Sign in",), {}),
        (("find", "--role", "Button", "Save", "--limit", "100"), ("Save",), {"role": "button", "limit": "100"}),
        (("get", "text", "#a", "--from", "30000"), ("text", "#a"), {"from": "30000"}),
        (("get", "value", "@e1"), ("value", "@e1"), {}),
        (("get", "count", "li"), ("count", "li"), {}),
        (("get", "attr", "HREF", "role=link name=Home"), ("attr", "href", "role=link name=Home"), {}),
        (("snapshot", "-i", "--from", "0"), (), {"interactive": "", "from": "0"}),
        (("snapshot", "--from", "9999999"), (), {"from": "9999999"}),
        (("dblclick", "#a"), ("#a",), {}),
        (("dblclick", "--at", "5,6"), (), {"at": "5,6"}),
        (("fill", "#q", ""), ("#q", ""), {}),
        (("fill", "#q", "--cdp"), ("#q", "--cdp"), {}),
        (("type", "#q", "--clear"), ("#q", "--clear"), {}),
        (("type", "#q", "a\nb\t\x01 ;rm -rf /"), ("#q", "a\nb\t\x01 ;rm -rf /"), {}),
        (("press", "Enter"), ("Enter",), {}),
        (("press", "Control+Shift+a"), ("Control+Shift+a",), {}),
        (("press", "-"), ("-",), {}),
        (("press", "Control+-"), ("Control+-",), {}),
        (("press", "é"), ("é",), {}),
        (("select", "#s", "-1", "--Select--"), ("#s", "-1", "--Select--"), {}),
        (("select", "#s", *["v"] * 127), ("#s", *["v"] * 127), {}),
        (("wait", "0"), ("0",), {}),
        (("wait", "30000"), ("30000",), {}),
        (("wait", "#a"), ("#a",), {}),
        (("wait", "#a", "--state", "hidden"), ("#a",), {"state": "hidden"}),
        (("wait", "--state", "visible", ".b"), (".b",), {"state": "visible"}),
        (("wait", "--text", "Welcome back"), (), {"text": "Welcome back"}),
        (("wait", "--url", "**/done?x=1"), (), {"url": "**/done?x=1"}),
        (("wait", "--load", "networkidle"), (), {"load": "networkidle"}),
        (("screenshot",), (), {}),
        (("screenshot", "--full"), (), {"full": ""}),
        (("screenshot", "-f", "--annotate", "@e3"), ("@e3",), {"full": "", "annotate": ""}),
        (("screenshot", "main.card > h1"), ("main.card > h1",), {}),
        (("scroll",), (), {}),
        (("scroll", "down"), ("down",), {}),
        (("scroll", "up", "10000", "-s", "@e1"), ("up", "10000"), {"selector": "@e1"}),
        (("get", "url"), ("url",), {}),
        (("get", "title"), ("title",), {}),
        (("get", "text", "#a"), ("text", "#a"), {}),
        (("is", "visible", "@e1"), ("visible", "@e1"), {}),
        (("tab", "list"), ("list",), {}),
        (("tab", "switch", "t12"), ("switch", "t12"), {}),
        (("tab", "close"), ("close",), {}),
        (("tab", "close", "t9999"), ("close", "t9999"), {}),
        (("dialog", "accept"), ("accept",), {}),
        (("dialog", "accept", "--json"), ("accept", "--json"), {}),
        (("dialog", "dismiss"), ("dismiss",), {}),
        (("dialog", "status"), ("status",), {}),
        *(((name,), (), {}) for name in ("back", "forward", "reload", "close", "pdf")),
    ],
)  # fmt: skip
def test_declared_operands_and_options_are_parsed(
    argv: tuple[str, ...], operands: tuple[str, ...], options: dict[str, str]
) -> None:
    command = parse_command(argv)
    assert (command.name, command.operands, dict(command.options)) == (argv[0], operands, options)


@pytest.mark.promise("argv:denied-subcommands")
@pytest.mark.parametrize("name", sorted(FORBIDDEN))
def test_other_subcommands_of_agent_browser_are_blocked(name: str) -> None:
    with pytest.raises(PolicyBlocked) as caught:
        parse_command((name, "1"))
    assert caught.value.rule_id == "command.denied"
    assert "snapshot" in caught.value.public_message


@pytest.mark.parametrize(
    "name",
    ["", " eval", "eval ", "OPEN", "Open", "open\n", "\u043epen", "eval\u200b", "open;eval", "--cdp", "-q", "help"],
)
def test_an_unknown_subcommand_is_refused_with_the_list_of_known_ones(name: str) -> None:
    error = refusal(name, "1")
    assert error.rule_id == "command.unknown"
    assert "snapshot" in error.public_message


def test_an_empty_argv_is_refused() -> None:
    assert refusal().rule_id == "command.unknown"


@pytest.mark.parametrize("alias", ALIASES)
def test_an_alias_is_refused_with_the_canonical_name(alias: str) -> None:
    assert f"write {ALIASES[alias]}" in refusal(alias, "x").public_message


def test_a_subcommand_outside_the_policy_is_blocked_and_not_listed() -> None:
    with pytest.raises(PolicyBlocked) as caught:
        parse_command(("pdf",), allowed={"open", "close"})
    assert caught.value.rule_id == "command.denied"
    assert caught.value.public_message.endswith("available: open, close")
    assert parse_command(("close",), allowed={"open", "close"}).name == "close"


@pytest.mark.promise("argv:options")
@pytest.mark.parametrize(
    ("argv", "index"),
    [
        (("snapshot", "--json"), 1),
        (("snapshot", "-ic"), 1),
        (("snapshot", "-i", "-i"), 2),
        (("snapshot", "-i", "--interactive"), 2),
        (("snapshot", "--depth=3"), 1),
        (("snapshot", "-d"), 1),
        (("snapshot", "-d", "0"), 2),
        (("snapshot", "-d", "51"), 2),
        (("snapshot", "-d", "-1"), 2),
        (("snapshot", "-d", "x"), 2),
        (("snapshot", "-s", "@x1"), 2),
        (("snapshot", "-s", "--cdp"), 2),
        (("snapshot", "--Interactive"), 1),
        (("open", "--init-script", "x"), 1),
        (("open", "-x"), 1),
        (("click", "@e1", "--new-tab"), 2),
        (("click", "--session", "other", "@e1"), 1),
        (("click", "--", "@e1"), 1),
        (("hover", "--x", "#a"), 1),
        (("close", "--all"), 1),
        (("pdf", "-o"), 1),
        (("screenshot", "--screenshot-dir", "/etc"), 1),
        (("wait", "-1"), 1),
        (("wait", "--fn", "1"), 1),
        (("wait", "-f", "1"), 1),
        (("wait", "--download"), 1),
        (("wait", "-d"), 1),
        (("wait", "--timeout", "5"), 1),
        (("wait", "-t", "x"), 1),
        (("wait", "--text", "-f"), 2),
        (("wait", "--text", " -f"), 2),
        (("wait", "--text", ""), 2),
        (("wait", "--text", "x" * 513), 2),
        (("wait", "--url", "a\nb"), 2),
        (("wait", "--load", "bogus"), 2),
        (("wait", "#a", "--state", "attached"), 3),
        (("scroll", "down", "-s"), 2),
        (("get", "text", "--json"), 2),
        (("get", "text", "#a", "--from", "-1"), 4),
        (("get", "text", "#a", "--from", "10000000"), 4),
        (("get", "text", "#a", "--from"), 3),
        (("get", "value", "#a", "--from", "1"), 3),
        (("get", "count", "--all", "li"), 2),
        (("get", "attr", "--json", "#a"), 2),
        (("snapshot", "--from", "x"), 2),
        (("snapshot", "--from", "1", "--from", "2"), 3),
        (("click", "--at"), 1),
        (("click", "--at", "1"), 2),
        (("click", "--at", "1,2,3"), 2),
        (("click", "--at", "-1,2"), 2),
        (("click", "--at", "1,-2"), 2),
        (("click", "--at", "1.5,2"), 2),
        (("click", "--at", "1e3,2"), 2),
        (("click", "--at", "10000,2"), 2),
        (("click", "--at", "2,10000"), 2),
        (("click", "--at", "1,2\n"), 2),
        (("click", "--at", "1,  2"), 2),
        (("click", "--at", "\u0661,2"), 2),
        (("click", "--at", "#a"), 2),
        (("click", "--at", "--cdp"), 2),
        (("click", "--at=1,2"), 1),
        (("click", "--at", "1,2", "--at", "3,4"), 3),
        (("click", "#a", "--to", "1,2"), 2),
        (("hover", "--at", "NaN,1"), 2),
        (("focus", "--at", "1,2"), 1),
        (("drag", "--at", "1,2"), 1),
        (("drag", "#a", "--button", "right"), 2),
        (("drag", "--from", "1,2", "--to", "3;4"), 4),
        (("find", "x", "--role", "widget"), 3),
        (("find", "x", "--role", "button "), 3),
        (("find", "x", "--role", ""), 3),
        (("find", "x", "--limit", "0"), 3),
        (("find", "x", "--limit", "101"), 3),
        (("find", "-x"), 1),
        (("find", "role", "button", "--name", "Submit"), 3),
        (("find", "--role"), 1),
    ],
)
def test_an_undeclared_or_invalid_option_is_refused_and_its_index_named(argv: tuple[str, ...], index: int) -> None:
    error = refusal(*argv)
    assert error.rule_id == "command.option"
    assert error.public_message.startswith(f"argv[{index}]")


@pytest.mark.parametrize(
    "argv",
    [
        *(("open",), ("open", "https://example.com/", "x"), ("click",), ("click", "#a", "#b"), ("snapshot", "#a")),
        *(("back", "x"), ("close", "x"), ("pdf", "x.pdf"), ("pdf", "/etc/x"), ("fill", "#q"), ("fill",)),
        *(("fill", "#q", "a", "b"), ("fill", "#q", "a", "--session", "x"), ("fill", "--config", "x"), ("type", "#q")),
        *(("type", "#q", "x", "--clear"), ("select", "#s")),
        *(("select", "#s", *["v"] * 128), ("select", "#s", "--session")),
        *(("select", "#s", "a", "-p"), ("select", "#s", "--cdp=1"), ("press",), ("press", "Enter", "x")),
        *(("scroll", "sideways"), ("scroll", "300"), ("scroll", "down", "0"), ("scroll", "down", "10001")),
        *(("scroll", "down", "1.5"), ("scroll", "down", "1", "2"), ("get",), ("get", "cdp-url"), ("get", "url", "x")),
        *(("get", "text"), ("get", "html", "#a"), ("is",), ("is", "focused", "#a"), ("is", "visible"), ("tab",)),
        *(("tab", "new"), ("tab", "new", "file:///x")),
        *(("tab", "switch"), ("tab", "switch", "t0"), ("tab", "switch", "1")),
        *(("tab", "switch", "t12345"), ("tab", "switch", "t1\n"), ("tab", "list", "x"), ("tab", "close", "t1", "t2")),
        *(("dialog",), ("dialog", "accept", "a", "b"), ("dialog", "dismiss", "x"), ("dialog", "status", "x")),
        *(("wait",), ("wait", "1.5"), ("wait", "30001"), ("wait", "99999999"), ("wait", "+5"), ("wait", "1e3")),
        *(("wait", "@e1"), ("wait", "text=x"), ("wait", "xpath=//x"), ("wait", "//x"), ("wait", " @e1"), ("wait", "")),
        *(("wait", "#a", "#b"), ("wait", "500", "--text", "x"), ("wait", "--text", "x", "--load", "load")),
        ("wait", "500", "--state", "hidden"),
        *(("wait", "--text", "x", "--state", "hidden"), ("wait", "--state", "hidden")),
        *(("hover",), ("click", "--at", "1,2", "#a", "#b"), ("drag",), ("drag", "#a"), ("drag", "#a", "#b", "#c")),
        *(("drag", "--from", "1,2"), ("drag", "--to", "1,2"), ("drag", "#a", "--from", "1,2", "--to", "3,4")),
        *(("drag", "#a", "#b", "--to", "3,4"), ("drag", "#a", "--to", "3,4"), ("drag", "1,2", "3,4")),
        *(("select-text",), ("select-text", "#a", ""), ("select-text", "#a", " \n"), ("select-text", "#a", "b", "c")),
        *(("select-text", "--all"), ("find",), ("find", ""), ("find", " "), ("find", "a\nb"), ("find", "x" * 513)),
        *(("find", "text", "Sign In", "click"), ("get", "value"), ("get", "value", "#a", "#b"), ("get", "count")),
        *(("get", "attr"), ("get", "attr", "href"), ("get", "attr", "#a", "href"), ("get", "attr", "onclick", "#a")),
        *(("get", "attr", "value", "#a"), ("get", "attr", "nonce", "#a"), ("get", "attr", "srcdoc", "#a")),
        *(("get", "attr", "style", "#a"), ("get", "attr", "data-secret", "#a"), ("get", "attr", "href ", "#a")),
    ],
    ids=" ".join,
)  # fmt: skip
def test_missing_surplus_and_invalid_operands_are_refused(argv: tuple[str, ...]) -> None:
    assert refusal(*argv).rule_id == "command.operand"
