"""The words of core.health as a person reads them, translated at the moment of use."""

from PySide6.QtCore import QCoreApplication

from callboard.api.schema import CallStatus, CallView, EntryKind, ServerView
from callboard.core.health import Action, Severity, State
from callboard.ui import formats


def state_word(state: State) -> str:
    """A server's state in one or two words."""
    tr = QCoreApplication.translate
    match state:
        case State.DISABLED:
            return tr("Words", "Disabled")
        case State.NEEDS_CONFIG:
            return tr("Words", "Needs configuration")
        case State.NEEDS_SIGN_IN:
            return tr("Words", "Needs sign-in")
        case State.STOPPED:
            return tr("Words", "Stopped")
        case State.STARTING:
            return tr("Words", "Starting")
        case State.READY:
            return tr("Words", "Ready")
        case State.DEGRADED:
            return tr("Words", "Degraded")
        case State.RESTARTING:
            return tr("Words", "Restarting")
        case State.FAILED:
            return tr("Words", "Failed")
        case State.STOPPING:
            return tr("Words", "Stopping")


def state_phrase(view: ServerView, now: float) -> str:
    """The state with what changes while one looks: "Restarting (2 of 5, next in 4 s)"."""
    tr = QCoreApplication.translate
    word = state_word(view.state)
    wait = wait_text(view, now)
    if view.state is not State.RESTARTING or not view.max_attempts:
        return tr("Words", "{state} (next try in {time})").format(state=word, time=wait) if wait else word
    if wait:
        text = tr("Words", "{state} ({attempt} of {limit}, next in {time})")
        return text.format(state=word, attempt=view.attempt, limit=view.max_attempts, time=wait)
    return tr("Words", "{state} ({attempt} of {limit})").format(
        state=word, attempt=view.attempt, limit=view.max_attempts
    )


def wait_text(view: ServerView, now: float) -> str:
    """How long it is until a server is tried again: "4 s"; empty if it is not, or if that is due."""
    if view.next_retry is None or view.next_retry <= now:
        return ""
    return formats.uptime(max(1, round(view.next_retry - now)))


def state_line(view: ServerView, now: float) -> str:
    """State and, where there is one, the first clause of its reason: "Failed: npx was not found"."""
    phrase = state_phrase(view, now)
    if view.state is State.READY or not view.reason:
        return phrase
    return QCoreApplication.translate("Words", "{state}: {reason}").format(
        state=phrase, reason=formats.first_clause(view.reason)
    )


def action_verb(action: Action) -> str:
    """What the button of an action says; empty for none."""
    tr = QCoreApplication.translate
    match action:
        case Action.ENABLE:
            return tr("Words", "Enable")
        case Action.START:
            return tr("Words", "Start")
        case Action.STOP:
            return tr("Words", "Stop")
        case Action.CANCEL:
            return tr("Words", "Cancel")
        case Action.RETRY:
            return tr("Words", "Retry now")
        case Action.EDIT:
            return tr("Words", "Edit…")
        case Action.FILL_IN:
            return tr("Words", "Fill in…")
        case Action.SIGN_IN:
            return tr("Words", "Sign in…")
        case Action.SHOW_LOG:
            return tr("Words", "Show log")
        case Action.NONE:
            return ""


def severity_word(severity: Severity) -> str:
    """A severity in one or two words, for tooltips and screen readers."""
    tr = QCoreApplication.translate
    match severity:
        case Severity.OFF:
            return tr("Words", "off")
        case Severity.BUSY:
            return tr("Words", "busy")
        case Severity.FINE:
            return tr("Words", "fine")
        case Severity.ATTENTION:
            return tr("Words", "needs attention")
        case Severity.FAILED:
            return tr("Words", "failed")


def kind_word(kind: EntryKind) -> str:
    """What sort of server an entry describes."""
    tr = QCoreApplication.translate
    match kind:
        case "local":
            return tr("Words", "Local")
        case "remote":
            return tr("Words", "Remote")
        case "agent":
            return tr("Words", "Agent")


def transport_word(view: ServerView) -> str:
    """How a server is reached: "stdio", "HTTP", "SSE" or "agent"."""
    tr = QCoreApplication.translate
    match view.transport:
        case "http":
            return tr("Words", "HTTP")
        case "sse":
            return tr("Words", "SSE")
        case "agent":
            return tr("Words", "agent")
        case _:
            return view.transport


def call_status_word(status: CallStatus) -> str:
    """How a call went."""
    tr = QCoreApplication.translate
    match status:
        case "running":
            return tr("Words", "Running")
        case "completed":
            return tr("Words", "Completed")
        case "failed":
            return tr("Words", "Failed")
        case "cancelled":
            return tr("Words", "Cancelled")


def call_severity(status: CallStatus) -> Severity:
    """The severity whose colour and shape a call's status is drawn with."""
    match status:
        case "running":
            return Severity.BUSY
        case "completed":
            return Severity.FINE
        case "failed":
            return Severity.FAILED
        case "cancelled":
            return Severity.OFF


def call_title(call: CallView) -> str:
    """A call's tool, prompt or resource by its full name: "server.tool"."""
    return f"{call.server}.{call.tool}" if call.server else call.tool
