from __future__ import annotations

import time

import pytest

from browser_shell.core.calls import CommandResult
from browser_shell.core.json_values import JsonValue
from browser_shell.hooks.redact import REDACTED, NormaliseData, RedactSecrets, normalise, redact, redact_text
from support.fakes import a_call, a_plan

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"

SECRETS = [
    ("Authorization: Bearer abc123", "abc123"),
    ("authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
    ('"Authorization": "token deadbeef"', "deadbeef"),
    ("got Bearer abcdef0123456789", "abcdef0123456789"),
    ("bearer AbCdEfGhIjKlMnOpQrStUvWx", "AbCdEfGhIjKlMnOpQrStUvWx"),
    (f"the cookie holds {JWT}.", "c2lnbmF0dXJl"),
    ("https://a.example/cb?code=4%2FsecretA&state=1", "secretA"),
    ("https://a.example/#access_token=secretB&expires=1", "secretB"),
    ("https://a.example/x?sig=secretC", "secretC"),
    ("https://a.example/x?a=1&X-Amz-Signature=secretD", "secretD"),
    ("https://a.example/x?a=1&amp;token=secretE", "secretE"),
    ("/login?next=https%3A%2F%2Fb.example%2F%3Ftoken%3DsecretF%26x%3D1", "secretF"),
    ("https://user:secretG@a.example/", "secretG"),
    ("https://secretH@a.example/", "secretH"),
    ("postgres://u:secretI@db/x", "secretI"),
    ("Set-Cookie: sid=secretJ; HttpOnly", "secretJ"),
    ("Cookie: a=1; sid=secretK", "secretK"),
    ("password=secretL&user=a", "secretL"),
    ('{"access_token": "secretM", "a": 1}', "secretM"),
    ('{\\"refresh_token\\":\\"secretN\\"}', "secretN"),
    ("ghp_0123456789abcdefghijABCDEFGHIJ012345", "0123456789abcdefghij"),
    ("sk-proj-0123456789abcdefghij", "0123456789abcdefghij"),
    ("AKIAIOSFODNN7EXAMPLE", "IOSFODNN7"),
    ("-----BEGIN RSA PRIVATE KEY-----\nsecretO\n-----END RSA PRIVATE KEY-----", "secretO"),
]

ORDINARY = [
    "the password field is empty",
    "Password: must have 8 characters",
    "token ring networks",
    "the bearer of good news",
    "Bearer authentication is required",
    "Authorization: required",
    '- textbox "Password" [ref=e3]',
    "[ref=e3] [ref=e4]",
    "We use cookies. Cookie: a small file",
    "input[type=password]",
    "https://a.example/?q=token&page=2",
    "https://a.example/@user/post",
    "mail me at a@b.example",
    "secret: the recipe",
    "the session expired",
    "risk-management-and-governance-overview",
    "keyboard shortcut: key=Enter",
    "12:30 meet eyJ",
    "a.b.c://",
    "",
]


@pytest.mark.promise("output:secrets-redacted")
@pytest.mark.parametrize(("text", "secret"), SECRETS)
def test_secrets_in_text_are_redacted(text: str, secret: str) -> None:
    redacted = redact_text(text)
    assert secret not in redacted
    assert REDACTED in redacted


@pytest.mark.parametrize(("text", "secret"), SECRETS)
def test_redacting_twice_changes_nothing_more(text: str, secret: str) -> None:
    assert redact_text(redact_text(text)) == redact_text(text)


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_is_unchanged(text: str) -> None:
    assert redact_text(text) == text


def test_only_the_secret_part_of_a_url_is_redacted() -> None:
    assert redact_text("see https://a.example/cb?code=abc&state=1 now") == (
        "see https://a.example/cb?code=[redacted]&state=1 now"
    )


@pytest.mark.parametrize(
    "key",
    [
        "token",
        "access_token",
        "accessToken",
        "Access-Token",
        "id_token",
        "Authorization",
        "cookie",
        "Set-Cookie",
        "password",
        "passwd",
        "secret",
        "api_key",
        "apiKey",
        "X-API-Key",
        "client_secret",
        "session",
        "sessionId",
        "cookies",
    ],
)
def test_secret_fields_are_redacted_at_any_depth(key: str) -> None:
    assert redact({"a": [{key: "x1"}]}) == {"a": [{key: REDACTED}]}
    assert redact({key: {"deep": "x1"}}) == {key: REDACTED}
    assert redact({key: 1234}) == {key: REDACTED}


@pytest.mark.parametrize("value", [True, None, ""])
def test_a_secret_field_without_content_is_unchanged(value: bool | str | None) -> None:
    assert redact({"password": value}) == {"password": value}


def test_other_fields_are_unchanged() -> None:
    data = {
        "url": "https://a.example/",
        "checked": True,
        "count": 3,
        "tokens": 5,
        "key": "Enter",
        "tabs": [{"id": "t1"}],
    }
    assert redact(data) == data  # type: ignore[arg-type]  # dict is invariant


async def test_the_message_is_redacted_too() -> None:
    result = CommandResult(exit_code=1, data="Bearer abcdef123456", message="failed at https://u:p1@a.example/")
    assert await RedactSecrets().after(a_call(), a_plan(), result) == CommandResult(
        exit_code=1, data="Bearer [redacted]", message="failed at https://[redacted]@a.example/"
    )


@pytest.mark.parametrize(
    "unit",
    [
        "a-",
        "eyJ-",
        "xoxb-",
        "cookie:",
        "sk-a-",
        "://",
        "bearer ",
        "?code",
        '"token"',
        "a.b",
        "password",
        "%26",
        "A",
        "-----BEGIN ",
        "authorization:",
        "ghp_",
        "https://a:",
    ],
)
def test_redaction_takes_linear_time(unit: str) -> None:
    text = unit * (300_000 // len(unit))
    started = time.process_time()
    redact_text(text)
    assert time.process_time() - started < 2


SNAPSHOT: JsonValue = {
    "snapshot": "- button [ref=e1]",
    "refs": {"e1": {}},
    "lifecycle": {},
    "_boundary": {},
    "webmcp": "!",
}


def test_driver_metadata_is_dropped_from_a_snapshot() -> None:
    assert normalise(a_plan("snapshot"), SNAPSHOT) == {"snapshot": "- button [ref=e1]"}


def test_refs_are_kept_when_requested() -> None:
    assert normalise(a_plan("snapshot", options={"refs": ""}), SNAPSHOT) == {
        "snapshot": "- button [ref=e1]",
        "refs": {"e1": {}},
    }


@pytest.mark.promise("output:no-server-path")
@pytest.mark.parametrize("name", ["screenshot", "pdf"])
def test_server_paths_are_dropped(name: str) -> None:
    assert normalise(a_plan(name), {"path": "/run/secret/shot.png", "width": 10}) == {"width": 10}


@pytest.mark.parametrize("data", [None, "text", 3, [1], {"url": "https://a.example/", "path": "/a"}])
def test_other_data_is_unchanged(data: JsonValue) -> None:
    assert normalise(a_plan("get", "url"), data) == data


async def test_the_hook_changes_only_the_data() -> None:
    data: JsonValue = {"url": "https://a.example/", "targetId": "A1"}
    result = await NormaliseData().after(a_call(), a_plan("back"), CommandResult(exit_code=0, data=data, message="m"))
    assert result == CommandResult(exit_code=0, data={"url": "https://a.example/"}, message="m")


def test_target_ids_and_empty_removed_refs_are_dropped() -> None:
    opened: JsonValue = {"targetId": "A1", "title": "t", "url": "https://example.com/", "removedRefs": []}
    assert normalise(a_plan("open"), opened) == {"title": "t", "url": "https://example.com/"}


def test_removed_refs_are_kept_unless_empty() -> None:
    assert normalise(a_plan("snapshot"), {"snapshot": "", "removedRefs": ["e1"]}) == {
        "snapshot": "",
        "removedRefs": ["e1"],
    }


def test_origin_is_dropped_from_answers_of_get_and_is() -> None:
    assert normalise(a_plan("is"), {"origin": "https://example.com/", "visible": True}) == {"visible": True}


def test_refs_are_dropped_from_a_snapshot_delta() -> None:
    delta: JsonValue = {"snapshot": {"kind": "full", "refs": {"e1": {}}}}
    assert normalise(a_plan("snapshot"), delta) == {"snapshot": {"kind": "full"}}
