"""Certificates: a wrong one stops the page, no warning can be bypassed, and a private authority can be trusted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from support.certificates import NOW, make_authority, make_server_identity
from support.pages import Site, running_site
from support.server import Server, Session, running_server, start_process

HOST = "127.0.0.1"
WRONG = {
    "self-signed": "ERR_CERT_AUTHORITY_INVALID",
    "unknown authority": "ERR_CERT_AUTHORITY_INVALID",
    "expired": "ERR_CERT_DATE_INVALID",
    "not valid yet": "ERR_CERT_DATE_INVALID",
    "other host": "ERR_CERT_COMMON_NAME_INVALID",
}


@dataclass(frozen=True, slots=True)
class TlsSites:
    """One site for each kind of certificate."""

    trusted: Site
    wrong: dict[str, Site]
    authority_file: Path


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsSites]:
    authority, unknown = make_authority(), make_authority("Unknown authority")
    identities = {
        "trusted": make_server_identity(authority, HOST, "shop.test"),
        "self-signed": make_server_identity(None, HOST),
        "unknown authority": make_server_identity(unknown, HOST),
        "expired": make_server_identity(
            authority, HOST, not_before=NOW - timedelta(days=9), not_after=NOW - timedelta(days=2)
        ),
        "not valid yet": make_server_identity(authority, HOST, not_before=NOW + timedelta(days=2)),
        "other host": make_server_identity(authority, "elsewhere.test"),
    }
    authority_file = tmp_path_factory.mktemp("authority") / "authority.pem"
    authority_file.write_bytes(authority.certificate_pem)
    with ExitStack() as stack:
        running = {name: stack.enter_context(running_site(tls=each.tls())) for name, each in identities.items()}
        for site in running.values():
            site.add("/", "<title>secure</title><p id=p>inside</p>")
        yield TlsSites(trusted=running.pop("trusted"), wrong=running, authority_file=authority_file)


@pytest.fixture(scope="module")
def trusting_server(sites: TlsSites) -> Iterator[Server]:
    policy = {
        "open": {
            "unsafe_allow_addresses": [HOST],
            "unsafe_resolve": {"shop.test": f"{HOST}:{sites.trusted.port}"},
        },
        "browser": {"trust_certificates": [str(sites.authority_file)]},
    }
    with running_server(policy) as running:
        yield running


@pytest.fixture
def trusting(trusting_server: Server) -> Iterator[Session]:
    session = trusting_server.session("trusting")
    yield session
    session.run("close")


@pytest.mark.promise("certificates:private-authority")
@pytest.mark.parametrize("url", ["https://shop.test/", "https://127.0.0.1:{port}/"])
def test_a_private_authority_that_the_policy_names_is_trusted(trusting: Session, sites: TlsSites, url: str) -> None:
    assert trusting.ok("open", url.format(port=sites.trusted.port))["title"] == "secure"
    assert trusting.ok("get", "text", "#p")["text"] == "inside"


@pytest.mark.promise("certificates:no-page")
@pytest.mark.parametrize(("kind", "name"), WRONG.items(), ids=WRONG)
def test_nothing_of_a_page_with_a_wrong_certificate_is_loaded(
    trusting: Session, sites: TlsSites, kind: str, name: str
) -> None:
    site = sites.wrong[kind]
    outcome = trusting.run("open", f"{site.origin}/")
    assert (outcome.exit_code, outcome.meta["name"]) == (1, "CERTIFICATE_INVALID")
    assert name in outcome.stderr
    assert "cannot be bypassed" in outcome.stderr.splitlines()[-1]
    assert site.requests == []
    assert trusting.ok("open", f"{sites.trusted.origin}/")["title"] == "secure"


@pytest.mark.promise("certificates:private-authority")
def test_without_the_policy_the_private_authority_is_not_trusted(sites: TlsSites) -> None:
    requests_before = len(sites.trusted.requests)
    with running_server({"open": {"unsafe_allow_addresses": [HOST]}}) as server:
        outcome = server.session().run("open", f"{sites.trusted.origin}/")
    assert outcome.meta["name"] == "CERTIFICATE_INVALID"
    assert len(sites.trusted.requests) == requests_before


@pytest.mark.promise("certificates:no-bypass")
def test_a_warning_about_a_certificate_cannot_be_bypassed(trusting: Session, sites: TlsSites) -> None:
    site = sites.wrong["unknown authority"]
    trusting.run("open", f"{site.origin}/")
    trusting.ok("click", "#details-button")
    assert "Proceed" not in trusting.ok("snapshot", "-i")["snapshot"]
    assert trusting.run("click", "#proceed-link").exit_code == 1
    # Chromium bypasses the warning when this word is typed on it.
    for letter in "thisisunsafe":
        trusting.run("press", letter)
    trusting.run("reload")
    trusting.run("open", f"{site.origin}/")
    assert site.requests == []


def test_a_click_that_leads_to_a_wrong_certificate_reports_it(trusting: Session, sites: TlsSites) -> None:
    site = sites.wrong["unknown authority"]
    page = sites.trusted.watch(f"<a id=a href='{site.origin}/x'>a</a>")
    trusting.ok("open", page.url)
    clicked = trusting.run("click", "#a")
    assert (clicked.exit_code, clicked.meta["name"]) == (1, "CERTIFICATE_INVALID")
    assert "ERR_CERT_AUTHORITY_INVALID" in clicked.stderr
    assert site.requests == []


def test_a_resource_with_a_wrong_certificate_is_left_out(trusting: Session, sites: TlsSites) -> None:
    site = sites.wrong["expired"]
    page = sites.trusted.watch(
        f"""<img src="{site.origin}/i"><iframe src="{site.origin}/f"></iframe>
        <script src="{site.origin}/s" onerror="report('left out')"></script><p id=p>page</p>"""
    )
    trusting.ok("open", page.url)
    page.wait_for("left out")
    assert trusting.ok("get", "text", "#p")["text"] == "page"
    assert site.requests == []


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "No such file or directory"),
        (b"not a certificate", "contains no PEM certificate"),
        (make_server_identity(None, HOST).certificate_pem, "not the certificate of an authority"),
        (make_authority().certificate_pem + make_authority().key_pem, "contains a private key"),
    ],
    ids=["missing", "not PEM", "server certificate", "private key"],
)
def test_a_wrong_file_stops_the_start_and_the_message_names_the_key(
    tmp_path: Path, server: Server, content: bytes | None, problem: str
) -> None:
    path, policy = tmp_path / "authority.pem", tmp_path / "policy.json"
    if content is not None:
        path.write_bytes(content)
    policy.write_text(f'{{"browser": {{"trust_certificates": ["{path}"]}}}}')
    env = {**server.env, "BROWSER_SHELL_POLICY": str(policy), "BROWSER_SHELL_STATE_DIR": str(tmp_path / "state")}
    with start_process(server.argv, env) as process:
        output, _ = process.communicate(timeout=30)
    assert process.returncode not in (0, None)
    assert f"browser.trust_certificates: {path} " in output
    assert problem in output
