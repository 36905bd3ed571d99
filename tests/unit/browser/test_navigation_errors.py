"""Errors of navigation: each known one has its own reason and its own next step."""

from __future__ import annotations

import pytest

from browser_shell.browser import navigation_errors
from browser_shell.browser.navigation_errors import navigation_failed, net_error_in
from browser_shell.core.errors import ErrorCode


@pytest.mark.parametrize(
    ("name", "code", "advice"),
    [
        ("ERR_CERT_AUTHORITY_INVALID", "CERTIFICATE_INVALID", "browser.trust_certificates"),
        ("ERR_CERT_DATE_INVALID", "CERTIFICATE_INVALID", "cannot be bypassed"),
        ("ERR_CERT_COMMON_NAME_INVALID", "CERTIFICATE_INVALID", "Check the host"),
        ("ERR_CERT_REVOKED", "CERTIFICATE_INVALID", "cannot be bypassed"),
        ("ERR_CERT_SOMETHING_NEW", "CERTIFICATE_INVALID", "cannot be bypassed"),
        ("ERR_CERTIFICATE_TRANSPARENCY_REQUIRED", "CERTIFICATE_INVALID", "cannot be bypassed"),
        ("ERR_INVALID_AUTH_CREDENTIALS", "CREDENTIALS_REQUIRED", "live view"),
        ("ERR_SSL_CLIENT_AUTH_CERT_NEEDED", "CREDENTIALS_REQUIRED", "operator"),
        ("ERR_CONNECTION_REFUSED", "COMMAND_FAILED", "port"),
        ("ERR_CONNECTION_RESET", "COMMAND_FAILED", "Repeat"),
        ("ERR_EMPTY_RESPONSE", "COMMAND_FAILED", "Repeat"),
        ("ERR_TIMED_OUT", "COMMAND_FAILED", "later"),
        ("ERR_TOO_MANY_REDIRECTS", "COMMAND_FAILED", "cookies"),
        ("ERR_ABORTED", "COMMAND_FAILED", "Downloads are not possible"),
        ("ERR_SSL_PROTOCOL_ERROR", "COMMAND_FAILED", "http://"),
        ("ERR_SSL_SOMETHING_NEW", "COMMAND_FAILED", "http://"),
        ("ERR_INVALID_RESPONSE", "COMMAND_FAILED", "does not help"),
        ("ERR_RESPONSE_HEADERS_TRUNCATED", "COMMAND_FAILED", "does not help"),
        ("ERR_HTTP2_PROTOCOL_ERROR", "COMMAND_FAILED", "does not help"),
        ("ERR_UNSAFE_REDIRECT", "COMMAND_FAILED", "http and https"),
        ("ERR_PROXY_CONNECTION_FAILED", "COMMAND_FAILED", "operator"),
        ("ERR_BLOCKED_BY_ADMINISTRATOR", "POLICY_BLOCKED", "Do not repeat"),
        ("ERR_NAME_NOT_RESOLVED", "NAME_NOT_RESOLVED", "spelling"),
        ("ERR_SOMETHING_NEW", "COMMAND_FAILED", "Repeat the command once"),
    ],
)
def test_an_error_of_the_network_has_a_code_and_a_next_step(name: str, code: str, advice: str) -> None:
    result = navigation_failed(f"Navigation failed: net::{name}")
    assert result.error is ErrorCode[code]
    assert result.exit_code == ErrorCode[code].exit_code
    assert f"net::{name}" in result.message
    assert advice in result.advice


@pytest.mark.parametrize(
    ("status", "code", "advice"),
    [
        (400, "COMMAND_FAILED", "Check the URL"),
        (401, "CREDENTIALS_REQUIRED", "operator"),
        (403, "COMMAND_FAILED", "Sign in"),
        (404, "COMMAND_FAILED", "path"),
        (410, "COMMAND_FAILED", "start page"),
        (429, "COMMAND_FAILED", "Wait"),
        (499, "COMMAND_FAILED", "Check the URL"),
        (500, "COMMAND_FAILED", "later"),
        (503, "COMMAND_FAILED", "later"),
    ],
)
def test_an_empty_page_with_a_status_has_a_next_step(status: int, code: str, advice: str) -> None:
    result = navigation_failed(f"This page isn't working\nHTTP ERROR {status}\nReload")
    assert result.error is ErrorCode[code]
    assert f"HTTP status {status}" in result.message
    assert advice in result.advice


def test_every_entry_of_the_tables_has_a_reason_and_a_next_step() -> None:
    tables = (navigation_errors._BY_NAME, navigation_errors._BY_STATUS, dict(navigation_errors._BY_PREFIX))
    for explanation in (each for table in tables for each in table.values()):
        assert explanation.reason
        assert not explanation.reason.endswith(".")
        assert explanation.advice.endswith(".")


def test_a_page_that_the_command_led_to_is_named() -> None:
    result = navigation_failed("ERR_CONNECTION_REFUSED", url="https://a.example/" + "x" * 500)
    assert result.message.startswith("the command led to https://a.example/xx")
    assert len(result.message) < 400


def test_a_text_without_an_error_name_is_still_a_failure() -> None:
    result = navigation_failed("")
    assert (result.error, result.message) == (
        ErrorCode.COMMAND_FAILED,
        "the page could not be loaded: the browser reported an error",
    )


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Navigation failed: net::ERR_ABORTED", "ERR_ABORTED"),
        ("NET::ERR_CERT_DATE_INVALID", "ERR_CERT_DATE_INVALID"),
        ("ERR_HTTP2_PROTOCOL_ERROR and ERR_FAILED", "ERR_HTTP2_PROTOCOL_ERROR"),
        ("MYERR_ABORTED", ""),
        ("an error", ""),
    ],
)
def test_the_name_of_an_error_is_found_in_a_text(text: str, name: str) -> None:
    assert net_error_in(text) == name
