"""`browser-shell audit`: verify, tail, export, report, checkpoint, key. All of them only read the log."""

from __future__ import annotations

import argparse
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from browser_shell.audit.query import (
    Entry,
    Selection,
    check_export,
    export_records,
    follow_entries,
    parse_timestamp,
    read_entries,
    to_json_line,
)
from browser_shell.audit.report import render_report
from browser_shell.audit.signing import PublicKey, signed_checkpoint
from browser_shell.audit.storage import LogFiles
from browser_shell.audit.verify import Verdict, verify_log
from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.settings import read_settings

_EXIT_DAMAGED = 1
_FOLLOW_SECONDS = 0.5


def add_audit_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `audit` and its actions."""
    audit = commands.add_parser("audit", help="check, read and show the audit log")
    actions = audit.add_subparsers(required=True, metavar="action")

    verify = _add_action(actions, "verify", _verify, "check every line, link and signature; exit 1 on any problem")
    verify.add_argument(
        "--checkpoint", type=Path, action="append", default=[], metavar="FILE",
        help="a checkpoint kept elsewhere that the log must contain; may be repeated",
    )  # fmt: skip
    verify.add_argument("--export", type=Path, metavar="FILE", help="check an export instead of a log")

    tail = _add_action(actions, "tail", _tail, "print the latest records")
    tail.add_argument("-n", dest="count", type=int, default=20, metavar="N", help="number of records (default: 20)")
    tail.add_argument("-f", "--follow", action="store_true", help="print new records until Ctrl-C")

    export = _add_action(actions, "export", _export, "print records as JSON lines, each with a proof")
    _add_selection(export)

    report = _add_action(actions, "report", _report, "write a summary as one HTML page")
    _add_selection(report)
    report.add_argument(
        "-o", "--output", type=Path, default=Path("audit-report.html"), metavar="FILE",
        help="page to write (default: %(default)s)",
    )  # fmt: skip

    _add_action(actions, "checkpoint", _checkpoint, "print the latest checkpoint, to keep on another machine")
    _add_action(actions, "key", _key, "print the public key, to keep on another machine")


def _add_action(
    actions: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    command: Callable[[argparse.Namespace], int],
    description: str,
) -> argparse.ArgumentParser:
    """Add an action with the options that all of them have."""
    parser = actions.add_parser(name, help=description)
    parser.add_argument("--log", type=Path, metavar="FILE", help="audit.jsonl (default: from the server's settings)")
    parser.add_argument(
        "--key", type=Path, metavar="FILE", help="trusted public key (default: the key next to the log)"
    )
    parser.set_defaults(command=command)
    return parser


def _add_selection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--since", metavar="TIME", help="at or after this time, such as 2027-01-15T08:00")
    parser.add_argument("--until", metavar="TIME", help="before this time")
    parser.add_argument("--subject", default="", help="only this subject")
    parser.add_argument("--session", default="", help="only this session")


def _verify(arguments: argparse.Namespace) -> int:
    if arguments.export is not None:
        return _verify_export(arguments)
    log, key = _log(arguments), _public_key(arguments)
    checkpoints = [_read(path) for path in arguments.checkpoint]
    with report_os_errors(log):
        verdict = verify_log(log, key=key, checkpoints=checkpoints)
    for problem in verdict.problems:
        print(f"WRONG  {problem}")
    print(_format_verdict(verdict))
    if arguments.key is None:
        print(f"note   the key {key.key_id} is the one next to the log; pass --key with a trusted copy to be sure")
    return 0 if verdict.sound and verdict.last_signed else _EXIT_DAMAGED


def _verify_export(arguments: argparse.Namespace) -> int:
    # The key in the header of the export is not used: an export cannot prove itself.
    proven, problems = check_export(_read(arguments.export).splitlines(keepends=True), key=_public_key(arguments))
    for problem in problems:
        print(f"WRONG  {problem}")
    print(f"{'ok' if not problems else 'BROKEN'}     {proven} records are proven")
    return _EXIT_DAMAGED if problems or not proven else 0


def _format_verdict(verdict: Verdict) -> str:
    signed = verdict.last_signed
    rate = verdict.records / verdict.seconds if verdict.seconds else 0
    lines = [
        f"{'ok    ' if verdict.sound and signed else 'BROKEN'} {verdict.records} records in {verdict.files} files, "
        f"{verdict.checkpoints} checkpoints, {verdict.seconds:.2f} s ({rate:,.0f} records/s)"
    ]
    if signed:
        lines.append(f"signed up to record {signed.seq} at {signed.time}, log {signed.log}, key {signed.key}")
    if verdict.unsigned_records:
        lines.append(f"note   {verdict.unsigned_records} records at the end are not signed yet")
    if verdict.unfinished_bytes:
        lines.append(f"note   {verdict.unfinished_bytes} bytes of an incomplete line: a crash, or a write in progress")
    return "\n".join(lines)


def _tail(arguments: argparse.Namespace) -> int:
    log = _log(arguments)
    with suppress(KeyboardInterrupt), report_os_errors(log):
        following = follow_entries(log, pause=partial(time.sleep, _FOLLOW_SECONDS)) if arguments.follow else iter(())
        last_seq = 0.0
        for entry in deque(read_entries(log), maxlen=max(0, arguments.count)):
            print(_format_entry(entry), flush=True)
            last_seq = entry.number("seq") or last_seq
        for entry in following:
            if (entry.number("seq") or 0) > last_seq:
                print(_format_entry(entry), flush=True)
    return 0


def _format_entry(entry: Entry) -> str:
    names = ("subject", "session_id", "call_id", "tool", "subcommand", "host", "rule_id", "error")
    values = [entry.text(name) for name in names]
    duration = entry.number("duration_ms")
    text = " ".join(value for value in values if value) + (f" {duration:.1f} ms" if duration is not None else "")
    # Callers choose some values, which must not send escape sequences to the terminal.
    printable = "".join(letter if letter.isprintable() else "�" for letter in text)
    return f"{entry.text('seq'):>8} {entry.text('time')} {entry.text('kind'):<22} {printable}"


def _export(arguments: argparse.Namespace) -> int:
    log = _log(arguments)
    with report_os_errors(log):
        for item in export_records(log, _selection(arguments), key=_public_key(arguments)):
            sys.stdout.write(to_json_line(item))
    return 0


def _report(arguments: argparse.Namespace) -> int:
    log, selection, key = _log(arguments), _selection(arguments), _public_key(arguments)
    with report_os_errors(log):
        verdict = verify_log(log, key=key)
    entries = (entry for entry in read_entries(log) if selection.matches(entry))
    created_at = datetime.now(UTC).isoformat(timespec="seconds")
    page = render_report(entries, verdict, title=f"browser-shell audit: {log}", created_at=created_at)
    with report_os_errors(arguments.output):
        arguments.output.write_text(page, encoding="utf-8", errors="replace")
    print(f"written: {arguments.output}")
    return 0 if verdict.sound else _EXIT_DAMAGED


def _checkpoint(arguments: argparse.Namespace) -> int:
    line = _read(LogFiles(_log(arguments)).head)
    if signed_checkpoint(line, _public_key(arguments)) is None:
        print("browser-shell: the latest checkpoint is not signed by this key", file=sys.stderr)
        return _EXIT_DAMAGED
    sys.stdout.write(line.decode("ascii"))
    return 0


def _key(arguments: argparse.Namespace) -> int:
    sys.stdout.write(_public_key(arguments).pem().decode("ascii"))
    return 0


def _log(arguments: argparse.Namespace) -> Path:
    if arguments.log is not None:
        return Path(arguments.log)
    settings = read_settings()
    if not settings.devtools_port:
        raise ConfigurationInvalid("this server chooses its DevTools port at the start: pass its log with --log")
    return settings.state_directory / str(settings.devtools_port) / "audit.jsonl"


def _public_key(arguments: argparse.Namespace) -> PublicKey:
    return PublicKey.read(arguments.key or LogFiles(_log(arguments)).public_key)


def _selection(arguments: argparse.Namespace) -> Selection:
    return Selection(
        since=parse_timestamp(arguments.since) if arguments.since else "",
        until=parse_timestamp(arguments.until) if arguments.until else "",
        subject=arguments.subject,
        session=arguments.session,
    )


def _read(path: Path) -> bytes:
    with report_os_errors(path):
        return path.read_bytes()


@contextmanager
def report_os_errors(path: Path) -> Iterator[None]:
    """Raises: ConfigurationInvalid instead of OSError."""
    try:
        yield
    except OSError as cause:
        raise ConfigurationInvalid(f"{path}: {cause.strerror or cause}") from cause
