"""The one table of error codes: what went wrong in a sentence, and what mends it.

Every error a person can meet is a :class:`CallboardError` with a stable code of :data:`FIXES`.
The same code stands in the window, the command line, the REST answers and ``callboard doctor``.
"""

from typing import Any

# In a server's fix, NAME stands for the server: see fix_for.
FIXES: dict[str, str] = {
    # the roster
    "roster-unreadable": "Correct the file at the line shown; the last good roster stays in force until then.",
    "roster-invalid": "Correct the field shown; the last good roster stays in force until then.",
    "roster-changed": "The file was changed by somebody else meanwhile: look at the new version, then save again.",
    "roster-unwritable": "Make the roster's folder writable, then save again.",
    "roster-uneditable": "Change this entry in the file itself.",
    "server-unknown": "Use one of the names that `callboard list` shows.",
    "name-taken": "Choose another name.",
    "entry-invalid": "Correct what is named.",
    # what a server needs before it can start
    "needs-missing": "Get what is named, then start the server.",
    "shipped-unknown": "Use one of the names that `callboard add` lists.",
    "registry-invalid": "Check the address or the path; it must lead to documents of the MCP registry's format.",
    "registry-unknown": "Use a name that `callboard registry search` shows.",
    "bundle-invalid": "Get the bundle anew from who made it.",
    "bundle-refused": "Do not use this bundle; tell who made it.",
    "bundle-too-large": "Ask who made the bundle for a smaller one.",
    "bundle-unwritable": "Make room on the disk, or make the data folder writable.",
    "env-unset": "Set the environment variable, or put the value into the server's configuration.",
    "secret-missing": "Enter the secret's value in the server's configuration.",
    "secret-invalid": "Give the secret another name, or a value that is not empty.",
    "secrets-unavailable": "Install or start a keyring (gnome-keyring, KWallet); until then values last this session.",
    "secrets-locked": "Unlock the keyring, then try again.",
    "secrets-refused": "The keyring refused the value; try again, or look at the keyring's own settings.",
    # starting and running
    "disabled": "Enable the server (`callboard enable NAME`).",
    "command-not-found": "Install the program, or give its full path as the command.",
    "command-not-executable": "Make the file executable, or name the interpreter as the command.",
    "start-refused": "Look at the reason; end other programs if the system has run out of something, then retry.",
    "cwd-missing": "Choose a working folder that exists.",
    "start-timeout": "Look at the log (`callboard tail NAME`); if the server only needs longer, raise timeouts.start.",
    "exited-early": "Look at the last lines of the log (`callboard tail NAME`).",
    "exited": "Look at the log (`callboard tail NAME`); the server is started again by itself.",
    "not-responding": "Look at the log (`callboard tail NAME`); the server is started again by itself.",
    "crash-loop": "Look at the log (`callboard tail NAME`), mend the cause, then retry (`callboard start NAME`).",
    "handshake-failed": "Check that the command is an MCP server and speaks on stdout.",
    "stdout-noise": "The lines stand in its log (`callboard tail NAME`); mend the server to print on stderr instead.",
    "agent-load": "Mend the agent's code where it says; what was loaded before goes on.",
    # remote servers
    "remote-unreachable": "Check the address and the network.",
    "remote-timeout": "Check the address; if the server only needs longer, raise timeouts.start.",
    "offline": "Connect this computer to the network; remote servers are then looked at again by themselves.",
    "remote-dns": "Check the host's name in the address, and the network.",
    "remote-refused": "Check the port in the address, and that the server runs.",
    "remote-proxy": "Check the system's proxy settings (HTTPS_PROXY, NO_PROXY).",
    "remote-tls": "Check the server's certificate or the CA bundle.",
    "remote-certificate": "Correct the paths of certificate, key and CA bundle, and the key's passphrase.",
    "remote-sign-in": "Sign in (`callboard sign-in NAME`), or enter a valid token.",
    "remote-scope": "Sign in again (`callboard sign-in NAME`) to give the rights that are named.",
    "remote-forbidden": "The token has no right to this server; use another one.",
    "remote-not-found": "Check the address.",
    "remote-failed": "Try again later: the fault is the server's.",
    "remote-status": "Try again later, or check the address.",
    # signing in to remote servers
    "sign-in-unavailable": "Choose OAuth sign-in in the server's configuration, or enter a token there.",
    "sign-in-client-id": "Register Callboard with the server's provider, and enter the client ID in the configuration.",
    "sign-in-failed": "Look at the step that failed, then sign in again.",
    "sign-in-refused": "Sign in again and agree, or use another account.",
    "sign-in-cancelled": "Sign in again.",
    "sign-in-unknown": "Begin the sign-in anew; each address and code is good for one sign-in.",
    # calls
    "no-agent": "Name a server whose entry has agent: …",
    "tool-unknown": "Use one of the tools that `callboard tools` shows.",
    "prompt-unknown": "Use one of the prompts that `callboard prompts` shows.",
    "resource-unknown": "Use one of the addresses that `callboard resources` shows, or one of a template.",
    "call-refused": "Check the name of the tool and its arguments.",
    "call-timeout": "Raise timeouts.call for this server, or make the call smaller.",
    "call-cancelled": "The client cancelled the call.",
    "upstream-gone": "The server ended during the call; call again once it is ready.",
    "server-not-ready": "Start the server, or wait until it is ready.",
    "policy-denied": "Change the client's rules; `callboard policy check CLIENT SERVER.NAME` says which one denies it.",
    "policy-refused": "Ask the person; a call that was refused once may be made again.",
    "policy-unanswered": "Open the window, so that somebody can be asked, and make the call again.",
    "question-over": "Nothing: the call has its answer.",
    "profile-unknown": "Use one of the profiles that `callboard profiles` lists.",
    "profile-in-use": "Take the profile from these clients first.",
    "approval-unsaved": "Make the state folder writable.",
    # the call log
    "call-log-unwritable": "Make room on the disk, or make the file writable; it is tried again by itself.",
    "call-log-broken": "Nothing: a new log was begun; delete the file put aside if you do not need it.",
    "call-log-behind": "Use a faster disk for the state folder (CALLBOARD_HOME).",
    # what engines share in a database
    "storage-invalid": "Set storage in the roster, or CALLBOARD_STORAGE, to postgresql://user@host/database.",
    "storage-packages": "Install what it needs into Callboard's environment: pip install 'callboard[postgres]'.",
    "storage-newer": "Use the newer version for this engine too.",
    "storage-away": "Start the database or mend the way to it; it is tried again by itself.",
    "storage-changed": "Restart the engine (`callboard quit`, `callboard engine`): storage is read at its start.",
    # the servers' logs
    "logs-unwritable": "Make room on the disk, or make the folder of the logs writable; it is tried again by itself.",
    # telemetry
    "telemetry-missing": "Install Callboard with its extra telemetry, or set telemetry: {enabled: false}.",
    "telemetry-protocol": "Set OTEL_EXPORTER_OTLP_PROTOCOL to http/protobuf, with the port that takes it (often 4318).",
    "telemetry-invalid": "Correct the roster's section telemetry, or the OTEL_ variables.",
    "telemetry-failing": "Start the collector, or correct its address and headers; calls go on without it.",
    # gateway and engine
    "port-in-use": "Use the address shown, or end the program that has the port.",
    "gateway-down": "Choose a free port in the roster (gateway: {port: …}).",
    "gateway-exposed": "Let clients come through a proxy with TLS, or set gateway: {host: 127.0.0.1} in the roster.",
    "gateway-host": "Set it to an address of this computer, or to 0.0.0.0 for all that it has.",
    "control-exposed": "Set gateway: {control: local} in the roster.",
    "control-refused": "Use it on the engine's computer, without a proxy, or set gateway: {control: remote}.",
    "gateway-open": "Set gateway: {auth: token} in the roster.",
    "tokens-unsaved": "Make the state folder writable.",
    "body-too-large": "Send less at once; the limit is 64 MiB.",
    "head-too-large": "Send fewer or shorter headers; the limit is 64 KiB.",
    "head-timeout": "Send the request's headers at once.",
    "connections-exhausted": "End clients that hold connections they do not need.",
    "unauthorized": "Send the token that `callboard snippet` prints.",
    "host-refused": "Use the address 127.0.0.1 or localhost, or name the host in the roster (gateway: {hosts: […]}).",
    "not-found": "Check the address.",
    "bad-request": "Correct the request.",
    "method-not-allowed": "Use one of the methods that are named.",
    "engine-not-running": "Start it with `callboard engine`, or open the window.",
    "engine-running": "Quit it with `callboard quit` to start another one.",
    "engine-unreachable": "Wait a moment, or restart it with `callboard quit` and `callboard engine`.",
    "no-display": "Run `callboard engine` to work without a screen.",
    "client-unknown": "Use one of the clients that `callboard snippet` lists.",
    "internal": "Please report this, with the engine's log.",
}


def fix_for(code: str, server: str, fix: str = "") -> str:
    """What mends a failure of a server, with its name in the commands; ``fix`` if another one is known already."""
    return (fix or FIXES.get(code, "")).replace("NAME`", f"{server}`")


class CallboardError(Exception):
    """A failure that is told to a person: a stable code, one sentence, and the fix.

    ``message`` is one sentence without secrets. ``fix`` defaults to the code's entry in
    :data:`FIXES`. ``data`` holds plain JSON values for programs (a line number, the PATH searched).
    """

    def __init__(self, code: str, message: str, *, fix: str = "", data: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.fix = fix or FIXES[code]
        self.data = data or {}
