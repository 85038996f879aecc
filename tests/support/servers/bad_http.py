"""A legacy MCP server over streamable HTTP on loopback (standard library only) that misbehaves in one way.

bad_http.py HOW: prints its port on stdout and ends with its standard input. Its only tool is echo.
expired STATUS [SECONDS]    each session serves three requests, then gets STATUS (404, 410, 400); the next one takes so
                 long to begin
lost             like expired 404, but never begins a second session
redirect         answers 307 to another path of its own, where it works
away URL         answers 307 to URL
busy             answers 429 with Retry-After: 1 to the first tools/call
status N         answers N to everything, with a page of HTML
call-status N    answers N to tools/call
document N       answers N and a document {"error": "not found"} to tools/call
html             answers tools/call with 200 and a page of HTML; page: everything
nothing          answers everything with 200 and nothing; accepted-all: with 202
gzip             compresses its answers
nolength         says nothing of the length of its answers, and closes the connection behind each
closing          closes the connection behind each answer without having said so
bignum           has numbers beyond 2^53 in its results
silent           opens a stream for tools/call, and says nothing on it
batch            answers with an array of messages
bom              begins its JSON with a byte-order mark
accepted         answers tools/call with 202 and nothing
text-id          answers with the id as a text; null-id: as null
huge             answers tools/call with more than the client may take, as JSON; huge-event: as an event
cut              streams progress for tools/call, then closes the stream
resumable        streams an event with an id, closes, and answers on GET with Last-Event-ID
reset            closes the connection without an answer to tools/call
tiny             streams the answer byte by byte, with comments, CR LF and data over several lines
relist           says on the stream of a call that the tools changed
"""

import gzip
import json
import os
import socket
import struct
import sys
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HOW, *REST = sys.argv[1:]
PAGE = b"<!doctype html><title>Sign in</title>"
state = {"sessions": {}, "begun": 0, "busy": False, "counts": {}, "resumed": {}}


def result_of(message):
    method = message["method"]
    if method == "initialize":
        return {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": HOW, "version": "1"},
        }
    if method == "tools/list":
        return {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}
    if method == "tools/call":
        text = message["params"].get("arguments", {}).get("text", "")
        if text == "counts":
            text = json.dumps(state["counts"])
        return {"content": [{"type": "text", "text": text}]}
    return {}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *arguments):
        pass

    def reply(self, status, body=b"", kind="application/json", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if body:
            self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def stream(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

    def write(self, text):
        self.wfile.write(text.encode())
        self.wfile.flush()

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method = message.get("method", "answer")
        state["counts"][method] = state["counts"].get(method, 0) + 1
        if HOW == "status":
            self.reply(int(REST[0]), PAGE, "text/html")
        elif HOW == "page":
            self.reply(200, PAGE, "text/html")
        elif HOW in ("nothing", "accepted-all"):
            self.reply(200 if HOW == "nothing" else 202)
        elif HOW == "redirect" and self.path != "/real":
            self.reply(307, Location="/real")
        elif HOW == "away" and self.path != "/real":
            self.reply(307, Location=REST[0])
        elif method == "server/discover":
            self.error(message, 400, -32600, "Bad Request: no valid request")
        elif "id" not in message:
            self.reply(202)
        elif method == "initialize":
            self.initialize(message)
        elif not self.session_is_good():
            status = 404 if HOW == "lost" else int(REST[0])
            self.error(message, status, -32000, "Bad Request: No valid session ID provided")
        elif method == "tools/call":
            self.call(message)
        else:
            self.answer(message)

    def error(self, message, status, code, text):
        body = {"jsonrpc": "2.0", "id": message.get("id"), "error": {"code": code, "message": text}}
        self.reply(status, json.dumps(body).encode())

    def initialize(self, message):
        state["begun"] += 1
        if HOW == "lost" and state["begun"] > 1:
            self.reply(500, PAGE, "text/html")
            return
        if HOW == "expired" and state["begun"] > 1 and len(REST) > 1:
            time.sleep(float(REST[1]))
        session = uuid.uuid4().hex
        state["sessions"][session] = 3
        self.answer(message, Mcp_Session_Id=session)

    def session_is_good(self):
        session = self.headers.get("Mcp-Session-Id")
        if HOW not in ("expired", "lost"):
            return True
        left = state["sessions"].get(session, 0)
        state["sessions"][session] = left - 1
        return left > 0

    def message(self, request):
        number = request["id"]
        if HOW == "text-id":
            number = str(number)
        if HOW == "null-id":
            number = None
        return {"jsonrpc": "2.0", "id": number, "result": result_of(request)}

    def answer(self, request, **headers):
        found = self.message(request)
        if HOW == "bignum":
            found["result"]["big"] = 2**63 + 1
        body = json.dumps([found] if HOW == "batch" else found).encode()
        if HOW == "gzip":
            body, headers = gzip.compress(body), {**headers, "Content_Encoding": "gzip"}
        if HOW == "nolength":
            self.reply_without_length(body)
            return
        self.reply(200, b"\xef\xbb\xbf" + body if HOW == "bom" else body, **headers)
        if HOW == "closing":
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_WR)

    def reply_without_length(self, body):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    def call(self, request):
        handler = getattr(self, "call_" + HOW.replace("-", "_"), None)
        if handler is None:
            self.answer(request)
        else:
            handler(request)

    def call_busy(self, request):
        if state["busy"]:
            self.answer(request)
        else:
            state["busy"] = True
            self.reply(429, b"slow down", "text/plain", Retry_After="1")

    def call_call_status(self, request):
        self.reply(int(REST[0]), PAGE, "text/html")

    def call_document(self, request):
        self.reply(int(REST[0]), b'{"error":"not found"}')

    def call_html(self, request):
        self.reply(200, PAGE, "text/html")

    def call_accepted(self, request):
        self.reply(202)

    def call_huge(self, request):
        self.reply(200, json.dumps({**self.message(request), "fill": "x" * 300_000}).encode())

    def call_huge_event(self, request):
        self.stream()
        self.write("data: " + json.dumps({**self.message(request), "fill": "x" * 300_000}) + "\n\n")

    def call_cut(self, request):
        self.stream()
        note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "so far"}}
        self.write(f"data: {json.dumps(note)}\n\n")

    def call_silent(self, request):
        self.stream()
        threading.Event().wait()

    def call_resumable(self, request):
        self.stream()
        number = str(len(state["resumed"]) + 1)
        state["resumed"][number] = self.message(request)
        self.write(f"retry: 10\nid: {number}\ndata:\n\n")

    def call_reset(self, request):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True

    def call_tiny(self, request):
        self.stream()
        body = json.dumps(self.message(request), indent=0).replace("\n", "\r\ndata:")
        for byte in f":\r\n: hello\r\n\r\nevent: message\r\ndata: {body}\r\n\r\n".encode():
            self.wfile.write(bytes([byte]))
            self.wfile.flush()

    def call_relist(self, request):
        self.stream()
        for method in ("notifications/tools/list_changed", "notifications/resources/updated"):
            note = {"jsonrpc": "2.0", "method": method, "params": {"uri": "x://y"}}
            self.write(f"data: {json.dumps(note)}\n\n")
        self.write(f"data: {json.dumps(self.message(request))}\n\n")

    def do_GET(self):
        event = self.headers.get("Last-Event-ID")
        if HOW == "resumable" and event in state["resumed"]:
            self.stream()
            self.write(f"data: {json.dumps(state['resumed'].pop(event))}\n\n")
        else:
            self.reply(405, Allow="POST")

    def do_DELETE(self):
        self.reply(200)


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, address):
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, address)


def main():
    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=lambda: (sys.stdin.buffer.read(), os._exit(0)), daemon=True).start()
    sys.stdout.write(f"{server.server_address[1]}\n")
    sys.stdout.flush()
    server.serve_forever()


main()
