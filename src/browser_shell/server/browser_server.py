"""Assembly of the browser profile: display, jail, Chromium, egress proxy, driver, sessions, and the pipeline on top."""

from __future__ import annotations

import hashlib
import platform
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import structlog

from browser_shell.audit.log import JsonLinesAudit
from browser_shell.browser.chromium.certificates import read_certificates
from browser_shell.browser.chromium.display import VNC_SOCKET, WINDOW_MANAGER, XVNC, make_socket_directory
from browser_shell.browser.chromium.jail import HIDDEN_DIRECTORIES, INTERPRETER, PROXY_PORT, JailSettings
from browser_shell.browser.chromium.managed_policy import managed_policy, write_managed_policy
from browser_shell.browser.chromium.process import ChromiumSettings
from browser_shell.browser.chromium.runtime_dirs import RuntimeLayout, claimed_layout, end_leftover_services
from browser_shell.browser.chromium.supervisor import BrowserSupervisor, OpenNetwork
from browser_shell.browser.devtools.relay import listen_for_driver
from browser_shell.browser.driver.agent_browser import AgentBrowserDriver, DriverSettings, write_driver_files
from browser_shell.browser.proxy_addresses import ProxyAddresses
from browser_shell.browser.sandbox import BrowserSandbox
from browser_shell.browser.sessions import Sessions
from browser_shell.browser.tabs import TabTracker
from browser_shell.core.access import Activity, HumanControl
from browser_shell.core.decisions import UNREACHABLE_RULE, Denial, refusal_type
from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.core.ports import AuditLog, Clock
from browser_shell.egress.denials import DenialAudit, RecentDenials
from browser_shell.egress.dialer import Dialer, SystemResolver
from browser_shell.egress.proxy import EgressProxy
from browser_shell.hooks.chain import GROUP, installed_hooks, standard_chain
from browser_shell.ops.health import Probe
from browser_shell.pipeline import Pipeline
from browser_shell.policy.rules import UrlPolicy
from browser_shell.process.accounts import account_to_drop_to, forbid_tracing, give_up_root, transfer_directory
from browser_shell.process.orphans import adopt_orphans, reap_adopted
from browser_shell.process.spawn import SETPRIV
from browser_shell.runner import ExecutionRunner
from browser_shell.server.common import AssembledServer, SystemClock, new_call_id, open_audit, open_limits
from browser_shell.settings import DRIVER_SHA256, JOBS_DIRECTORY, Settings
from browser_shell.tools.browser_shell import BrowserShellTool
from browser_shell.tools.registry import ToolRegistry
from browser_shell.viewer.app import build_viewer_app
from browser_shell.viewer.bridge import VncBridge
from browser_shell.viewer.messages import RecentActivity
from browser_shell.viewer.takeover import Takeover

_FIRST_START_SECONDS = 25.0
_CLOSE_SECONDS = 3.0
_REAP_SECONDS = 1.0
_PROBE_CONNECTION_SECONDS = 2.0

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserParts:
    """The parts of the browser side that the server and `browser-shell doctor` use."""

    supervisor: BrowserSupervisor
    sessions: Sessions
    sandbox: BrowserSandbox
    policy: UrlPolicy
    resolver: SystemResolver
    denial_audit: DenialAudit


@asynccontextmanager
async def assemble_browser(settings: Settings) -> AsyncIterator[AssembledServer]:
    """Build and run all parts of the browser profile. Raises: ConfigurationInvalid, BrowserUnavailable."""
    check_programs(settings)
    adopt_orphans()
    _drop_root(settings)
    port = settings.unsafe_attach_port or settings.devtools_port or free_port()
    settings = replace(settings, devtools_port=port)
    clock, activity = SystemClock(), RecentActivity()
    with ExitStack() as resources:
        layout = resources.enter_context(claimed_layout(settings.runtime_directory, port, None))
        audit = resources.enter_context(open_audit(settings, str(port)))
        takeover = Takeover(clock=clock, audit=audit, idle_seconds=settings.policy.viewing.control_idle_seconds)
        browser = build_browser(
            settings,
            layout=layout,
            clock=clock,
            audit=audit,
            human=takeover,
            show_activity=activity.add,
            resources=resources,
        )
        display_socket = layout.display / VNC_SOCKET
        bridge = VncBridge(
            display_socket=display_socket,
            takeover=takeover,
            activity=activity,
            windows=browser.sessions,
            audit=audit,
            clock=clock,
            new_id=new_call_id,
        )
        viewer = partial(build_viewer_app, novnc=settings.novnc, bridge=bridge)
        async with open_limits(settings) as limits, _running(browser, audit):
            yield AssembledServer(
                pipeline=Pipeline(
                    registry=ToolRegistry([BrowserShellTool(allowed=browser.policy.commands)]),
                    limits=limits,
                    hooks=standard_chain(
                        max_output_characters=settings.policy.output.max_characters,
                        redact=settings.policy.output.redact,
                        plugins=installed_hooks(GROUP),
                    ),
                    policy=browser.policy,
                    resolver=browser.resolver,
                    audit=audit,
                    runner=ExecutionRunner(browser=browser.sandbox),
                    human=takeover,
                    show_activity=activity.add,
                    clock=clock,
                    max_output_characters=settings.policy.output.max_characters,
                ),
                audit=audit,
                runtime_directory=layout.root,
                probes=_health_probes(settings, browser.supervisor, display_socket),
                sessions_open=browser.sessions.count,
                # An attached browser is on a display that this server has no access to.
                viewer=viewer if settings.unsafe_attach_port is None else None,
            )


def _drop_root(settings: Settings) -> None:
    """Do everything that needs root, then become the unprivileged account. No listener of this server is served yet."""
    account = account_to_drop_to(settings.account)
    if account is None:
        forbid_tracing()
        return
    for directory in (settings.runtime_directory, settings.state_directory):
        transfer_directory(directory, account, excluded=(JOBS_DIRECTORY,))
    make_socket_directory()
    give_up_root(account)


@asynccontextmanager
async def _running(browser: BrowserParts, audit: JsonLinesAudit) -> AsyncIterator[None]:
    """Run all background tasks. Enters when Chromium accepts commands; closes the sessions at the end."""
    async with anyio.create_task_group() as background:
        for task in (
            browser.supervisor.run,
            browser.sessions.expire_idle,
            browser.denial_audit.run,
            audit.run_checkpoints,
            _reap_orphans,
        ):
            background.start_soon(task)
        try:
            await browser.supervisor.connection(seconds=_FIRST_START_SECONDS)
            yield
        finally:
            with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
                await browser.sessions.close_all()
            background.cancel_scope.cancel()


async def _reap_orphans() -> None:
    while True:
        await anyio.sleep(_REAP_SECONDS)
        reap_adopted()


def _health_probes(settings: Settings, supervisor: BrowserSupervisor, display_socket: Path) -> Mapping[str, Probe]:
    async def display() -> None:
        async with await anyio.connect_unix(display_socket):
            return

    async def chromium() -> None:
        await supervisor.connection(seconds=_PROBE_CONNECTION_SECONDS)

    async def cdp() -> None:
        connection = await supervisor.connection(seconds=_PROBE_CONNECTION_SECONDS)
        await connection.devtools.call("Browser.getVersion")

    async def driver() -> None:
        await anyio.to_thread.run_sync(check_programs, settings)

    probes: dict[str, Probe] = {"chromium": chromium, "cdp": cdp, "driver": driver, "egress": supervisor.probe_egress}
    return probes if settings.unsafe_attach_port is not None else {"display": display, **probes}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def build_browser(
    settings: Settings,
    *,
    layout: RuntimeLayout,
    clock: Clock,
    audit: AuditLog,
    human: HumanControl,
    show_activity: Callable[[Activity], None],
    resources: ExitStack,
) -> BrowserParts:
    """Build all parts without starting them. The sockets opened here are closed with `resources`."""
    driver_settings = DriverSettings(program=settings.driver, layout=layout, devtools_port=settings.devtools_port)
    write_driver_files(driver_settings)
    driver = AgentBrowserDriver(driver_settings)
    _end_leftovers(layout, driver)
    policy, resolver, denials, tabs = UrlPolicy(settings.policy), SystemResolver(), RecentDenials(), TabTracker()
    unsafe_network = _open_network(settings, resources)
    addresses = ProxyAddresses(
        port=unsafe_network.proxy_listener.getsockname()[1] if unsafe_network is not None else PROXY_PORT
    )

    def on_denial(denial: Denial) -> None:
        denials.add(denial)
        if denial.rule_id != UNREACHABLE_RULE:
            show_activity(denial_activity(denial, at=clock.wall()))

    denial_audit = DenialAudit(audit=audit, clock=clock)
    dialer = Dialer(rules=policy, resolver=resolver, audit=denial_audit, clock=clock, on_denial=on_denial)
    proxy = EgressProxy(dialer=dialer, requester_at=addresses.requester_at)
    supervisor = BrowserSupervisor(
        chromium=ChromiumSettings(
            program=settings.chromium,
            layout=layout,
            port=settings.devtools_port,
            width=settings.display_width,
            height=settings.display_height,
            proxy_port=addresses.port,
            timezone=settings.timezone,
        ),
        jail=jail_settings(settings, layout),
        driver_listener=(
            resources.enter_context(listen_for_driver(settings.devtools_port)) if unsafe_network is None else None
        ),
        serve_egress=proxy.serve,
        tabs=tabs,
        unsafe_network=unsafe_network,
    )
    sessions = Sessions(
        supervisor=supervisor,
        tabs=tabs,
        driver=driver,
        clock=clock,
        limits=settings.policy.sessions,
        output=settings.policy.output,
        layout=layout,
        proxy_addresses=addresses,
        human=human,
        audit=audit,
    )
    sandbox = BrowserSandbox(
        sessions=sessions,
        driver=driver,
        denials_since=denials.since,
        human=human,
        clock=clock,
        output=settings.policy.output,
    )
    return BrowserParts(
        supervisor=supervisor,
        sessions=sessions,
        sandbox=sandbox,
        policy=policy,
        resolver=resolver,
        denial_audit=denial_audit,
    )


def denial_activity(denial: Denial, *, at: float) -> Activity:
    """Describe a refused connection for the activity list of the live view."""
    return Activity(
        at=at,
        subject=denial.requester.subject,
        session_id=denial.requester.session_id,
        what="blocked",
        result=refusal_type(denial.rule_id).code.name,
        detail=f"{denial.host}:{denial.port} ({denial.rule_id})",
    )


def check_programs(settings: Settings) -> None:
    """Raises: ConfigurationInvalid when a program is missing or the driver is not the pinned one."""
    needed = [Path(SETPRIV), settings.driver]
    if settings.unsafe_attach_port is None:
        needed += [settings.chromium, XVNC, WINDOW_MANAGER]
        needed += [] if settings.unsafe_no_jail else [INTERPRETER]
    missing = [str(program) for program in needed if not program.is_file()]
    if missing:
        raise ConfigurationInvalid(f"not installed: {', '.join(missing)}. Run: make install")
    machine = platform.machine()
    if machine not in DRIVER_SHA256:
        raise ConfigurationInvalid(f"this machine is a {machine}; browser-shell runs on {' and '.join(DRIVER_SHA256)}")
    if hashlib.sha256(settings.driver.read_bytes()).hexdigest() != DRIVER_SHA256[machine]:
        raise ConfigurationInvalid(f"{settings.driver}: not the pinned agent-browser (wrong digest). Run: make install")


def _end_leftovers(layout: RuntimeLayout, driver: AgentBrowserDriver) -> None:
    for name in end_leftover_services(layout):
        log.warning("leftover_process_ended", process=name)
    ended = driver.end_leftovers()
    if ended:
        log.warning("leftover_process_ended", process="agent-browser", count=ended)


def _open_network(settings: Settings, resources: ExitStack) -> OpenNetwork | None:
    if settings.unsafe_attach_port is None and not settings.unsafe_no_jail:
        return None
    listener = resources.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
    # Accepts every 127.x.y.z address and nothing from a real interface.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo")
    listener.bind(("0.0.0.0", 0))  # noqa: S104  bound to the loopback device above
    listener.listen(1024)
    listener.setblocking(False)
    return OpenNetwork(proxy_listener=listener, attach_port=settings.unsafe_attach_port)


def jail_settings(settings: Settings, layout: RuntimeLayout) -> JailSettings:
    """Write the managed policy of the jail. Raises: ConfigurationInvalid."""
    browser = settings.policy.browser
    if browser.trust_certificates and (settings.unsafe_no_jail or settings.unsafe_attach_port is not None):
        raise ConfigurationInvalid("browser.trust_certificates: has no effect without the jail; remove it")
    policy = managed_policy(
        settings.policy.open.allow_schemes,
        trusted_certificates=read_certificates(browser.trust_certificates),
        login_prompts=browser.allow_login_prompts,
    )
    write_managed_policy(layout.chromium_policies, policy)
    return JailSettings(
        layout=layout,
        hidden_directories=(*HIDDEN_DIRECTORIES, str(settings.state_directory), *map(str, layout.hidden_from_chromium)),
        must_hide=settings.needs_lock("mounts"),
    )
