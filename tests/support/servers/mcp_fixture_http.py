"""The fixture server over HTTP on loopback: streamable HTTP of either era, or HTTP+SSE. Standard library only.

Prints its port on stdout and ends with its standard input. It is strict: a legacy session must be initialized, and is
then named by every request; a modern request's headers must say what its body says.
"""

import base64
import json
import os
import queue
import select
import sys
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

MODERN = "2026-07-28"
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
CUT = object()


class Front:
    """What all requests share: the server behind them, sessions and open streams."""

    def __init__(self, options, make):
        self.modern = options.era == "modern"
        self.sse = options.sse
        self.sessions = {}  # id → initialized
        self.streams = {}  # id → queue
        self.lock = threading.Lock()
        self.server = make(self.outside)
        self.server.forget = self.sessions.clear
        self.server.unstream = self.unstream

    def unstream(self):
        for stream in list(self.streams.values()):
            stream.put(CUT)

    def outside(self, line):
        for stream in list(self.streams.values()):
            stream.put(line)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    front = None

    def log_message(self, *arguments):
        pass

    def reply(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if body:
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, status, number, code, message):
        error = {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}
        self.reply(status, json.dumps(error).encode())

    def begin_stream(self, **headers):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.close_connection = True

    def event(self, data, name="message"):
        self.wfile.write(f"event: {name}\r\ndata: {data}\r\n\r\n".encode())
        self.wfile.flush()

    def gone(self):
        ready, _, _ = select.select([self.connection], [], [], 0)
        return bool(ready) and not self.connection.recv(1, 2)  # 2: MSG_PEEK

    # ---- POST

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.front.sse:
            self.post_to_stream(message)
        elif self.front.modern:
            self.post_modern(message)
        else:
            self.post_legacy(message)

    def post_modern(self, message):
        method, number, params = message["method"], message.get("id"), message.get("params", {})
        problem = self.mismatch(method, params)
        if problem:
            self.refuse(400, number, -32020, f"Header mismatch: {problem}")
        else:
            self.answer(message, {name.lower(): value for name, value in self.headers.items()})

    def mismatch(self, method, params):
        if "Mcp-Session-Id" in self.headers:
            return "a session in the modern era"
        version = (params.get("_meta") or {}).get("io.modelcontextprotocol/protocolVersion")
        expected = {"MCP-Protocol-Version": version, "Mcp-Method": method}
        if method in NAMED:
            expected["Mcp-Name"] = params[NAMED[method]]
        if method == "tools/call" and params["name"] == "headed":
            arguments = params.get("arguments", {})
            for header, argument in (("Mcp-Param-Region", "region"), ("Mcp-Param-Number", "number")):
                value = arguments.get(argument)
                expected[header] = None if value is None else str(value)
        for name, value in expected.items():
            found = self.headers.get_all(name) or [None]
            if len(found) > 1 or decoded(found[0]) != value:
                return f"{name} is {found}, expected {value!r}"
        return ""

    def post_legacy(self, message):
        front, number, method = self.front, message.get("id"), message.get("method")
        session = self.headers.get("Mcp-Session-Id")
        if method == "initialize":
            session = uuid.uuid4().hex
            front.sessions[session] = False
            self.answer(message, {}, Mcp_Session_Id=session)
            return
        if session is None:
            self.refuse(400, number, -32600, "a session is needed")
        elif session not in front.sessions:
            self.refuse(404, number, -32001, "Session not found")
        elif self.headers.get("MCP-Protocol-Version") != "2025-11-25":
            self.refuse(400, number, -32600, "MCP-Protocol-Version is missing")
        elif method == "notifications/initialized":
            front.sessions[session] = True
            self.take(message)
        elif not front.sessions[session]:
            self.refuse(400, number, -32600, "not initialized yet")
        elif number is None or method is None:
            self.take(message)
        else:
            self.answer(message, {})

    def take(self, message):
        self.front.server.handle(message)
        self.reply(202)

    def answer(self, message, headers, **more):
        if "id" not in message:
            self.take(message)
            return
        front, out = self.front, queue.Queue()
        number, method = message["id"], message["method"]

        def channel(line):
            out.put(CUT if line is None else line)

        def run():
            front.server.local.headers = {key: value for key, value in headers.items() if key.startswith("mcp-")}
            front.server.answer(number, method, message.get("params") or {}, channel)

        front.server.count(method)
        threading.Thread(target=run, daemon=True).start()
        streaming = False
        while True:
            try:
                line = out.get(timeout=0.02)
            except queue.Empty:
                if self.gone():
                    if front.modern:
                        front.server.cancel(number)
                    return
                continue
            if line is CUT:
                if not streaming:
                    self.begin_stream()
                return
            found = json.loads(line)
            last = found.get("id") == number and "method" not in found
            if last and not streaming:
                unknown = front.modern and found.get("error", {}).get("code") == -32601
                self.reply(404 if unknown else 200, line.encode(), **more)
                return
            if not streaming:
                self.begin_stream(**more)
                streaming = True
            self.event(line)
            if last:
                return

    # ---- GET and DELETE

    def do_GET(self):
        if self.front.sse:
            self.serve_sse()
            return
        session = self.headers.get("Mcp-Session-Id")
        if self.front.modern or session is None:
            self.reply(405, Allow="POST")
        elif session not in self.front.sessions:
            self.reply(404)
        else:
            self.front.server.count("GET")
            self.begin_stream()
            self.follow(session)

    def follow(self, session):
        stream = self.front.streams[session] = queue.Queue()
        try:
            while session in self.front.sessions and not self.gone():
                try:
                    line = stream.get(timeout=0.02)
                except queue.Empty:
                    continue
                if line is CUT:
                    break
                self.event(line)
        except OSError:
            pass
        finally:
            if self.front.streams.get(session) is stream:
                del self.front.streams[session]

    def do_DELETE(self):
        if self.front.sessions.pop(self.headers.get("Mcp-Session-Id"), None) is None:
            self.reply(404)
        else:
            self.reply(204)

    # ---- HTTP+SSE

    def serve_sse(self):
        session = uuid.uuid4().hex
        self.front.sessions[session] = True
        self.begin_stream()
        self.event(f"/messages?session={session}", "endpoint")
        self.follow(session)

    def post_to_stream(self, message):
        parts = urlsplit(self.path)
        stream = self.front.streams.get(parse_qs(parts.query).get("session", [""])[0])
        if parts.path != "/messages" or stream is None:
            self.reply(405, Allow="GET")
            return
        self.front.server.handle(message, stream.put)
        self.reply(202)


class HttpServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 200

    def handle_error(self, request, address):
        if not isinstance(sys.exc_info()[1], OSError):  # a client that went away is no error
            super().handle_error(request, address)


def decoded(value):
    if value is not None and value.startswith("=?base64?") and value.endswith("?="):
        return base64.b64decode(value[9:-2]).decode()
    return value


def serve(options, make):
    Handler.front = Front(options, make)
    server = HttpServer(("127.0.0.1", options.http), Handler)
    threading.Thread(target=lambda: (sys.stdin.buffer.read(), os._exit(0)), daemon=True).start()
    sys.stdout.write(f"{server.server_address[1]}\n")
    sys.stdout.flush()
    server.serve_forever()
