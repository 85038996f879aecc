"""A stand-in for docker (standard library only): runs "containers" that are no children of whoever asks for them.

[OPTIONS] run [--rm] [-i] [--cidfile FILE] IMAGE COMMAND...   the container's standard streams are the caller's
[OPTIONS] rm --force ID

Its daemon's state is the folder in DOCKER_HOST. As with docker: SIGTERM is passed on to the container, the end of the
caller is not, a file for the id must not exist yet, and --rm removes the container when it has ended by itself.
"""

import contextlib
import os
import secrets
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path

STATE = Path(os.environ["DOCKER_HOST"])
VALUES = ("--context", "--log-level", "-e", "--name", "--cidfile")


def start(command):
    """A process of init's with pipes of its own and nothing of our environment; its pid, and our ends."""
    to_child, stdin = os.pipe()
    stdout, from_child = os.pipe()
    told, pid_pipe = os.pipe()
    if os.fork() == 0:
        os.setsid()
        streams = {"stdin": to_child, "stdout": from_child, "stderr": subprocess.DEVNULL}
        container = subprocess.Popen(command, **streams, start_new_session=True, env={"PATH": os.environ["PATH"]})
        os.write(pid_pipe, str(container.pid).encode())
        os._exit(0)
    os.wait()
    os.close(to_child)
    os.close(from_child)
    pid = int(os.read(told, 20))
    return pid, stdin, stdout


def pump(source, target):
    while data := os.read(source, 65536):
        os.write(target, data)
    os.close(target)


def run(arguments):
    remove, id_file = "--rm" in arguments, None
    while arguments[0].startswith("-"):
        option, equals, value = arguments.pop(0).partition("=")
        if option in VALUES:
            value = value if equals else arguments.pop(0)
            id_file = value if option == "--cidfile" else id_file
    identity = secrets.token_hex(32)
    if id_file:
        try:
            with Path(id_file).open("x") as file:
                file.write(identity)
        except FileExistsError:
            sys.stderr.write("docker: container ID file found, make sure the other container isn't running\n")
            sys.exit(125)
    pid, stdin, stdout = start(arguments[1:])
    (STATE / identity).write_text(str(pid))
    with (STATE / "started").open("a") as log:
        log.write(f"{identity} {pid}\n")
    signal.signal(signal.SIGTERM, lambda *_: os.kill(pid, signal.SIGTERM))
    threading.Thread(target=pump, args=(0, stdin), daemon=True).start()
    pump(stdout, 1)
    if remove:
        (STATE / identity).unlink(missing_ok=True)


def remove(identity):
    with (STATE / "removed").open("a") as log:
        log.write(f"{identity}\n")
    container = STATE / identity
    if not container.exists():
        sys.stderr.write(f"Error response from daemon: No such container: {identity}\n")
        sys.exit(1)
    kill(int(container.read_text()))
    container.unlink()


def kill(pid):
    """End a process, and wait until it has ended, as docker does."""
    with contextlib.suppress(ProcessLookupError):
        ended = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None
        os.kill(pid, signal.SIGKILL)
        if ended is not None:
            select.select([ended], [], [], 30)
            os.close(ended)


def main():
    arguments = sys.argv[1:]
    while arguments[0].startswith("-"):
        if arguments.pop(0) in VALUES:
            arguments.pop(0)
    if arguments[0] == "container":
        arguments.pop(0)
    if arguments[0] == "run":
        run(arguments[1:])
    elif arguments[:2] == ["rm", "--force"]:
        remove(arguments[2])
    else:
        sys.exit(f"unknown command {arguments}")


main()
