"""The words for a server's health: state, severity and the one action that helps.

One vocabulary for row, tray, command line and REST answers.
"""

from enum import StrEnum


class State(StrEnum):
    """What a server is doing now."""

    DISABLED = "disabled"
    NEEDS_CONFIG = "needs-config"
    NEEDS_SIGN_IN = "needs-sign-in"
    STOPPED = "stopped"
    STARTING = "starting"
    READY = "ready"
    DEGRADED = "degraded"
    RESTARTING = "restarting"
    FAILED = "failed"
    STOPPING = "stopping"


class Severity(StrEnum):
    """How much a person must care; the tray's icon is the worst of all servers."""

    OFF = "off"
    BUSY = "busy"
    FINE = "fine"
    ATTENTION = "attention"
    FAILED = "failed"


class Action(StrEnum):
    """The primary action offered beside a state."""

    ENABLE = "enable"
    START = "start"
    STOP = "stop"
    CANCEL = "cancel"
    RETRY = "retry"
    EDIT = "edit"
    FILL_IN = "fill-in"
    SIGN_IN = "sign-in"
    SHOW_LOG = "show-log"
    NONE = "none"


SEVERITY: dict[State, Severity] = {
    State.DISABLED: Severity.OFF,
    State.NEEDS_CONFIG: Severity.ATTENTION,
    State.NEEDS_SIGN_IN: Severity.ATTENTION,
    State.STOPPED: Severity.OFF,
    State.STARTING: Severity.BUSY,
    State.READY: Severity.FINE,
    State.DEGRADED: Severity.ATTENTION,
    State.RESTARTING: Severity.ATTENTION,
    State.FAILED: Severity.FAILED,
    State.STOPPING: Severity.BUSY,
}

PRIMARY_ACTION: dict[State, Action] = {
    State.DISABLED: Action.ENABLE,
    State.NEEDS_CONFIG: Action.FILL_IN,
    State.NEEDS_SIGN_IN: Action.SIGN_IN,
    State.STOPPED: Action.START,
    State.STARTING: Action.CANCEL,
    State.READY: Action.STOP,
    State.DEGRADED: Action.SHOW_LOG,
    State.RESTARTING: Action.RETRY,
    State.FAILED: Action.RETRY,
    State.STOPPING: Action.NONE,
}
