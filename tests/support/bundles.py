"""Bundles for tests: good ones, and the means to make bad ones."""

import json
import zipfile
from pathlib import Path
from typing import Any

# answers the handshake and one tool, on the standard library alone
SERVER = """
import json, os, sys

TOOL = {"name": "shout", "description": "Says it loudly", "inputSchema": {"type": "object", "properties": {}}}
for line in sys.stdin:
    message = json.loads(line)
    method, number = message.get("method"), message.get("id")
    if number is None:
        continue
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                  "serverInfo": {"name": "bundled", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [TOOL]}
    elif method == "tools/call":
        text = json.dumps([sys.argv[1:], os.environ.get("API_KEY", ""), os.getcwd()])
        result = {"content": [{"type": "text", "text": text}]}
    elif method == "ping":
        result = {}
    else:
        answer = {"jsonrpc": "2.0", "id": number, "error": {"code": -32601, "message": "unknown"}}
        print(json.dumps(answer), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}), flush=True)
"""


def manifest(kind: str = "python", **more: Any) -> dict[str, Any]:
    """A manifest with the little that each has."""
    return {
        "manifest_version": "0.3",
        "name": "shouter",
        "display_name": "Shouter",
        "version": "1.2.3",
        "description": "Says it loudly",
        "author": {"name": "Somebody"},
        "server": {
            "type": kind,
            "entry_point": "server/main.py",
            "mcp_config": {"command": "python", "args": ["${__dirname}/server/main.py"]},
        },
        **more,
    }


def write_bundle(path: Path, document: Any = None, files: dict[str, str | bytes] | None = None) -> Path:
    """A bundle with a manifest and files; without ``files``, with a server that works."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", json.dumps(manifest() if document is None else document))
        for name, content in ({"server/main.py": SERVER} if files is None else files).items():
            archive.writestr(name, content)
    return path
