"""Name lookups, with a fake `getaddrinfo`."""

from __future__ import annotations

import socket
from ipaddress import ip_address
from typing import Any

import anyio
import pytest

from browser_shell.egress.resolver import SystemResolver


def answering(monkeypatch: pytest.MonkeyPatch, answers: Any) -> None:
    async def getaddrinfo(*_: Any, **__: Any) -> Any:
        if isinstance(answers, Exception):
            raise answers
        return answers

    monkeypatch.setattr(anyio, "getaddrinfo", getaddrinfo)


def an_answer(family: int, address: str) -> tuple[Any, ...]:
    return (family, socket.SOCK_STREAM, 6, "", (address, 0))


async def test_address_resolves_to_itself() -> None:
    assert list(await SystemResolver().resolve("127.0.0.1")) == [ip_address("127.0.0.1")]


async def test_addresses_are_distinct_and_have_no_scope(monkeypatch: pytest.MonkeyPatch) -> None:
    four, six = an_answer(socket.AF_INET, "93.184.215.14"), an_answer(socket.AF_INET6, "fe80::1%eth0")
    answering(monkeypatch, [four, six, four, an_answer(socket.AF_UNIX, "x")])
    found = await SystemResolver().resolve("example.com")
    assert list(found) == [ip_address("93.184.215.14"), ip_address("fe80::1")]


@pytest.mark.parametrize("failure", [socket.gaierror(-2, "unknown"), OSError(), UnicodeError(), ValueError()])
async def test_failed_lookup_returns_no_address(monkeypatch: pytest.MonkeyPatch, failure: Exception) -> None:
    answering(monkeypatch, failure)
    assert await SystemResolver().resolve("example.com") == ()


async def test_lookup_timeout_returns_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_: Any, **__: Any) -> Any:
        await anyio.sleep_forever()

    monkeypatch.setattr(anyio, "getaddrinfo", never)
    assert await SystemResolver(deadline_seconds=0).resolve("example.com") == ()
