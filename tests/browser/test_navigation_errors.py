"""Pages that cannot be loaded: the error names the reason and the next step, and the session stays usable."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.faulty_servers import close_silently, closed_port, faulty_server, reset, speak_nonsense
from support.pages import Site
from support.server import Outcome, Server, Session, running_server
from support.time_limits import UNBLOCKED_SECONDS

GENERIC_ADVICE = "Read the reason; take a new snapshot"


@pytest.fixture(scope="module")
def open_server() -> Iterator[Server]:
    """A server that may reach every port of 127.0.0.1."""
    with running_server({"open": {"unsafe_allow_addresses": ["127.0.0.1"]}}) as running:
        yield running


@pytest.fixture
def anywhere(open_server: Server, site: Site) -> Iterator[Session]:
    session = open_server.session("errors")
    session.ok("open", site.add("/before", "<title>before</title>"))
    yield session
    session.run("close")


def failed(session: Session, url: str) -> Outcome:
    outcome = session.run("open", url)
    assert (outcome.exit_code, outcome.meta["name"]) == (1, "COMMAND_FAILED"), outcome
    assert GENERIC_ADVICE not in outcome.stderr
    assert outcome.seconds < UNBLOCKED_SECONDS
    return outcome


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_server_that_is_down_is_named_with_its_port(anywhere: Session, site: Site, scheme: str) -> None:
    port = closed_port()
    outcome = failed(anywhere, f"{scheme}://127.0.0.1:{port}/")
    assert f"127.0.0.1 port {port} refused the connection" in outcome.stderr
    assert "Check the host and the port" in outcome.stderr.splitlines()[-1]
    assert anywhere.ok("open", f"{site.origin}/before")["title"] == "before"


def test_a_redirect_to_a_server_that_is_down_names_that_server(anywhere: Session, site: Site) -> None:
    port = closed_port()
    outcome = failed(anywhere, site.add("/to-dead", "", {"Location": f"http://127.0.0.1:{port}/"}))
    assert f"port {port} refused the connection" in outcome.stderr


@pytest.mark.parametrize("behaviour", [close_silently, reset, speak_nonsense])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_server_that_sends_no_page_is_an_error_with_a_next_step(
    anywhere: Session, site: Site, behaviour: object, scheme: str
) -> None:
    assert callable(behaviour)
    with faulty_server(behaviour) as port:
        failed(anywhere, f"{scheme}://127.0.0.1:{port}/")
    assert anywhere.ok("open", f"{site.origin}/before")["title"] == "before"


def test_https_at_a_port_for_http_suggests_http(anywhere: Session, site: Site) -> None:
    outcome = failed(anywhere, f"https://127.0.0.1:{site.port}/")
    assert "Try http://" in outcome.stderr.splitlines()[-1]


def test_a_circle_of_redirects_is_named(anywhere: Session, site: Site) -> None:
    outcome = failed(anywhere, site.add("/circle", "", {"Location": "/circle"}))
    assert "redirects in a circle" in outcome.stderr


@pytest.mark.parametrize("kind", ["download", "no content"])
def test_a_download_leaves_the_page_before_open(anywhere: Session, site: Site, kind: str) -> None:
    headers = {"Content-Type": "application/zip", "Content-Disposition": "attachment; filename=a.zip"}
    url = site.add("/file", "PK", headers) if kind == "download" else site.add("/nothing", "", status=204)
    outcome = failed(anywhere, url)
    assert "Downloads are not possible" in outcome.stderr.splitlines()[-1]
    assert anywhere.ok("get", "title")["title"] == "before"


def test_a_redirect_to_a_file_is_refused(anywhere: Session, site: Site) -> None:
    outcome = failed(anywhere, site.add("/to-file", "", {"Location": "file:///etc/passwd"}))
    assert "not http or https" in outcome.stderr
