"""`browser-shell doctor`."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

import anyio
import structlog

from browser_shell.commands.doctor import Finding, examine, render
from browser_shell.settings import read_settings

_EXIT_UNHEALTHY = 1


def add_doctor_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    doctor = commands.add_parser("doctor", help="try everything a deployment needs, and say how to mend what fails")
    doctor.add_argument("--policy", type=Path, metavar="FILE", help="policy file (JSON or YAML)")
    doctor.add_argument("--json", action="store_true", help="write for programs instead of people")
    doctor.set_defaults(command=_doctor)


def _doctor(arguments: argparse.Namespace) -> int:
    # What the parts log while they are tried would stand between the findings.
    structlog.configure(processors=[_say_nothing])
    settings = read_settings(policy_path=arguments.policy.resolve() if arguments.policy else None)
    findings: list[Finding] = anyio.run(examine, settings)
    print(json.dumps([asdict(finding) for finding in findings]) if arguments.json else render(findings))
    return 0 if all(finding.healthy for finding in findings) else _EXIT_UNHEALTHY


def _say_nothing(logger: object, method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    raise structlog.DropEvent
