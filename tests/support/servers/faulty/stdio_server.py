"""The least of an MCP server on stdio (standard library only), for servers with faults beside it."""

import json
import sys
import threading

KIND, *OPTIONS = sys.argv[1:]
NO_ANSWER = object()
OBJECT = {"type": "object", "properties": {}}
_lock = threading.Lock()


def raw(data):
    with _lock:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def send(message):
    raw(json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode() + b"\n")


def note(method, params=None):
    send({"method": method, **({} if params is None else {"params": params})})


def log(text):
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def text(words):
    return {"content": [{"type": "text", "text": words}]}


def answer(message, result):
    send({"id": message["id"], "result": text(result) if isinstance(result, str) else result})


def hello(message=None, *, tools=None, **more):
    asked = (message or {}).get("params", {}).get("protocolVersion", "2025-06-18")
    identity = {"name": f"faulty {KIND}", "version": "1"}
    return {"protocolVersion": asked, "capabilities": {"tools": tools or {}}, "serverInfo": identity, **more}


def listed(tools):
    return [{"name": name, "description": f"{name} it", "inputSchema": schema} for name, (schema, _) in tools.items()]


def echo(arguments, message):
    return arguments.get("text", "")


ECHO = {"echo": ({"type": "object", "properties": {"text": {"type": "string"}}}, echo)}


def tool(function):
    return (OBJECT, lambda arguments, message: function())


def respond(message, tools, on):
    """The members of an answer, None for none."""
    method, number = message.get("method"), message.get("id")
    try:
        if method in on:
            result = on[method](message)
        elif method == "initialize":
            result = hello(message)
        elif method == "ping":
            result = {}
        elif method == "tools/list":
            result = {"tools": listed(tools)}
        elif method == "tools/call":
            name = message["params"]["name"]
            if name not in tools:
                return {"id": number, "error": {"code": -32602, "message": "unknown tool"}}
            result = tools[name][1](message["params"].get("arguments") or {}, message)
            result = text(result) if isinstance(result, str) else result
        else:
            return None if number is None else {"id": number, "error": {"code": -32601, "message": "Method not found"}}
    except Exception as error:  # noqa: BLE001  a tool may raise whatever it likes
        return {"id": number, "error": {"code": -32603, "message": str(error)}}
    return None if number is None or result is NO_ANSWER else {"id": number, "result": result}


def serve(tools=ECHO, *, on=None, out=send):
    for line in sys.stdin.buffer:
        if line.strip() and (members := respond(json.loads(line), tools, on or {})) is not None:
            out(members)
