"""The job side over a scripted engine, for faults that a real engine does not produce on demand."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from browser_shell.core.calls import CommandResult, ContainerJob, JobRunner, Principal, ToolCall
from browser_shell.core.ports import Clock, Hook, Limits, ReportProgress, ignore_progress
from browser_shell.hooks.chain import HookChain
from browser_shell.jobs.evidence import RunCloser
from browser_shell.jobs.run_store import RunFacts, RunStore
from browser_shell.jobs.sandbox import ContainerSandbox
from browser_shell.jobs.upkeep import JobUpkeep
from browser_shell.pipeline import Pipeline
from browser_shell.policy.jobs import JobPolicy
from browser_shell.policy.loading import policy_from
from browser_shell.runner import ExecutionRunner
from browser_shell.tools.job_tools import job_tools
from browser_shell.tools.registry import ToolRegistry
from support.fake_engine import IMAGE, ScriptedEngine
from support.fakes import FakeClock, FakePerson, FakeResolver, NoLimits, RecordingActivity, RecordingAudit

RUN = "0123456789abcdef01234567"


def a_job(**changes: Any) -> ContainerJob:
    return ContainerJob(**{"name": "run_pytest", "runner": JobRunner.PYTEST, "timeout_seconds": 60, **changes})


def a_job_call(run_id: str = RUN, tool: str = "run_pytest", **arguments: Any) -> ToolCall:
    return ToolCall(call_id=run_id, principal=Principal(subject="ann"), tool=tool, arguments=arguments)


def run_facts(run_id: str = RUN) -> RunFacts:
    return RunFacts(run_id=run_id, start_time="2027-01-15T08:00:00.000+00:00", subject="ann", image=IMAGE)


def an_output_directory(parent: Path) -> Path:
    directory = parent / RUN / "output"
    directory.mkdir(parents=True)
    return directory


@dataclass
class JobBench:
    """A sandbox with its workspace, run store, audit log and policy."""

    directory: Path
    engine: ScriptedEngine = field(default_factory=ScriptedEngine)
    audit: RecordingAudit = field(default_factory=RecordingAudit)
    # Starts at the real time, because upkeep compares it with the times of directories.
    clock: Clock = field(default_factory=lambda: FakeClock(epoch=time.time()))
    policy: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        (self.directory / "workspace").mkdir(exist_ok=True)
        (self.directory / "artifacts").mkdir(exist_ok=True)
        self.store = RunStore(root=self.directory / "artifacts")
        self.closer = RunCloser(store=self.store, audit=self.audit)
        self.document = policy_from(self.policy, source="test")

    @property
    def workspace(self) -> Path:
        return self.directory / "workspace"

    @property
    def run_directory(self) -> Path:
        return self.store.root / RUN

    @property
    def evidence_file(self) -> Path:
        return self.run_directory / "evidence.json"

    @property
    def facts_file(self) -> Path:
        return self.run_directory / "run.json"

    @property
    def evidence(self) -> Any:
        return json.loads(self.evidence_file.read_bytes())

    async def run(
        self, job: ContainerJob | None = None, *, run_id: str = RUN, progress: ReportProgress = ignore_progress
    ) -> CommandResult:
        return await self.sandbox().run(a_job_call(run_id), job or a_job(), progress)

    def sandbox(self) -> ContainerSandbox:
        return ContainerSandbox(
            engine=self.engine,
            image=IMAGE,
            workspace=self.workspace,
            store=self.store,
            closer=self.closer,
            rules=self.document.sandbox,
            policy_digest=self.document.digest(),
            append_record=self.audit.append,
            clock=self.clock,
        )

    def upkeep(self) -> JobUpkeep:
        return JobUpkeep(
            engine=self.engine,
            store=self.store,
            closer=self.closer,
            retention=self.document.sandbox.retention,
            audit=self.audit,
            clock=self.clock,
        )

    def pipeline(
        self, *, limits: Limits | None = None, hooks: Iterable[Hook[ContainerJob]] = ()
    ) -> Pipeline[ContainerJob]:
        policy = JobPolicy(self.document)
        return Pipeline(
            registry=ToolRegistry(job_tools(self.document, policy.tools)),
            limits=limits or NoLimits(),
            hooks=HookChain(hooks=tuple(hooks)),
            policy=policy,
            resolver=FakeResolver(),
            audit=self.audit,
            runner=ExecutionRunner(containers=self.sandbox()),
            human=FakePerson(),
            show_activity=RecordingActivity().add,
            clock=self.clock,
        )
