"""The process that an agent lives in: loads it and runs its calls, under the agent's own interpreter.

Started as a file (``python …/worker.py``), never as a module, because that interpreter need not have this package.
Standard library only, Python 3.10 or later. The messages are those of :mod:`callboard.agents.contract`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import threading
import time
from typing import Any

_FOLDER = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120  before anything is imported
_END_WAIT = 3.0  # seconds for the agent to let go of things, once the host has gone


def _find_ourselves() -> None:
    """Make ``callboard`` importable from where this file is, whatever this interpreter has under that name.

    The folder itself leaves the search path: its modules must not stand in for the agent's own.
    """
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _FOLDER]  # noqa: PTH100
    folder = os.path.dirname(_FOLDER)  # noqa: PTH120
    spec = importlib.util.spec_from_file_location(
        "callboard",
        os.path.join(folder, "__init__.py"),  # noqa: PTH118
        submodule_search_locations=[folder],
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["callboard"] = package
    spec.loader.exec_module(package)


class Pipe:
    """The two ends towards the host. Writing is for any thread, reading for one."""

    def __init__(self, reading: int, writing: int) -> None:
        self._input = os.fdopen(reading, "rb", buffering=1 << 16)
        self._output = writing
        self._lock = threading.Lock()

    @classmethod
    def claim(cls) -> Pipe:
        """Take standard input and output for the messages; the agent gets the null device and standard error."""
        reading, writing = os.dup(0), os.dup(1)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        os.dup2(2, 1)
        return cls(reading, writing)

    def send(self, message: dict[str, Any]) -> None:
        """Write one message. A host that has gone is no error: its end of the input says so too."""
        data = memoryview(
            json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"
        )
        with self._lock:
            try:
                while data:
                    data = data[os.write(self._output, data) :]
            except OSError:
                return

    def read(self) -> dict[str, Any] | None:
        """The next message; None at the end."""
        try:
            line = self._input.readline()
        except OSError:
            return None
        message: dict[str, Any] | None = json.loads(line) if line else None
        return message


def main() -> None:
    """Serve one host until it closes the pipe."""
    pipe = Pipe.claim()
    _find_ourselves()
    from callboard.agents.contract import VERSION

    pipe.send({"type": "hello", "version": VERSION, "pid": os.getpid(), "python": sys.version.partition(" ")[0]})
    message = pipe.read()
    if message is None:
        return
    import asyncio

    asyncio.run(_serve(pipe, message))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # threads of the agent's that never end must not keep the process


async def _serve(pipe: Pipe, first: dict[str, Any]) -> None:
    import asyncio

    from callboard.agents.contract import VERSION, AdaptedAgent, agent_to_wire
    from callboard.agents.loading import LoadError, load_agents, prepare
    from callboard.agents.running import Runner

    begun = time.monotonic()
    try:
        if first.get("version") != VERSION:
            raise LoadError(f"the host speaks version {first.get('version')} of the protocol, this worker {VERSION}")
        agents: list[AdaptedAgent] = load_agents(first["agent"], first.get("params") or {})
        await prepare(agents, tools=bool(first.get("tools")))
        described = [agent_to_wire(agent) for agent in agents]
        json.dumps(described)
    except LoadError as error:
        pipe.send({"type": "refused", "error": error.wire})
        return
    except (TypeError, ValueError) as error:
        pipe.send({"type": "refused", "error": LoadError(f"what the agent says of itself is not JSON: {error}").wire})
        return
    runner = Runner(agents, pipe.send, persist=bool(first.get("persist")), thoughts=bool(first.get("thoughts")))
    pipe.send({"type": "schema", "agents": described, "files": _files(), "seconds": time.monotonic() - begun})
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    threading.Thread(target=_listen, args=(pipe, loop, runner, ended), name="host", daemon=True).start()
    await ended.wait()
    await runner.shutdown()


def _listen(pipe: Pipe, loop: Any, runner: Any, ended: Any) -> None:
    """Hand the host's messages to the loop; at their end see to it that the process ends, whatever the loop does."""
    while (message := pipe.read()) is not None:
        loop.call_soon_threadsafe(runner.take, message)
    try:
        loop.call_soon_threadsafe(ended.set)
    except RuntimeError:
        return
    time.sleep(_END_WAIT)
    os._exit(1)


def _files() -> list[str]:
    """The files of the agent's own code: all that was imported from neither Python, packages nor us."""
    library = os.path.dirname(os.path.abspath(os.__file__))  # noqa: PTH100, PTH120
    found = []
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and file.endswith(".py"):
            file = os.path.abspath(file)  # noqa: PTH100
            if not file.startswith((library, os.path.dirname(_FOLDER))) and "site-packages" not in file:  # noqa: PTH120
                found.append(file)
    return sorted(set(found))


def _list(spec: str) -> None:
    """Print the agents of a module or file as one JSON object, for the window to choose from."""
    pipe = Pipe.claim()
    _find_ourselves()
    from callboard.agents.loading import LoadError, list_agents

    try:
        pipe.send({"agents": list_agents(spec)})
    except LoadError as error:
        pipe.send({"error": error.wire})


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--list":
        _list(sys.argv[2])
    else:
        main()
