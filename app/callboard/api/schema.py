"""Shapes of the control API (`/api/v1`), shared by server and client.

Times are seconds since the epoch (float), durations milliseconds, sizes bytes. Everything here is
already redacted. Unknown fields are ignored when decoding, so that an older window can read a newer engine.
"""

from typing import Annotated, Any, Literal

import msgspec

from callboard.core.health import Action, Severity, State
from callboard.core.log_level import LogLevel

API_PREFIX = "/api/v1"
EntryKind = Literal["local", "remote", "agent"]
CallStatus = Literal["running", "completed", "failed", "cancelled"]
LogStream = Literal["stderr", "stdout", "mark"]
Value = Annotated[str, msgspec.Meta(min_length=1)]
ServerAction = Literal["start", "stop", "restart", "reconnect", "retry", "cancel", "reset", "enable", "disable"]


class View(msgspec.Struct, frozen=True):
    """Base of everything the API answers."""


class ErrorView(View, frozen=True, kw_only=True):
    """Body of every answer that is not 2xx."""

    code: str
    message: str
    fix: str
    data: dict[str, Any] = {}


class LastExit(View, frozen=True, kw_only=True):
    """How a server's process ended last. Exactly one of ``code`` and ``signal`` is set."""

    at: float
    code: int | None = None
    signal: str | None = None
    stderr: list[str] = []


class HealthView(View, frozen=True, kw_only=True):
    """What somebody's last look at a server found; kept until the next one, so mind its age.

    ``status``: "ok"; "warn": it wants attention; "fail"; "off": it does not run, and need not.
    """

    server: str
    at: float
    status: Literal["ok", "warn", "fail", "off"]
    message: str
    duration_ms: float | None = None  # how long it took to answer
    code: str = ""
    fix: str = ""
    stderr: str = ""  # the end of what it printed, 4000 characters at most; where it failed


class ServerView(View, frozen=True, kw_only=True):
    """One server as row, tray and command line show it."""

    name: str
    display_name: str
    description: str = ""
    kind: EntryKind
    transport: str  # "stdio", "http", "sse" or "agent"
    enabled: bool
    start: str  # "at-launch", "on-demand" or "manual"
    state: State
    severity: Severity
    since: float
    ready_since: float | None = None  # up without a break since then, degraded or not
    reason: str = ""  # one sentence, first clause short
    error_code: str = ""
    fix: str = ""
    action: Action = Action.NONE
    pid: int | None = None
    restarts: int = 0
    restarts_today: int = 0
    cpu_percent: float | None = None  # of one core, all its processes together; None unless somebody looks
    memory_bytes: int | None = None  # resident, all its processes together
    attempt: int = 0
    max_attempts: int = 0
    next_retry: float | None = None
    last_exit: LastExit | None = None
    command: list[str] = []  # argv as started, secrets as references; empty for remote servers
    url: str = ""
    cwd: str = ""
    endpoint: str = ""  # this server's own address on the gateway
    protocol: str = ""  # negotiated revision, e.g. "2025-11-25"
    server_version: str = ""
    tools: int = 0
    resources: int = 0
    prompts: int = 0
    cached: bool = False  # counts come from the last run
    health: HealthView | None = None  # what the last look found; None if nobody has looked yet
    sign_in: str = ""  # how far its OAuth sign-in is (SignInState); empty for a server without


class Figures(View, frozen=True, kw_only=True):
    """What a server's processes use together. ``cpu_percent`` is of one core; None if not measured twice yet."""

    cpu_percent: float | None = None
    memory_bytes: int = 0
    processes: int = 0


class FiguresView(View, frozen=True, kw_only=True):
    """One sample of all servers that have processes (`GET /figures` streams one every two seconds)."""

    at: float
    servers: dict[str, Figures]


class ToolView(View, frozen=True, kw_only=True):
    """One tool of a server. ``wire_name`` is its name on the aggregated endpoint."""

    name: str
    wire_name: str
    title: str = ""
    description: str = ""
    input_schema: Any = None
    output_schema: Any = None
    annotations: dict[str, Any] = {}
    problem: str = ""  # why the tool is left out or odd; empty if it is fine


class LogLine(View, frozen=True, kw_only=True):
    """One line of a server's output. ``n`` grows by one per line over the engine's life.

    ``level`` is guessed from the text: "" where it looks like none, and in floods, where it is not looked for.
    """

    n: int
    at: float
    stream: LogStream
    text: str
    level: LogLevel = ""


class LogPage(View, frozen=True, kw_only=True):
    """Lines after a given number. ``first`` is the oldest line still kept."""

    lines: list[LogLine]
    first: int
    next: int
    dropped: int = 0


class CallView(View, frozen=True, kw_only=True):
    """One row of the call log. ``duration_ms`` is None while the call runs."""

    id: int
    started: float
    client: str
    server: str
    method: str  # "tools/call", "resources/read" or "prompts/get"
    tool: str  # tool or prompt name, or resource URI
    status: CallStatus
    duration_ms: float | None = None
    request_bytes: int = 0
    response_bytes: int = 0
    error: str = ""
    engine: str = ""  # which one served it, where several share their call log


class CallDetail(CallView, frozen=True, kw_only=True):
    """A call with its payloads as stored: JSON text, cut at the log's bound."""

    arguments: str = ""
    result: str = ""
    arguments_cut: bool = False
    result_cut: bool = False


class CallEvent(msgspec.Struct, frozen=True):
    """A call began or ended, at ``at``. ``call`` is its number in the call log, 0 where it is not logged.

    ``error_type`` says what kind of failure: an error code, the code of a JSON-RPC error, or "tool_error".
    """

    call: int
    event: Literal["started", "completed", "failed", "cancelled"]
    at: float
    server: str
    method: str  # "tools/call", "resources/read" or "prompts/get"
    tool: str  # tool or prompt name, or resource URI
    client: str
    duration_ms: float | None = None
    error_type: str = ""


class CallPage(View, frozen=True, kw_only=True):
    """A window into the filtered log, oldest first. ``total`` counts all rows that match."""

    calls: list[CallView]
    offset: int
    total: int


class RosterProblem(View, frozen=True, kw_only=True):
    """Why the roster file is not in force, with 1-based line and column (0: unknown)."""

    code: str
    message: str
    fix: str
    line: int = 0
    column: int = 0


class RosterView(View, frozen=True, kw_only=True):
    """The roster in force. ``revision`` names the file's content; edits must quote it."""

    path: str
    revision: str
    servers: dict[str, dict[str, Any]]  # entries as written, secrets as references, in file order
    problem: RosterProblem | None = None
    starter: bool = False  # the file was made by the first start and not edited since


class FieldProblem(View, frozen=True, kw_only=True):
    """What is wrong with one field of an entry under edit. ``field`` is a dotted path ("env.TOKEN", "args.2")."""

    field: str
    message: str


class SecretHint(View, frozen=True, kw_only=True):
    """A value that looks like a credential and the secret's name it could get."""

    field: str
    secret: str
    why: str


class Validation(View, frozen=True, kw_only=True):
    """Answer to an entry under edit."""

    problems: list[FieldProblem]
    hints: list[SecretHint]


class RosterEdit(View, frozen=True, kw_only=True):
    """Answer to a change of the roster. ``undo`` takes the change back once."""

    revision: str
    undo: str


class SecretView(View, frozen=True, kw_only=True):
    """A secret's name, where its value lives and who uses it; never the value."""

    name: str
    present: bool
    used_by: list[str] = []


class SecretsView(View, frozen=True, kw_only=True):
    """The secret store in use. ``kind`` is "keyring", "vault" or "session"."""

    kind: str
    backend: str
    problem: str = ""
    fix: str = ""
    waiting: bool = False  # the system's own prompt is open
    secrets: list[SecretView] = []


class Notice(View, frozen=True, kw_only=True):
    """Something a person should know about the engine itself."""

    code: str
    message: str
    fix: str


class EngineView(View, frozen=True, kw_only=True):
    """The engine: who it is, where it listens, where it keeps things."""

    version: str
    pid: int
    started: float
    url: str  # gateway base, e.g. http://127.0.0.1:4470
    mcp_url: str
    port: int
    wanted_port: int
    config_dir: str
    state_dir: str
    log_dir: str
    clients: int = 0  # clients seen in the last minutes
    calls_last_hour: int = 0
    notices: list[Notice] = []


class NetworkChange(View, frozen=True, kw_only=True):
    """POST /engine/network: whether this computer is connected to a network; also told when that is another one."""

    online: bool


class ClientView(View, frozen=True, kw_only=True):
    """An IDE or agent program for which a configuration can be copied."""

    id: str
    name: str
    file: str  # where the snippet belongs, for display
    format: str  # "json", "toml" or "shell"


class SnippetView(View, frozen=True, kw_only=True):
    """A configuration ready to paste. ``note`` says what the person must do with it."""

    client: str
    text: str
    file: str
    format: str
    note: str = ""


class TokenView(View, frozen=True, kw_only=True):
    """A client's token in clear (`GET /token/CLIENT`)."""

    token: str


class NeedView(View, frozen=True, kw_only=True):
    """Something that a shipped server needs. ``state``: "met"; "missing": this machine lacks it; "asked": the person
    gives it; "optional": the person may.
    """

    kind: str  # "program", "packages", "browser", "display", "secret" or "folders"
    name: str = ""  # of the secret
    title: str = ""  # of what the person gives
    state: Literal["met", "missing", "asked", "optional"]
    message: str
    fix: str = ""  # how to get it
    link: str = ""  # where
    fields: dict[str, Any] = {}  # what the entry has in addition with this


class ShippedView(View, frozen=True, kw_only=True):
    """A server of the catalogue: an entry that is ready for the roster, and what it needs."""

    name: str
    display_name: str
    description: str
    kind: EntryKind
    entry: dict[str, Any]
    needs: list[NeedView] = []
    can_run: bool = True  # this machine lacks nothing for it
    added: list[str] = []  # names of the roster's servers that are this one


class Check(View, frozen=True, kw_only=True):
    """One line of `callboard doctor`, or one step of `callboard test`. ``status`` is "ok", "warn" or "fail"."""

    name: str
    status: Literal["ok", "warn", "fail"]
    message: str
    code: str = ""
    fix: str = ""
    duration_ms: float | None = None  # of a step that takes time


EventKind = Literal[
    "server",
    "server-removed",
    "tools",
    "log",
    "calls",
    "call-events",
    "roster",
    "engine",
    "secrets",
    "questions",
    "policy",
    "reset",
]


class Event(View, frozen=True, kw_only=True):
    """One event of the stream (`GET /events?after=SEQ`, one JSON object a line).

    ``data`` by kind: server → ServerView; server-removed → {"name"}; tools → {"server"}; log → {"server", "lines":
    [LogLine]}; calls → {"calls": [CallView]} (rows of the call log that changed: same id, newest state); call-events →
    {"events": [CallEvent]} (each start and end of a call, in order); roster → RosterView; engine → EngineView;
    secrets → SecretsView; questions → {"questions": [QuestionView]}, all that are open; policy → {} (rules or answers
    for good have changed); reset → {} (events were missed: read everything anew).
    """

    seq: int
    at: float
    kind: EventKind
    data: Any


class EntryEdit(View, frozen=True, kw_only=True):
    """PUT /roster/servers/NAME: the whole entry as it shall stand in the file.

    ``secrets`` maps secret names to values: they are stored before the file is written.
    ``rename`` moves the entry to a new name. ``revision`` is the one the editor was opened on ("" to not check).
    """

    entry: dict[str, Any]
    revision: str = ""
    secrets: dict[str, Value] = {}
    rename: str = ""
    create: bool = False  # refuse if the name exists


class ValidateRequest(View, frozen=True, kw_only=True):
    """POST /roster/validate."""

    name: str
    entry: dict[str, Any]
    editing: str = ""  # the entry's name in the file, empty for a new one


class CallRequest(View, frozen=True, kw_only=True):
    """POST /servers/NAME/call."""

    tool: str
    arguments: dict[str, Any] = {}


class SecretValue(View, frozen=True, kw_only=True):
    """PUT /secrets/NAME."""

    value: Value


class UndoRequest(View, frozen=True, kw_only=True):
    """POST /roster/undo."""

    undo: str
