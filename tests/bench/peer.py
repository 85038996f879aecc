"""Callboard as one more gateway in a side-by-side benchmark: an adapter for a harness that offers the module `peers`.

The engine starts from a clean home with everything on: tokens, the policy hook, the call log and a reader of the event
stream. Give this file to the harness, e.g. `bench.py --extra tests/bench/peer.py --peers callboard,…`.
"""

import http.client
import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

from peers import URL, Ep, Peer, Setup

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv" / "bin" / "python"
TELL_TOKEN = """
import sys
from pathlib import Path
from callboard.engine.gateway.clients import ClientTokens
print(ClientTokens(Path(sys.argv[1]), ()).token_for("script"))
"""
TELL_KINDS = "from callboard.ui.engine_link import FOLLOWED; print(','.join(FOLLOWED))"
TOKEN_KEY = "Y2FsbGJvYXJkLWJlbmNobWFyay1rZXktMzItYnl0ZXM="  # 32 bytes, for this benchmark's folder alone

sys.path.insert(0, str(ROOT / "app"))


class Callboard(Peer):
    """Our engine, serving the aggregate endpoint."""

    name, lang, shape = "callboard", "py", "aggregate"
    up = ("stdio", "http")
    needs = (str(PYTHON),)
    note = "auth, policy hook, call log and event stream on"

    def version(self):
        from callboard import __version__

        return __version__

    def setup(self, ups, d, port):
        home = Path(d) / "callboard"
        config, state = home / "config", home / "state"
        for folder in (config, state):
            folder.mkdir(parents=True, mode=0o700)
        servers = {
            up["name"]: {"command": up["command"], "args": up["args"]}
            if up["transport"] == "stdio"
            else {"url": up["url"]}
            for up in ups
        }
        # JSON is YAML
        (config / "roster.yaml").write_text(json.dumps({"version": 1, "gateway": {"port": port}, "servers": servers}))
        (state / "clients.json").write_text(json.dumps({"key": TOKEN_KEY, "generations": {}}))
        environment = {"CALLBOARD_HOME": str(home), "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"}
        command = ([str(PYTHON), "-m", "callboard", "engine"], environment, d)
        headers = {"Authorization": f"Bearer {self.token(state)}"}
        engine_file = home / "runtime" / "engine.json"
        return Setup([command], [Ep("http", URL(port, "/mcp"), headers=headers)], after=lambda _: listen(engine_file))

    def token(self, state):
        return told_by_ours(TELL_TOKEN, str(state / "clients.json"))


def told_by_ours(program, *arguments):
    """What a program prints in our Python: the harness has nothing but the standard library."""
    command = [str(PYTHON), "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def listen(engine_file):
    """Read the event stream as the window does, in a thread of the harness: it is not the gateway's to pay for."""
    threading.Thread(target=_read, args=(engine_file, told_by_ours(TELL_KINDS)), daemon=True).start()


def _read(engine_file, kinds):
    end = time.monotonic() + 60
    while not engine_file.exists() and time.monotonic() < end:
        time.sleep(0.02)
    try:
        engine = json.loads(engine_file.read_text())
        connection = http.client.HTTPConnection(urlsplit(engine["url"]).netloc, timeout=3600)
        connection.request(
            "GET", f"/api/v1/events?kinds={kinds}", headers={"Authorization": f"Bearer {engine['admin_token']}"}
        )
        answer = connection.getresponse()
        while answer.read1(65536):
            pass
    except (OSError, http.client.HTTPException):
        pass  # the engine ended


PEERS = [Callboard()]
