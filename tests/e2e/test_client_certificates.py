"""A remote server that lets in only who has a certificate, through the engine."""

from __future__ import annotations

import json
import ssl
from pathlib import Path
from typing import Any

from callboard.core.health import Action
from tests.support.engine import EngineProcess
from tests.support.site import Said, Seen, Site, data
from tests.support.tls import PASSPHRASE, make_certificates


class SecureServer(Site):
    """An MCP server of one tool."""

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(context)

    async def answer(self, seen: Seen) -> Said:
        message = json.loads(seen.body) if seen.body else {}
        results: dict[str, Any] = {
            "initialize": {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "secure", "version": "1"},
            },
            "tools/list": {"tools": [{"name": "hello", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": "let in"}]},
            "ping": {},
        }
        if seen.method != "POST":
            return Said(405)
        if message.get("method") in results:
            return data({"jsonrpc": "2.0", "id": message["id"], "result": results[message["method"]]})
        if "id" not in message:
            return Said(202)
        return data({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "not known"}})


async def test_a_client_certificate_lets_the_engine_in(tmp_path: Path) -> None:
    made = make_certificates(tmp_path / "certificates")
    other = make_certificates(tmp_path / "others")
    auth: dict[str, object] = {
        "type": "mtls",
        "certificate": str(made.client_certificate),
        "key": str(made.locked_key),
        "secret": "hub-key",
        "ca": str(made.ca),
    }
    async with SecureServer(made.context(ask=True)) as server:
        entries = {
            "hub": {"url": f"{server.url}/mcp", "auth": auth},
            "stranger": {"url": f"{server.url}/mcp", "auth": auth | {"ca": str(other.ca)}},
            "nobody": {"url": f"{server.url}/mcp"},
            "lost": {"url": f"{server.url}/mcp", "auth": auth | {"certificate": str(tmp_path / "no.pem")}},
        }
        async with EngineProcess(tmp_path / "home", entries) as engine:
            view = await engine.wait_for("hub", "needs-config")
            assert (view.error_code, view.action) == ("secret-missing", Action.FILL_IN)
            await engine.client.set_secret("hub-key", "wrong")
            view = await engine.wait_for_view("hub", lambda view: view.error_code == "remote-certificate")
            assert (view.state, view.reason) == ("needs-config", "The passphrase does not open the key.")
            await engine.client.set_secret("hub-key", PASSPHRASE)
            await engine.wait_for("hub", "ready")
            result = await engine.client.call_tool("hub", "hello", {})
            assert result["content"][0]["text"] == "let in"
            view = await engine.wait_for("stranger", "failed")
            assert view.error_code == "remote-tls"
            assert "The server's certificate is not trusted" in view.reason
            view = await engine.wait_for("nobody", "failed")
            assert view.error_code == "remote-tls"
            view = await engine.wait_for("lost", "needs-config")
            assert f"{tmp_path / 'no.pem'}, does not exist" in view.reason
            for path in (tmp_path / "home").rglob("*"):
                assert not path.is_file() or PASSPHRASE.encode() not in path.read_bytes()
