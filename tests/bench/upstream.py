"""A light MCP server on stdio (standard library only), so that what is measured is what stands before it.

upstream.py --name NAME [--tools N] [--lines N] [--stderr MB]
--tools N       tools tool_0 ... tool_N-1; each returns a text of {"size": bytes}
--lines N       writes so many lines on stderr for each call
--stderr MB     writes so many megabytes a second on stderr, from a thread, in lines of 100 bytes
"""

import argparse
import json
import os
import sys
import threading
import time


def flood(megabytes):
    chunk = (b"x" * 99 + b"\n") * 1000
    began, written = time.monotonic(), 0
    while True:
        os.write(2, chunk)
        written += len(chunk)
        time.sleep(max(0.0, began + written / (megabytes * 1e6) - time.monotonic()))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", default="upstream")
    parser.add_argument("--tools", type=int, default=1)
    parser.add_argument("--lines", type=int, default=0)
    parser.add_argument("--stderr", type=int, default=0)
    options = parser.parse_args()
    if options.stderr:
        threading.Thread(target=flood, args=(options.stderr,), daemon=True).start()
    properties = {"size": {"type": "integer", "description": "bytes of the text"}}
    tools = [
        {
            "name": f"tool_{number}",
            "description": f"Returns a text. Tool number {number} of {options.name}, described at usual length.",
            "inputSchema": {"type": "object", "properties": properties},
        }
        for number in range(options.tools)
    ]
    answers = {
        "initialize": json.dumps(
            {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": options.name, "version": "1"},
            }
        ).encode(),
        "tools/list": json.dumps({"tools": tools}).encode(),
        "ping": b"{}",
    }
    results = {}
    output = sys.stdout.buffer
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "id" not in message:
            continue
        method = message["method"]
        if method == "tools/call":
            size = message["params"].get("arguments", {}).get("size", 2)
            if size not in results:
                text = {"type": "text", "text": "x" * size}
                results[size] = b'"result":' + json.dumps({"content": [text], "isError": False}).encode()
            answer = results[size]
            for number in range(options.lines):
                print(f"call {message['id']}, line {number}: what a server says of its work", file=sys.stderr)
        elif method in answers:
            answer = b'"result":' + answers[method]
        else:
            answer = b'"error":{"code":-32601,"message":"Method not found"}'
        output.write(b'{"jsonrpc":"2.0","id":' + json.dumps(message["id"]).encode() + b"," + answer + b"}\n")
        output.flush()


main()
