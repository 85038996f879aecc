"""An MCP server on stdio (standard library only) whose handshake is odd in one way.

bad_start.py HOW, where HOW is
deaf        says nothing to server/discover, is a legacy server otherwise
dies        ends when anything comes before initialize
late        answers server/discover, but only once initialize came too; is modern
later       like late, and refuses initialize before it answers server/discover
garbage     answers server/discover with a result that is no object
future      speaks revisions of the future alone
modern      knows server/discover alone, refuses initialize
legacy      knows initialize alone, refuses server/discover
banner      prints on stdout before it answers
bom         begins with a byte-order mark
nothing     ends at once, without reading, with status 7
gone        ends with status 7 when it is asked to initialize, and says nothing to server/discover
no-object   answers initialize with a text
null-error  says "error": null beside each result
"""

import json
import os
import sys

HOW = sys.argv[1]
MODERN = "2026-07-28"
DISCOVERED = {"supportedVersions": [MODERN], "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private"}
INITIALIZED = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": HOW, "version": "1"}}


def send(**members):
    if HOW == "null-error" and "result" in members:
        members["error"] = None
    sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", **members}).encode() + b"\n")
    sys.stdout.buffer.flush()


def unknown(number):
    send(id=number, error={"code": -32601, "message": "Method not found"})


def discover(number, held):
    if HOW in ("deaf", "gone"):
        return
    if HOW == "dies":
        os._exit(1)
    if HOW in ("late", "later"):
        held.append(number)
    elif HOW == "garbage":
        send(id=number, result="what?")
    elif HOW == "future":
        data = {"supported": ["2199-01-01"], "requested": MODERN}
        send(id=number, error={"code": -32022, "message": "Unsupported protocol version", "data": data})
    elif HOW == "modern":
        send(id=number, result=DISCOVERED)
    else:
        unknown(number)


def initialize(number, held):
    if HOW == "gone":
        os._exit(7)
    if HOW == "late":
        send(id=held.pop(), result=DISCOVERED)
    elif HOW == "later":
        unknown(number)
        send(id=held.pop(), result=DISCOVERED)
    elif HOW in ("modern", "future"):
        unknown(number)
    elif HOW == "no-object":
        send(id=number, result="hello")
    else:
        send(id=number, result=INITIALIZED)


def main():
    held = []
    if HOW == "nothing":
        os._exit(7)
    if HOW == "banner":
        sys.stdout.buffer.write(b'Server 1.0 ready!\n\n[]\n5\nnull\n{"level": "info"}\n')
    if HOW == "bom":
        sys.stdout.buffer.write(b"\xef\xbb\xbf")
    for line in sys.stdin:
        message = json.loads(line)
        number = message.get("id")
        if message.get("method") == "server/discover":
            discover(number, held)
        elif message.get("method") == "initialize":
            initialize(number, held)
        elif number is not None:
            send(id=number, result={})


main()
