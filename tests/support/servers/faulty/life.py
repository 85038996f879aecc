"""Servers on stdio whose process is trouble (standard library only): life.py KIND [OPTION...].

env                          well behaved; tools env, args and cwd tell what it was started with
mute [stdin]                 closes its standard output (or input) after the handshake, and lives on
crash before | after | until N FILE    dies before reading, soon after initialize, or at its first N starts
dies                         tools die, half, exit0 and kill end the process in the middle of the call
chatters RATE                writes so many lines a second on stderr
stubborn                     ends on SIGKILL only
leaky                        tells its secrets wherever it can
silent [deaf | blocked]      tool hang is never answered; nothing is; input is not even read
once                         dies of a second initialize, and of requests before the handshake is done
slow SECONDS                 reads nothing for so long, and writes on stderr meanwhile
wrapper FILE [setsid]        is only a wrapper: the server is a child that writes its pid to FILE and outlives it
flood [noeol]                writes a megabyte on stderr before its first answer
"""

import base64
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from stdio_server import ECHO, KIND, NO_ANSWER, OBJECT, OPTIONS, hello, listed, log, note, raw, send, serve, tool


def env():
    def variables(arguments, message):
        return json.dumps({name: os.environ.get(name) for name in arguments.get("names", sorted(os.environ))})

    serve({"env": (OBJECT, variables), "args": tool(lambda: json.dumps(OPTIONS)), "cwd": tool(os.getcwd)})


def mute():
    def closed(message):
        os.close(0 if "stdin" in OPTIONS else 1)
        threading.Event().wait()

    serve(on={"notifications/initialized": closed})


def die():
    log('Traceback (most recent call last):\n  File "server.py", line 7, in <module>\nKeyError: "EXAMPLE_API_KEY"')
    os._exit(1)


def crash():
    if OPTIONS[0] == "until":
        starts = Path(OPTIONS[2])
        count = len(starts.read_text()) + 1 if starts.exists() else 1
        starts.write_text("." * count)
        if count > int(OPTIONS[1]):
            return serve()
    if OPTIONS[0] != "after":
        die()

    def soon(message):
        threading.Timer(0.2, die).start()
        return hello(message)

    return serve(on={"initialize": soon})


def dies():
    def half(arguments, message):
        raw(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"te' % message["id"])
        os._exit(4)

    ends = {"die": tool(lambda: os._exit(3)), "half": (OBJECT, half), "exit0": tool(lambda: os._exit(0))}
    serve({**ECHO, **ends, "kill": tool(lambda: os.kill(os.getpid(), signal.SIGKILL))})


def chatters():
    rate, number = int(OPTIONS[0]), 0

    def spam():
        nonlocal number
        while True:
            for _ in range(max(1, rate // 20)):
                number += 1
                sys.stderr.write(f"line {number} {'w' * (10_240 if number % 1000 == 0 else 80)}\n")
            sys.stderr.flush()
            time.sleep(0.05)

    threading.Thread(target=spam, daemon=True).start()
    serve()


def stubborn():
    for name in ("SIGTERM", "SIGINT", "SIGHUP"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    serve()
    threading.Event().wait()


def leaky():
    words = ("KEY", "TOKEN", "SECRET", "PASS")
    values = {name: value for name, value in os.environ.items() if any(word in name for word in words)}
    log(f"DEBUG env: {values!r} argv: {OPTIONS!r}")
    for value in values.values():
        log(f'Using headers: {{"Authorization":"Bearer {value}"}}')

    def fail():
        raise RuntimeError(f"401 for key {' '.join(values.values())}")

    def encoded():
        return base64.b64encode(" ".join(values.values()).encode()).decode()

    def tell(message):
        note("notifications/message", {"level": "error", "data": {"env": values}})

    tools = {"fail": tool(fail), "encoded": tool(encoded), "echo_all": tool(lambda: repr(values))}
    serve(tools, on={"notifications/initialized": tell})


def silent():
    on = {}
    if "deaf" in OPTIONS:
        on = dict.fromkeys(("ping", "tools/list", "tools/call"), lambda message: NO_ANSWER)
    if "blocked" in OPTIONS:
        on = {"notifications/initialized": lambda message: threading.Event().wait()}
    serve({**ECHO, "hang": (OBJECT, lambda arguments, message: NO_ANSWER)}, on=on)


def once():
    state = {"begun": 0, "ready": False}

    def begin(message):
        state["begun"] += 1
        if state["begun"] > 1:
            log("ValidationError: a second initialize")
            os._exit(1)
        return hello(message)

    def lists(message):
        if not state["ready"]:
            log("a request before the handshake was done")
            os._exit(1)
        return {"tools": listed(ECHO)}

    serve(
        on={
            "initialize": begin,
            "notifications/initialized": lambda message: state.update(ready=True),
            "tools/list": lists,
        }
    )


def slow():
    end = time.monotonic() + float(OPTIONS[0])
    while (left := end - time.monotonic()) > 0:
        log(f"downloading package, {left:.1f} s left")
        time.sleep(min(0.2, left))
    serve()


def wrapper():
    if "child" in OPTIONS:
        Path(OPTIONS[0]).write_text(str(os.getpid()))
        serve()
        threading.Event().wait()
    command = [sys.executable, "-S", "-E", __file__, "wrapper", *OPTIONS, "child"]
    child = subprocess.Popen(command, start_new_session="setsid" in OPTIONS)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
    sys.exit(child.wait())


def flood():
    end = "" if "noeol" in OPTIONS else "\n"
    begun = []

    def out(members):
        for _ in range(256 if begun else 1024):
            sys.stderr.write(("DEBUG " + "z" * 1017 + end)[:1024])
        sys.stderr.flush()
        begun.append(True)
        send(members)

    serve(out=out)


KINDS = {
    "env": env,
    "mute": mute,
    "crash": crash,
    "dies": dies,
    "chatters": chatters,
    "stubborn": stubborn,
    "leaky": leaky,
    "silent": silent,
    "once": once,
    "slow": slow,
    "wrapper": wrapper,
    "flood": flood,
}

if __name__ == "__main__":
    KINDS[KIND]()
