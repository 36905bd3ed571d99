"""Options and operands outside the grammar of a subcommand."""

from __future__ import annotations

import pytest

from support.argv import refusal


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
        (("snapshot", "-s", "@e1"), 2),
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
    ],
    ids=" ".join,
)  # fmt: skip
def test_missing_surplus_and_invalid_operands_are_refused(argv: tuple[str, ...]) -> None:
    assert refusal(*argv).rule_id == "command.operand"
