"""The engine under measurement: a real process with a home of its own."""

from __future__ import annotations

import contextlib
import http.client
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from callboard.system.engine_file import EngineAddress, read_engine_file
from callboard.system.paths import Paths
from tests.bench.processes import child, wait_for

NO_KEYRING = {"PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"}
UPSTREAM = Path(__file__).with_name("upstream.py")
ROOT = Path(__file__).resolve().parents[2]


class Home:
    """A folder for everything that the program keeps."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.paths = Paths(folder / "config", folder / "state", folder / "logs", folder / "runtime", folder / "data")
        self.environment = {
            **NO_KEYRING,
            "CALLBOARD_HOME": str(folder),
            "HOME": str(folder),
            "PYTHONPATH": str(ROOT / "app"),
        }

    def write_roster(self, servers: dict[str, Any]) -> None:
        """Write the roster, with any free port for the gateway."""
        self.paths.create()
        roster = {"version": 1, "gateway": {"port": 0}, "servers": servers}
        self.paths.roster.write_text(json.dumps(roster))  # JSON is YAML

    @property
    def address(self) -> EngineAddress | None:
        """Where the engine is, while one runs."""
        return read_engine_file(self.paths.engine_file)


class Api:
    """The control API over one connection, without a library that would count as load."""

    def __init__(self, address: EngineAddress) -> None:
        self.address = address
        host, port = urlsplit(address.url).netloc.split(":")
        self._connection = http.client.HTTPConnection(host, int(port), timeout=60)
        self._headers = {"authorization": f"Bearer {address.admin_token}", "content-type": "application/json"}

    def get(self, path: str) -> Any:
        """GET."""
        return self._exchange("GET", path, None)

    def post(self, path: str, body: Any = None) -> Any:
        """POST."""
        return self._exchange("POST", path, json.dumps(body).encode() if body is not None else b"")

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _exchange(self, method: str, path: str, body: bytes | None) -> Any:
        self._connection.request(method, f"/api/v1{path}", body, self._headers)
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status >= 400:
            raise RuntimeError(f"{method} {path}: HTTP {answer.status} {content!r}")
        return json.loads(content) if content else None

    def states(self) -> dict[str, str]:
        """Every server's state."""
        return {server["name"]: server["state"] for server in self.get("/servers")}


class Engine:
    """A running engine. ``pid`` is its process."""

    def __init__(self, home: Home, pid: int, address: EngineAddress) -> None:
        self.home = home
        self.pid = pid
        self.api = Api(address)

    @property
    def url(self) -> str:
        """The gateway's address."""
        return self.api.address.url

    def token(self) -> str:
        """A client's token."""
        token: str = self.api.get("/token/script")["token"]
        return token

    def wait_until_ready(self, *names: str) -> float:
        """Wait until these servers are ready; the moment on the monotonic clock."""

        def ready() -> bool:
            states = self.api.states()
            return all(states[name] == "ready" for name in names)

        return wait_for(ready, f"{', '.join(names)} being ready", 60.0, 0.01)


@contextlib.contextmanager
def temporary_home() -> Iterator[Home]:
    """A home that is taken away afterwards."""
    with tempfile.TemporaryDirectory(prefix="callboard-bench-", ignore_cleanup_errors=True) as folder:
        yield Home(Path(folder))


@contextlib.contextmanager
def running_engine(servers: dict[str, Any], environment: dict[str, str] | None = None) -> Iterator[Engine]:
    """An engine with these servers, and these variables besides; it and they are ended with the block."""
    with temporary_home() as home:
        home.write_roster(servers)
        command = [sys.executable, "-m", "callboard", "engine"]
        output = home.folder / "output.txt"
        with child(command, home.environment | (environment or {}), output) as process:
            wait_for(lambda: home.address is not None or process.poll() is not None, "the engine")
            if process.poll() is not None:
                raise RuntimeError(f"the engine ended at once: {output.read_text()}")
            address = home.address
            assert address is not None
            engine = Engine(home, process.pid, address)
            try:
                yield engine
            finally:
                engine.api.close()


def upstream_entry(name: str, tools: int = 1, **fields: Any) -> dict[str, Any]:
    """A roster's entry for the light server."""
    arguments = ["-S", "-E", str(UPSTREAM), "--name", name, "--tools", str(tools)]
    return {"command": sys.executable, "args": arguments, **fields}


READER = """
import http.client, sys
connection = http.client.HTTPConnection(sys.argv[1], timeout=60)
connection.request("GET", "/api/v1/events", headers={"authorization": "Bearer " + sys.stdin.readline().strip()})
answer = connection.getresponse()
print("reading", flush=True)
while answer.read1(1 << 16):
    pass
"""


@contextlib.contextmanager
def listener(address: EngineAddress) -> Iterator[None]:
    """Read the event stream as a window does, in a process of its own, until the block ends."""
    command = [sys.executable, "-S", "-E", "-c", READER, urlsplit(address.url).netloc]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(f"{address.admin_token}\n")
            process.stdin.flush()
            if process.stdout.readline() != "reading\n":
                raise RuntimeError("the event stream could not be opened")
            yield
        finally:
            process.kill()
