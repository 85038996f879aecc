"""A small MCP server on stdio (standard library only) that misbehaves as its options say.

--crash-before CODE     write a traceback on stderr and exit before reading anything
--crash-first N FILE    do that at the first N starts (FILE counts them)
--slow SECONDS          answer only after so long; --chatty: print on stderr meanwhile
--silent                read everything, answer nothing
--hold-list FILE        answer tools/list only once FILE is there
--deaf-after N          answer no more after so many requests
--ignore-term           ignore SIGTERM and the end of the input
--grandchild FILE       be only a wrapper: the server is a child, which writes its pid to FILE and outlives its input
--setsid                with --grandchild: the child moves to a session of its own
--noise                 print lines on stdout that are no protocol
--flood                 write on stderr without end, from a thread
--mark FILE             append a line to FILE at each start
Tools: echo {"text"}, exit {"code"}, kill, log {"text"}, sleep {"seconds"}.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path


def option(name, count=1):
    if name not in sys.argv:
        return None
    values = sys.argv[sys.argv.index(name) + 1 :][:count]
    return values[0] if count == 1 else values


def log(text):
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def crash(code):
    log('Traceback (most recent call last):\n  File "odd.py", line 1\nKeyError: "API_KEY"')
    os._exit(code)


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def call(name, arguments):
    if name == "exit":
        log("exit was asked for")
        os._exit(arguments.get("code", 0))
    if name == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if name == "log":
        log(arguments["text"])
    if name == "sleep":
        time.sleep(arguments["seconds"])
    return {"content": [{"type": "text", "text": arguments.get("text", "")}]}


def answer(method, params):
    if method == "initialize":
        return {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "odd", "version": "1"},
        }
    if method == "tools/list":
        while (gate := option("--hold-list")) and not Path(gate).exists():
            time.sleep(0.02)
        return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("echo", "exit", "kill")]}
    if method == "tools/call":
        return call(params["name"], params.get("arguments", {}))
    return {} if method == "ping" else None


def serve():
    patience = int(option("--deaf-after") or sys.maxsize)
    for line in sys.stdin:
        message = json.loads(line)
        if "--silent" in sys.argv or "id" not in message or patience <= 0:
            continue
        patience -= 1
        result = answer(message["method"], message.get("params", {}))
        if result is None:
            send({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})
        else:
            send({"id": message["id"], "result": result})


def flood():
    line = b"x" * 79 + b"\n"
    while True:
        os.write(2, line * 500)


def wrap(pidfile):
    arguments = [argument for argument in sys.argv[1:] if argument not in ("--grandchild", pidfile)]
    child = subprocess.Popen(
        [sys.executable, "-S", "-E", __file__, *arguments, "--child", pidfile],
        start_new_session="--setsid" in sys.argv,
    )
    signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
    sys.exit(child.wait())


def main():
    if mark := option("--mark"):
        with Path(mark).open("a") as file:
            file.write(f"{os.getpid()}\n")
    if pidfile := option("--grandchild"):
        wrap(pidfile)
    if pidfile := option("--child"):
        Path(pidfile).write_text(str(os.getpid()))
    if code := option("--crash-before"):
        crash(int(code))
    if first := option("--crash-first", 2):
        count = Path(first[1])
        starts = len(count.read_text()) + 1 if count.exists() else 1
        count.write_text("." * starts)
        if starts <= int(first[0]):
            crash(1)
    if "--ignore-term" in sys.argv:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "--noise" in sys.argv:
        sys.stdout.write("Server v1.0 ready!\nnot json\n")
        sys.stdout.flush()
    if "--flood" in sys.argv:
        threading.Thread(target=flood, daemon=True).start()
    if slow := option("--slow"):
        end = time.monotonic() + float(slow)
        while (left := end - time.monotonic()) > 0:
            if "--chatty" in sys.argv:
                log(f"downloading, {left:.1f} s left")
            time.sleep(min(0.05, left))
    serve()
    if "--ignore-term" in sys.argv or option("--child"):
        while True:
            time.sleep(60)


main()
