"""Builds the browser side once: display, jail, Chromium, egress proxy, driver, sessions, and the sandbox over them."""

from __future__ import annotations

import hashlib
import socket
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import structlog

from browser_shell.browser.chromium.display import WINDOW_MANAGER, XVNC, DisplaySettings
from browser_shell.browser.chromium.jail import HIDDEN, INTERPRETER, PROXY_PORT, JailSettings
from browser_shell.browser.chromium.managed_policy import write_managed_policy
from browser_shell.browser.chromium.process import ChromiumSettings
from browser_shell.browser.chromium.runtime_dirs import RuntimeLayout, end_leftover_services
from browser_shell.browser.chromium.supervisor import BrowserSupervisor, OpenNetwork
from browser_shell.browser.devtools.relay import listen_for_driver
from browser_shell.browser.driver.agent_browser import AgentBrowserDriver, DriverSettings, write_driver_files
from browser_shell.browser.proxy_addresses import ProxyAddresses
from browser_shell.browser.sandbox import ArtifactLimits, BrowserSandbox
from browser_shell.browser.sessions import SessionLimits, Sessions
from browser_shell.browser.tabs import TabTracker
from browser_shell.core.access import Activity
from browser_shell.core.decisions import refusal_type
from browser_shell.core.egress import Denial
from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.core.ports import ActivityFeed, AuditLog, Clock, HumanControl
from browser_shell.egress.denial_audit import DenialRecords
from browser_shell.egress.dialer import Dialer
from browser_shell.egress.proxy import EgressProxy
from browser_shell.egress.recent_denials import RecentDenials
from browser_shell.egress.resolver import SystemResolver
from browser_shell.policy.rules import UrlPolicy
from browser_shell.policy.urls import parse_target
from browser_shell.process.accounts import Account
from browser_shell.process.spawn import SETPRIV
from browser_shell.settings import Settings, driver_digest

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserParts:
    """What the rest of the server uses of the browser side."""

    supervisor: BrowserSupervisor
    sessions: Sessions
    driver: AgentBrowserDriver
    sandbox: BrowserSandbox
    rules: UrlPolicy
    resolver: SystemResolver
    denials: RecentDenials
    denial_records: DenialRecords


def build_browser(
    settings: Settings,
    *,
    layout: RuntimeLayout,
    account: Account | None,
    clock: Clock,
    audit: AuditLog,
    human: HumanControl,
    activity: ActivityFeed,
    held: ExitStack,
) -> BrowserParts:
    """Builds everything and starts nothing. Sockets that it opens end with `held`."""
    driver = _driver(settings, layout, account)
    _end_leftovers(layout, driver)
    rules, resolver, denials, tabs = UrlPolicy(settings.policy), SystemResolver(), RecentDenials(), TabTracker()
    unsafe_network = _open_network(settings, held)
    addresses = ProxyAddresses(
        port=unsafe_network.proxy_listener.getsockname()[1] if unsafe_network is not None else PROXY_PORT
    )

    def on_denial(denial: Denial) -> None:
        denials.add(denial)
        activity.add(shown_denial(denial, at=clock.wall()))

    records = DenialRecords(audit=audit, clock=clock)
    dialer = Dialer(rules=rules, parse=parse_target, resolver=resolver, audit=records, clock=clock, on_denial=on_denial)
    proxy = EgressProxy(dialer=dialer, requester_at=addresses.requester_at)
    supervisor = BrowserSupervisor(
        display=_display(settings, layout, account),
        chromium=_chromium(settings, layout, account, proxy_port=addresses.port),
        jail=_jail(settings, layout, account),
        driver_listener=(
            held.enter_context(listen_for_driver(settings.devtools_port)) if unsafe_network is None else None
        ),
        under_way=driver.under_way,
        serve_egress=proxy.serve,
        tabs=tabs,
        unsafe_network=unsafe_network,
    )
    sessions = Sessions(
        supervisor=supervisor,
        tabs=tabs,
        driver=driver,
        clock=clock,
        limits=SessionLimits(
            max_sessions=settings.policy.sessions.max, idle_seconds=settings.policy.sessions.idle_seconds
        ),
        directory=layout.artifacts,
        proxy_addresses=addresses,
        account=account,
        human=human,
        audit=audit,
    )
    sandbox = BrowserSandbox(
        sessions=sessions,
        driver=driver,
        denials=denials,
        human=human,
        clock=clock,
        limits=_artifact_limits(settings),
    )
    return BrowserParts(
        supervisor=supervisor,
        sessions=sessions,
        driver=driver,
        sandbox=sandbox,
        rules=rules,
        resolver=resolver,
        denials=denials,
        denial_records=records,
    )


def shown_denial(denial: Denial, *, at: float) -> Activity:
    """A refused connection, in the list that people see beside the picture."""
    return Activity(
        at=at,
        subject=denial.requester.subject,
        session_id=denial.requester.session_id,
        what="blocked",
        result=refusal_type(denial.rule_id).code.name,
        detail=f"{denial.host}:{denial.port} ({denial.rule_id})",
    )


def check_programs(settings: Settings) -> None:
    """Raises: ConfigurationInvalid when something that the browser side runs is missing, or is not what was pinned."""
    needed = [Path(SETPRIV), settings.driver]
    if settings.unsafe_attach_port is None:
        needed += [settings.chromium, XVNC, WINDOW_MANAGER]
        needed += [] if settings.unsafe_no_jail else [INTERPRETER]
    missing = [str(program) for program in needed if not program.is_file()]
    if missing:
        raise ConfigurationInvalid(f"not installed: {', '.join(missing)}. Run: make install")
    if hashlib.sha256(settings.driver.read_bytes()).hexdigest() != driver_digest():
        raise ConfigurationInvalid(f"{settings.driver}: not the pinned agent-browser (wrong digest). Run: make install")


def _end_leftovers(layout: RuntimeLayout, driver: AgentBrowserDriver) -> None:
    for name in end_leftover_services(layout):
        log.warning("leftover_ended", process=name)
    ended = driver.end_leftovers()
    if ended:
        log.warning("leftover_ended", process="agent-browser", count=ended)


def _open_network(settings: Settings, held: ExitStack) -> OpenNetwork | None:
    if settings.unsafe_attach_port is None and not settings.unsafe_no_jail:
        return None
    listener = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
    # Every 127.x.y.z, and nothing that comes over a real interface.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo")
    listener.bind(("0.0.0.0", 0))  # noqa: S104  bound to the loopback device above
    listener.listen(1024)
    listener.setblocking(False)
    return OpenNetwork(proxy_listener=listener, attach_port=settings.unsafe_attach_port)


def _driver(settings: Settings, layout: RuntimeLayout, account: Account | None) -> AgentBrowserDriver:
    driver_settings = DriverSettings(
        program=settings.driver,
        sockets=layout.sockets,
        home=layout.driver_home,
        config=layout.config / "agent-browser.json",
        action_policy=layout.config / "action-policy.json",
        devtools_port=settings.devtools_port,
        screenshot_format=settings.policy.output.screenshot_format,
        screenshot_quality=settings.policy.output.screenshot_quality,
        account=account,
    )
    write_driver_files(driver_settings)
    return AgentBrowserDriver(driver_settings)


def _display(settings: Settings, layout: RuntimeLayout, account: Account | None) -> DisplaySettings:
    return DisplaySettings(
        directory=layout.display,
        window_manager_home=layout.driver_home,
        marks=layout.marks,
        logs=layout.logs,
        width=settings.display_width,
        height=settings.display_height,
        account=account,
    )


def _chromium(
    settings: Settings, layout: RuntimeLayout, account: Account | None, *, proxy_port: int
) -> ChromiumSettings:
    return ChromiumSettings(
        program=settings.chromium,
        profile=layout.profile,
        home=layout.chromium_home,
        temporary=layout.temporary,
        marks=layout.marks,
        logs=layout.logs,
        port=settings.devtools_port,
        width=settings.display_width,
        height=settings.display_height,
        proxy_port=proxy_port,
        timezone=settings.timezone,
        account=account,
    )


def _jail(settings: Settings, layout: RuntimeLayout, account: Account | None) -> JailSettings:
    policies = layout.config / "chromium"
    write_managed_policy(policies, settings.policy.open.allow_schemes)
    return JailSettings(
        marks=layout.marks,
        logs=layout.logs,
        home=layout.chromium_home,
        chromium_policies=policies,
        devtools_port=settings.devtools_port,
        hidden=(*HIDDEN, str(settings.state_directory)),
        must_hide=settings.needs_lock("mounts"),
        account=account,
    )


def _artifact_limits(settings: Settings) -> ArtifactLimits:
    output = settings.policy.output
    return ArtifactLimits(
        screenshot_format=output.screenshot_format,
        max_image_bytes=output.max_image_bytes,
        max_pdf_bytes=output.max_pdf_bytes,
    )
