"""A small MCP server of either era for tests of the relay; standard library only.

`python mcp_fixture.py --era legacy|modern [--name NAME] [--http PORT]`: stdio unless a port is given. Every tool does one
thing that a relay must get right; see TOOLS. Requests run in threads of their own, so that they may overlap.
"""

import argparse
import json
import os
import queue
import sys
import threading
import time

MODERN = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"


def tool(name, description, **properties):
    return {
        "name": name,
        "description": description,
        "inputSchema": {"type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()}},
    }


TOOLS = [
    tool("echo", "the text again", text="string"),
    tool("raw", "the parameters as they came"),
    tool("big", "a text of so many letters", size="integer"),
    tool("bigint", "integers that no float holds"),
    tool("fail", "isError", text="string"),
    tool("refuse", "a JSON-RPC error"),
    tool("slow", "answers after so many milliseconds, or when it is cancelled", ms="integer"),
    tool("progress", "tells progress", steps="integer"),
    tool("log", "logs a message", text="string"),
    tool("elicit", "asks the person for a name"),
    tool("sample", "asks the model"),
    tool("roots", "asks for the roots"),
    tool("toggle", "adds or removes the tool extra", burst="integer"),
    tool("touch", "says that the resource changed"),
    tool("counts", "how often which method was called"),
    tool("die", "ends the process at once"),
    tool("pid", "the process id"),
]


class Server:
    def __init__(self, era, name, write):
        self.modern = era == "modern"
        self.name = name
        self.write_line = write
        self.lock = threading.Lock()
        self.answers = {}
        self.next = 0
        self.extra = False
        self.counts = {}
        self.cancelled = {}
        self.subscribed = set()
        self.listeners = {}

    def write(self, message):
        with self.lock:
            self.write_line(json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False))

    def notify(self, method, **params):
        self.write({"method": method, "params": params})

    def ask(self, method, params):
        with self.lock:
            self.next += 1
            number = f"ask-{self.next}"
            box = self.answers[number] = queue.Queue()
        self.write({"id": number, "method": method, "params": params})
        return box.get(timeout=30)

    def handle(self, message):
        method, number = message.get("method"), message.get("id")
        if method is None:
            box = self.answers.pop(number, None)
            if box is not None:
                box.put(message)
            return
        self.counts[method] = self.counts.get(method, 0) + 1
        params = message.get("params") or {}
        if number is None:
            if method == "notifications/cancelled":
                event = self.cancelled.get(params.get("requestId"))
                self.listeners.pop(params.get("requestId"), None)
                if event is not None:
                    event.set()
            return
        threading.Thread(target=self.answer, args=(number, method, params), daemon=True).start()

    def answer(self, number, method, params):
        try:
            result = self.dispatch(number, method, params)
        except Refusal as refusal:
            self.write({"id": number, "error": refusal.error})
            return
        if result is not None:
            if self.modern:
                result.setdefault("resultType", "complete")
            self.write({"id": number, "result": result})

    def dispatch(self, number, method, params):
        meta = params.get("_meta") or {}
        if self.modern and meta.get(PREFIX + "protocolVersion") != MODERN:
            raise Refusal(-32602, "_meta must have the protocol version")
        capabilities = {
            "tools": {"listChanged": True},
            "prompts": {},
            "resources": {"subscribe": True, "listChanged": True},
            "completions": {},
            "logging": {},
        }
        who = {"name": self.name, "version": "1.0"}
        if method == "server/discover" and self.modern:
            return {"supportedVersions": [MODERN], "capabilities": capabilities, "ttlMs": 0, "cacheScope": "public",
                    "instructions": f"instructions of {self.name}", "_meta": {PREFIX + "serverInfo": who}}
        if method == "initialize" and not self.modern:
            return {"protocolVersion": params["protocolVersion"], "capabilities": capabilities, "serverInfo": who,
                    "instructions": f"instructions of {self.name}"}
        handler = getattr(self, "on_" + method.replace("/", "_").replace("-", "_").lower(), None)
        if handler is None:
            raise Refusal(-32601, f"Method not found: {method}")
        return handler(number, params, meta)

    def on_ping(self, number, params, meta):
        return {}

    def on_tools_list(self, number, params, meta):
        tools = TOOLS + ([tool("extra", "comes and goes")] if self.extra else [])
        return {"tools": tools}

    def on_prompts_list(self, number, params, meta):
        return {"prompts": [{"name": "greet", "arguments": [{"name": "who", "required": True}]}]}

    def on_prompts_get(self, number, params, meta):
        text = f"hello {params.get('arguments', {}).get('who')} from {self.name}"
        return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}

    def on_resources_list(self, number, params, meta):
        return {"resources": [{"uri": f"doc://{self.name}/readme", "name": "readme"}, {"uri": "doc://same", "name": "same"}]}

    def on_resources_templates_list(self, number, params, meta):
        return {"resourceTemplates": [{"uriTemplate": f"doc://{self.name}/page/{{n}}", "name": "page"}]}

    def on_resources_read(self, number, params, meta):
        uri = params["uri"]
        if not uri.startswith("doc://"):
            raise Refusal(-32602 if self.modern else -32002, "Resource not found", {"uri": uri})
        return {"contents": [{"uri": uri, "text": f"{uri} read at {self.name}"}]}

    def on_resources_subscribe(self, number, params, meta):
        self.subscribed.add(params["uri"])
        return {}

    def on_resources_unsubscribe(self, number, params, meta):
        self.subscribed.discard(params["uri"])
        return {}

    def on_logging_setlevel(self, number, params, meta):
        return {}

    def on_completion_complete(self, number, params, meta):
        return {"completion": {"values": [f"{params['argument']['value']}lpha of {self.name}"]}}

    def on_subscriptions_listen(self, number, params, meta):
        wanted = params.get("notifications") or {}
        self.listeners[number] = wanted
        self.notify("notifications/subscriptions/acknowledged", notifications=wanted,
                    _meta={PREFIX + "subscriptionId": number})
        return None

    def tell(self, method, member, **params):
        if not self.modern:
            self.notify(method, **params)
        for number, wanted in list(self.listeners.items()):
            if wanted.get(member):
                self.notify(method, **params, _meta={PREFIX + "subscriptionId": number})

    def on_tools_call(self, number, params, meta):
        name = params["name"]
        handler = getattr(self, "tool_" + name, None)
        if handler is None:
            raise Refusal(-32602, f"Unknown tool: {name}")
        return handler(number, params, params.get("arguments") or {}, meta)

    def tool_echo(self, number, params, arguments, meta):
        return text(arguments.get("text", ""))

    def tool_raw(self, number, params, arguments, meta):
        return text(json.dumps(params, ensure_ascii=False))

    def tool_big(self, number, params, arguments, meta):
        return text("ü" * int(arguments["size"]))

    def tool_bigint(self, number, params, arguments, meta):
        return {**text("see structuredContent"), "structuredContent": {"n": 2**63 + 1, "m": -(2**70)}, "extra": [None]}

    def tool_fail(self, number, params, arguments, meta):
        return {**text(arguments.get("text", "failed")), "isError": True}

    def tool_refuse(self, number, params, arguments, meta):
        raise Refusal(-32050, "refused", {"why": ["because", 1]})

    def tool_slow(self, number, params, arguments, meta):
        event = self.cancelled[number] = threading.Event()
        if event.wait(int(arguments["ms"]) / 1000):
            self.counts["cancelled slow"] = self.counts.get("cancelled slow", 0) + 1
            return None
        return text("slow")

    def tool_progress(self, number, params, arguments, meta):
        token = meta.get("progressToken")
        for step in range(int(arguments.get("steps", 3))):
            if token is not None:
                self.notify("notifications/progress", progressToken=token, progress=step + 1, message=f"{self.name} {step}")
            time.sleep(0.02)
        return text("done" if token is not None else "no token")

    def tool_log(self, number, params, arguments, meta):
        self.notify("notifications/message", level="warning", data=arguments.get("text", ""))
        return text("logged")

    def question(self, params, key, method, body, answer_of):
        if self.modern:
            responses = params.get("inputResponses")
            if not responses:
                return {"resultType": "input_required", "inputRequests": {key: {"method": method, "params": body}},
                        "requestState": f"state of {self.name}"}
            return text(answer_of(responses[key]) + " / " + str(params.get("requestState")))
        answer = self.ask(method, body)
        if "error" in answer:
            return {**text(f"refused: {answer['error']['message']}"), "isError": True}
        return text(answer_of(answer["result"]))

    def tool_elicit(self, number, params, arguments, meta):
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        return self.question(params, "who", "elicitation/create",
                             {"mode": "form", "message": "Who?", "requestedSchema": schema},
                             lambda answer: "hello " + str((answer.get("content") or {}).get("name")))

    def tool_sample(self, number, params, arguments, meta):
        body = {"messages": [{"role": "user", "content": {"type": "text", "text": "2+2"}}], "maxTokens": 10}
        return self.question(params, "model", "sampling/createMessage", body,
                             lambda answer: "model says " + str(answer["content"]["text"]))

    def tool_roots(self, number, params, arguments, meta):
        return self.question(params, "roots", "roots/list", {},
                             lambda answer: " ".join(root["uri"] for root in answer["roots"]))

    def tool_toggle(self, number, params, arguments, meta):
        for _ in range(int(arguments.get("burst", 1))):
            self.extra = not self.extra
            self.tell("notifications/tools/list_changed", "toolsListChanged")
        return text(f"extra is {self.extra}")

    def tool_touch(self, number, params, arguments, meta):
        uri = f"doc://{self.name}/readme"
        if uri in self.subscribed:
            self.notify("notifications/resources/updated", uri=uri)
        for listener, wanted in list(self.listeners.items()):
            if uri in (wanted.get("resourceSubscriptions") or []):
                self.notify("notifications/resources/updated", uri=uri, _meta={PREFIX + "subscriptionId": listener})
        return text("touched")

    def tool_counts(self, number, params, arguments, meta):
        return text(json.dumps(self.counts))

    def tool_die(self, number, params, arguments, meta):
        os._exit(3)

    def tool_pid(self, number, params, arguments, meta):
        return text(str(os.getpid()))


class Refusal(Exception):
    def __init__(self, code, message, data=None):
        super().__init__(message)
        self.error = {"code": code, "message": message}
        if data is not None:
            self.error["data"] = data


def text(value):
    return {"content": [{"type": "text", "text": value}]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--era", choices=["legacy", "modern"], default="legacy")
    parser.add_argument("--name", default="fixture")
    options = parser.parse_args()
    output = sys.stdout.buffer

    def write(line):
        output.write(line.encode() + b"\n")
        output.flush()

    server = Server(options.era, options.name, write)
    for line in sys.stdin.buffer:
        if line.strip():
            server.handle(json.loads(line))


if __name__ == "__main__":
    main()
