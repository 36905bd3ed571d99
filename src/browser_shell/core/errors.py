"""Every error of a call: its code, its exit code, its advice for the model, and the exceptions that carry them.

BrowserShellError            unexpected fault in the server (exit 127).
├── CallRefused              the call may not happen; nothing ran.
│   ├── ArgumentsInvalid     outside the grammar (exit 2).
│   ├── PolicyBlocked        inside the grammar, against the policy (exit 126).
│   ├── NameNotResolved      the host of the URL has no address (exit 1).
│   ├── HookFailed           a hook crashed or took too long (exit 126).
│   └── TryLater             allowed, but not now (exit 75).
│       ├── HumanInControl       a person controls the browser.
│       ├── RateLimited          too many calls in this time, or at once.
│       ├── BudgetExceeded       the budget of this task is used up.
│       └── LimitsUnavailable    calls cannot be counted.
├── ExecutionTimedOut        the deadline passed and the command was killed (exit 124).
├── SandboxUnavailable       the command never ran, or its end is unknown (exit 127).
│   ├── BrowserUnavailable       Chromium is down or restarting.
│   │   └── JailUnavailable          the jail cannot be created; the browser does not start.
│   └── EngineUnavailable        the container engine did not run the job.
├── SandboxViolation         a container job broke a rule of its container (exit 126).
├── SessionGone              the page of the session is lost (exit 1).
├── DialogOpen               a dialog blocks the page (exit 1).
├── ActFailed                the page did not allow a command, or the command had no effect (exit 1).
├── OutputTooLarge           more output than the server returns (exit 1).
├── AuditUnavailable         the call could not be recorded, so it did not run (exit 75).
├── UnknownTool              no such tool on this endpoint (a protocol error).
└── ConfigurationInvalid     a setting or policy file is wrong; the server does not start.
"""

from __future__ import annotations

from enum import Enum


class ErrorCode(Enum):
    """The code word that begins `stderr`, with its exit code, its number in `_meta` and its advice.

    -32004 to -32007 are the product's JSON-RPC codes; -32602 and -32603 are JSON-RPC's own. The positive numbers
    lie outside the range that MCP 2026-07-28 reserves.
    """

    INVALID_ARGUMENTS = (2, -32602, "Correct the arguments; the message names the field and the rule.")
    POLICY_BLOCKED = (126, -32004, "Do not repeat the call: this server's policy forbids it.")
    NAME_NOT_RESOLVED = (
        1,
        1014,
        "Check the spelling of the host, try again later, or open another page. Nothing was opened.",
    )
    TIMEOUT = (124, -32007, "Ask for less, or give a larger timeout_sec (at most 120). The reason says what is left.")
    COMMAND_FAILED = (1, 1001, "Read the reason; take a new snapshot, refs change when the page changes.")
    ELEMENT_NOT_FOUND = (1, 1015, "Take a new look at the page and use a ref or selector from it.")
    ELEMENT_GONE = (1, 1016, "The element was removed from the page. Take a new snapshot and use its refs.")
    ELEMENT_COVERED = (1, 1017, "Act on the covering element first, for example close it, then repeat the command.")
    NOT_EDITABLE = (1, 1018, "Choose another element, or first do what makes this one editable.")
    PAGE_CHANGED = (1, 1019, "The ref belongs to an earlier page. Take a new snapshot and use its refs.")
    PAGE_LOADING = (1, 1020, "The page is still loading. Use wait --load load or wait --text TEXT, then repeat.")
    CERTIFICATE_INVALID = (
        1,
        1021,
        "The site has a certificate that is not trusted here. Warnings cannot be bypassed; tell the operator.",
    )
    CREDENTIALS_REQUIRED = (
        1,
        1022,
        "Open another page, or tell the operator: with browser.allow_login_prompts a person can sign in there.",
    )
    DIALOG_OPEN = (1, 1002, "Answer the page's dialog first: dialog accept, or dialog dismiss.")
    OUTPUT_TOO_LARGE = (1, 1003, "Ask for less: a selector, or no --full.")
    SESSION_LIMIT = (75, 1004, "Close a session that is no longer needed, or try later.")
    HUMAN_IN_CONTROL = (75, 1010, "A person has the mouse. Wait as long as the message says, then go on.")
    RATE_LIMITED = (75, 1011, "Too many calls. Wait as long as retry_after says, then go on.")
    BUDGET_EXCEEDED = (75, -32005, "The budget of this work is used up. Do not repeat the call before retry_after.")
    SANDBOX_VIOLATION = (126, -32006, "The job broke a rule of its container. Do not repeat it unchanged.")
    LIMITS_UNAVAILABLE = (
        75,
        1013,
        "The server cannot count calls, so it runs none. Wait some seconds; then tell its operator.",
    )
    AUDIT_UNAVAILABLE = (75, 1005, "The server cannot record calls, so it runs none. Tell its operator.")
    SESSION_GONE = (1, 1009, "The session's page is gone. Begin again with open.")
    BROWSER_UNAVAILABLE = (127, 1006, "The browser is restarting. Wait some seconds, then begin with open.")
    DRIVER_UNAVAILABLE = (127, 1007, "agent-browser could not run. Repeat once; then tell the operator.")
    ENGINE_UNAVAILABLE = (127, 1012, "The container engine did not run the job. Repeat once; then tell the operator.")
    HOOK_FAILED = (126, 1008, "A hook of this server failed, so the call was refused. Tell its operator.")
    INTERNAL_ERROR = (127, -32603, "A fault in the server. Repeat once; then tell the operator.")

    def __init__(self, exit_code: int, number: int, advice: str) -> None:
        self.exit_code = exit_code
        self.number = number
        self.advice = advice


class BrowserShellError(Exception):
    """Root of all errors of this product. `public_message` is safe to show to a model."""

    code: ErrorCode = ErrorCode.INTERNAL_ERROR

    def __init__(self, public_message: str, *, rule_id: str = "", advice: str = "") -> None:
        super().__init__(public_message)
        self.public_message = public_message
        self.rule_id = rule_id
        self.advice = advice
        """Advice for this case; empty for the advice of the code."""


class CallRefused(BrowserShellError):
    """The call may not happen. Nothing ran."""

    code = ErrorCode.POLICY_BLOCKED


class ArgumentsInvalid(CallRefused, ValueError):
    """The arguments lie outside the grammar."""

    code = ErrorCode.INVALID_ARGUMENTS


class PolicyBlocked(CallRefused, PermissionError):
    """The arguments are well formed, and the policy forbids the call."""


class NameNotResolved(CallRefused):
    """The host of a URL has no address, so there is nothing to judge and nothing to open."""

    code = ErrorCode.NAME_NOT_RESOLVED


class HookFailed(CallRefused):
    """A hook crashed or took too long. The call is refused, or its result is withheld."""

    code = ErrorCode.HOOK_FAILED


class TryLater(CallRefused):
    """The call is allowed, but there is no room for it now."""

    code = ErrorCode.SESSION_LIMIT

    def __init__(self, public_message: str, *, rule_id: str = "", retry_after_seconds: float | None = None) -> None:
        super().__init__(public_message, rule_id=rule_id)
        self.retry_after_seconds = retry_after_seconds


class HumanInControl(TryLater):
    """A person controls the browser."""

    code = ErrorCode.HUMAN_IN_CONTROL


class RateLimited(TryLater):
    """Too many calls in this time, or at once."""

    code = ErrorCode.RATE_LIMITED


class BudgetExceeded(TryLater):
    """The budget of a task (retries or execution time) is used up."""

    code = ErrorCode.BUDGET_EXCEEDED


class LimitsUnavailable(TryLater):
    """The counters of the limits do not answer, so the call cannot be admitted."""

    code = ErrorCode.LIMITS_UNAVAILABLE


class ExecutionTimedOut(BrowserShellError, TimeoutError):
    """The deadline passed and the command was killed."""

    code = ErrorCode.TIMEOUT


class SandboxUnavailable(BrowserShellError):
    """The backend was not available: the command did not run, or its end is unknown."""

    code = ErrorCode.DRIVER_UNAVAILABLE


class BrowserUnavailable(SandboxUnavailable):
    """Chromium is down or restarting."""

    code = ErrorCode.BROWSER_UNAVAILABLE


class EngineUnavailable(SandboxUnavailable):
    """A job could not run, or its result could not be stored."""

    code = ErrorCode.ENGINE_UNAVAILABLE


class JailUnavailable(BrowserUnavailable):
    """The jail cannot be created, and the browser does not start without it."""


class SandboxViolation(BrowserShellError):
    """A job requested or did something that its container does not allow."""

    code = ErrorCode.SANDBOX_VIOLATION


class SessionGone(BrowserShellError):
    """The session ended without `close`, so the page that the command refers to is lost."""

    code = ErrorCode.SESSION_GONE


class DialogOpen(BrowserShellError):
    """A JavaScript dialog blocks the page."""

    code = ErrorCode.DIALOG_OPEN


class ActFailed(BrowserShellError):
    """The page did not allow a command, or the command had no effect. Each instance has its own code and advice."""

    code = ErrorCode.COMMAND_FAILED

    def __init__(self, code: ErrorCode, public_message: str, *, advice: str = "") -> None:
        super().__init__(public_message, advice=advice)
        self.code = code


class OutputTooLarge(BrowserShellError):
    """The output of the command is larger than the server returns."""

    code = ErrorCode.OUTPUT_TOO_LARGE


class AuditUnavailable(BrowserShellError):
    """The record could not be written, so the call does not run."""

    code = ErrorCode.AUDIT_UNAVAILABLE


class UnknownTool(BrowserShellError, LookupError):
    """This endpoint has no such tool."""

    code = ErrorCode.INVALID_ARGUMENTS


class ConfigurationInvalid(BrowserShellError, ValueError):
    """A setting or a policy file is wrong. The message names the field and the rule."""


PRECEDENCE = (ErrorCode.TIMEOUT, ErrorCode.BUDGET_EXCEEDED, ErrorCode.SANDBOX_VIOLATION, ErrorCode.POLICY_BLOCKED)
"""The order of importance when several of these apply to one call (spec 004). Guards run in this order, too."""


def foremost(*errors: BrowserShellError) -> BrowserShellError:
    """Return the most important of several errors that apply to one call."""
    return min(errors, key=lambda error: PRECEDENCE.index(error.code) if error.code in PRECEDENCE else len(PRECEDENCE))


def first_error(group: BaseExceptionGroup[BrowserShellError]) -> BrowserShellError:
    """Return the first error of a task group, which may be inside nested groups."""
    first = group.exceptions[0]
    return first_error(first) if isinstance(first, BaseExceptionGroup) else first
