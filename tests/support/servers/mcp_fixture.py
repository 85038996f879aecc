"""A small MCP server of either era for tests of the relay; standard library only.

`python mcp_fixture.py --era legacy|modern [--name NAME]` on stdio; with `--http PORT` over streamable HTTP, with
`--sse` besides over HTTP+SSE (see mcp_fixture_http.py). Every tool does one thing that a relay must get right: see
TOOLS. Requests run in threads of their own, so that they may overlap.

--page-size N        tools come in pages of N
--hints              some tools declare what they do: see HINTS
--list-fault FAULT   stuck, cycle, endless, error, refused, garbage: what tools/list does wrong; odd: malformed tools
"""

import argparse
import json
import os
import queue
import sys
import threading
import time
from pathlib import Path

MODERN = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"
FORM = {"type": "object", "properties": {"name": {"type": "string"}}}
ELICIT = ("elicitation/create", {"mode": "form", "message": "Who?", "requestedSchema": FORM})
SAMPLE = (
    "sampling/createMessage",
    {"messages": [{"role": "user", "content": {"type": "text", "text": "2+2"}}], "maxTokens": 10},
)
ROOTS = ("roots/list", {})


def tool(name, description, **properties):
    return {
        "name": name,
        "description": description,
        "inputSchema": {"type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()}},
    }


HEADED = tool("headed", "an argument that stands in a header too", region="string", number="integer")
HEADED["inputSchema"]["properties"]["region"]["x-mcp-header"] = "Region"
HEADED["inputSchema"]["properties"]["number"]["x-mcp-header"] = "Number"

TOOLS = [
    tool("echo", "the text again", text="string"),
    tool("raw", "the parameters as they came"),
    tool("big", "a text of so many letters", size="integer"),
    tool("bigint", "integers that no float holds"),
    tool("fail", "isError", text="string"),
    tool("refuse", "a JSON-RPC error"),
    tool("slow", "answers after so many milliseconds, or when it is cancelled", ms="integer"),
    tool("gate", "answers once there is a file of this name", file="string"),
    tool("late", "answers after so many milliseconds, cancelled or not", ms="integer"),
    tool("progress", "tells progress", steps="integer", ms="integer"),
    tool("log", "logs a message", text="string", level="string"),
    tool("elicit", "asks the person for a name"),
    tool("elicit_url", "asks the person to open a page"),
    tool("sample", "asks the model"),
    tool("roots", "asks for the roots"),
    tool("rounds", "asks twice, one after the other"),
    tool("both", "asks for a name and the model at once"),
    tool("abandon", "asks, then answers without waiting, but for a file", withdraw="boolean"),
    tool("ping", "pings whoever calls"),
    tool("toggle", "adds or removes the tool extra", burst="integer"),
    tool("touch", "says that the resource changed"),
    tool("shout", "logs a message outside of any request", text="string"),
    tool("custom", "sends a notification that no revision knows"),
    tool("counts", "how often which method was called"),
    tool("emit", "writes these lines as they are; {id} is the request's, {fill} so many letters", fill="integer"),
    tool("task", "begins a task"),
    tool("forget", "forgets every HTTP session"),
    tool("unstream", "ends every GET stream"),
    tool("unlisten", "ends every stream of changes, gracefully or not", cut="boolean"),
    tool("cut", "closes the stream without an answer"),
    tool("die", "ends the process at once"),
    tool("pid", "the process id"),
    HEADED,
]

HINTS = {
    "echo": {"readOnlyHint": True},
    "raw": {"destructiveHint": True},
    "bigint": {"readOnlyHint": False, "destructiveHint": False},
    "big": {"readOnlyHint": False},
}
ODD_TOOLS = [
    {"inputSchema": {"type": "object"}},
    {"name": 7, "inputSchema": {"type": "object"}},
    {"name": "", "inputSchema": {"type": "object"}},
    {"name": "no-schema"},
    {"name": "true-schema", "inputSchema": True},
    {"name": "echo", "description": "the second of this name", "inputSchema": {"type": "object"}},
    {
        "name": "bad-header",
        "inputSchema": {"type": "object", "properties": {"a": {"type": "array", "x-mcp-header": "A"}}},
    },
    {
        "name": "two-headers",
        "inputSchema": {
            "type": "object",
            "properties": {"a": {"type": "string", "x-mcp-header": "A"}, "b": {"type": "string", "x-mcp-header": "a"}},
        },
    },
    "a text",
    None,
    5,
    [],
    {"name": "good", "inputSchema": {"type": "object"}, "annotations": {"unknown": [1]}},
]


class Server:
    """``default`` takes what belongs to no request; what belongs to one goes to that request's own channel."""

    def __init__(self, era, name, default, page_size=0, list_fault="", hints=False):
        self.hints = hints
        self.modern = era == "modern"
        self.name = name
        self.default = default
        self.page_size = page_size
        self.list_fault = list_fault
        self.local = threading.local()
        self.lock = threading.Lock()
        self.answers = {}
        self.next = 0
        self.extra = False
        self.counts = {}
        self.level = None
        self.cancelled = {}
        self.subscribed = set()
        self.tasks = []
        self.listeners = {}
        self.forget = lambda: None
        self.unstream = lambda: None

    def write(self, message, channel=None):
        channel = channel or getattr(self.local, "channel", None) or self.default
        with self.lock:
            channel(json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False))

    def notify(self, method, channel=None, **params):
        self.write({"method": method, "params": params}, channel)

    def put(self, method, params):
        """Send a request of our own; the queue gets the answer."""
        with self.lock:
            self.next += 1
            number = f"ask-{self.next}"
            box = self.answers[number] = queue.Queue()
        self.write({"id": number, "method": method, "params": params})
        return number, box

    def ask(self, method, params):
        return self.put(method, params)[1].get(timeout=30)

    def count(self, what):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + 1

    def event(self, number):
        with self.lock:
            return self.cancelled.setdefault(number, threading.Event())

    def handle(self, message, channel=None):
        method, number = message.get("method"), message.get("id")
        if method is None:
            box = self.answers.pop(number, None)
            if box is not None:
                box.put(message)
            return
        self.count(method)
        params = message.get("params") or {}
        if number is None:
            if method == "notifications/cancelled":
                self.cancel(params.get("requestId"))
            return
        threading.Thread(target=self.answer, args=(number, method, params, channel), daemon=True).start()

    def cancel(self, number):
        self.listeners.pop(number, None)
        self.event(number).set()

    def answer(self, number, method, params, channel):
        self.local.channel = channel
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
            **({"extensions": {"io.modelcontextprotocol/tasks": {}}} if self.modern else {"tasks": {"requests": {}}}),
        }
        who = {"name": self.name, "version": "1.0"}
        if method == "server/discover" and self.modern:
            return {
                "supportedVersions": [MODERN],
                "capabilities": capabilities,
                "ttlMs": 0,
                "cacheScope": "public",
                "instructions": f"instructions of {self.name}",
                "_meta": {PREFIX + "serverInfo": who},
            }
        if method == "initialize" and not self.modern:
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": capabilities,
                "serverInfo": who,
                "instructions": f"instructions of {self.name}",
            }
        if method.startswith("x/"):
            return {"method": method, "params": params, "by": self.name}
        handler = getattr(self, "on_" + method.replace("/", "_").replace("-", "_").lower(), None)
        if handler is None:
            raise Refusal(-32601, f"Method not found: {method}")
        return handler(number, params, meta)

    def on_ping(self, number, params, meta):
        return {}

    def on_tools_list(self, number, params, meta):
        tools = TOOLS + ([tool("extra", "comes and goes")] if self.extra else [])
        if self.hints:
            tools = [{**each, "annotations": HINTS.get(each["name"], {})} for each in tools]
        if self.list_fault == "refused":
            raise Refusal(-32603, "no list today")
        if self.list_fault == "garbage":
            return {"tools": {"echo": 1}}
        if self.list_fault == "odd":
            return {"tools": ODD_TOOLS + tools}
        if not self.page_size:
            return {"tools": tools}
        start = int(params.get("cursor", "at 0").removeprefix("at "))
        following = start + self.page_size
        page = {"tools": tools[start:following]}
        if self.list_fault == "stuck":
            return {"tools": tools[: self.page_size], "nextCursor": "at 0"}
        if self.list_fault == "cycle":
            return {**page, "nextCursor": f"at {following if following < 3 * self.page_size else 0}"}
        if self.list_fault == "endless":
            return {**page, "nextCursor": f"at {following}"}
        if self.list_fault == "error" and start:
            raise Refusal(-32603, "no second page")
        if following < len(tools):
            page["nextCursor"] = f"at {following}"
        return page

    def on_prompts_list(self, number, params, meta):
        return {"prompts": [{"name": "greet", "arguments": [{"name": "who", "required": True}]}]}

    def on_prompts_get(self, number, params, meta):
        text = f"hello {params.get('arguments', {}).get('who')} from {self.name}"
        return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}

    def on_resources_list(self, number, params, meta):
        return {
            "resources": [{"uri": f"doc://{self.name}/readme", "name": "readme"}, {"uri": "doc://same", "name": "same"}]
        }

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
        self.level = params["level"]
        return {}

    def on_completion_complete(self, number, params, meta):
        values = [f"{params['argument']['value']}lpha of {self.name}"]
        if params["argument"]["name"] == "ref":
            values = [json.dumps(params["ref"], sort_keys=True)]
        return {"completion": {"values": values}}

    def on_tasks_get(self, number, params, meta):
        return {"taskId": params["taskId"], "status": "working", "by": self.name}

    def on_tasks_list(self, number, params, meta):
        return {"tasks": self.tasks}

    def on_subscriptions_listen(self, number, params, meta):
        wanted = params.get("notifications") or {}
        self.listeners[number] = wanted, getattr(self.local, "channel", None)
        self.notify(
            "notifications/subscriptions/acknowledged", notifications=wanted, _meta={PREFIX + "subscriptionId": number}
        )
        return None

    def tell(self, method, wants, **params):
        """A change: outside of any request in the legacy era, to those who listen in the modern one."""
        if not self.modern:
            self.notify(method, self.default, **params)
        for number, (wanted, channel) in list(self.listeners.items()):
            if wants(wanted):
                self.notify(method, channel or self.default, **params, _meta={PREFIX + "subscriptionId": number})

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

    def tool_headed(self, number, params, arguments, meta):
        return text(json.dumps(getattr(self.local, "headers", {})))

    def tool_big(self, number, params, arguments, meta):
        return text("ü" * int(arguments["size"]))

    def tool_bigint(self, number, params, arguments, meta):
        return {**text("see structuredContent"), "structuredContent": {"n": 2**63 + 1, "m": -(2**70)}, "extra": [None]}

    def tool_fail(self, number, params, arguments, meta):
        return {**text(arguments.get("text", "failed")), "isError": True}

    def tool_refuse(self, number, params, arguments, meta):
        raise Refusal(-32050, "refused", {"why": ["because", 1]})

    def tool_slow(self, number, params, arguments, meta):
        self.count("begun slow")
        if self.event(number).wait(int(arguments["ms"]) / 1000):
            self.count("cancelled slow")
            return None
        return text("slow")

    def tool_gate(self, number, params, arguments, meta):
        while not Path(arguments["file"]).exists():
            if self.event(number).wait(0.1):
                return None
        return text("open")

    def tool_late(self, number, params, arguments, meta):
        self.count("begun late")
        self.event(number).wait(int(arguments["ms"]) / 1000)
        self.count("ended late")
        self.notify("notifications/progress", progressToken=meta.get("progressToken", 0), progress=99)
        return text("late")

    def tool_progress(self, number, params, arguments, meta):
        token = meta.get("progressToken")
        pause = int(arguments.get("ms", 20)) / 1000
        for step in range(int(arguments.get("steps", 3))):
            if token is not None:
                self.notify(
                    "notifications/progress", progressToken=token, progress=step + 1, message=f"{self.name} {step}"
                )
            if self.event(number).wait(pause):
                return None
        return text("done" if token is not None else "no token")

    def tool_log(self, number, params, arguments, meta):
        self.notify("notifications/message", level=arguments.get("level", "warning"), data=arguments.get("text", ""))
        return text("logged")

    def tool_shout(self, number, params, arguments, meta):
        def later():
            time.sleep(0.05)
            self.notify("notifications/message", self.default, level="warning", data=arguments["text"])

        threading.Thread(target=later, daemon=True).start()
        return text("soon")

    def tool_custom(self, number, params, arguments, meta):
        self.notify("notifications/x/custom", channel=None, more=[1, 2**70])
        return text("told")

    def question(self, params, key, question, answer_of):
        method, body = question
        if self.modern:
            responses = params.get("inputResponses")
            if not responses:
                return {
                    "resultType": "input_required",
                    "inputRequests": {key: {"method": method, "params": body}},
                    "requestState": f"state of {self.name}",
                }
            return text(answer_of(responses[key]) + " / " + str(params.get("requestState")))
        answer = self.ask(method, body)
        if "error" in answer:
            return {**text(f"refused: {answer['error']['message']}"), "isError": True}
        return text(answer_of(answer["result"]))

    def tool_elicit(self, number, params, arguments, meta):
        self.event(number).wait(int(arguments.get("before", 0)) / 1000)

        def greet(answer):
            self.event(number).wait(int(arguments.get("ms", 0)) / 1000)
            return "hello " + name_in(answer)

        return self.question(params, "who", ELICIT, greet)

    def tool_elicit_url(self, number, params, arguments, meta):
        body = {"mode": "url", "message": "Open it", "url": "https://example.invalid/", "elicitationId": "e1"}
        return self.question(params, "page", ("elicitation/create", body), lambda answer: answer["action"])

    def tool_sample(self, number, params, arguments, meta):
        return self.question(params, "model", SAMPLE, lambda answer: "model says " + str(answer["content"]["text"]))

    def tool_roots(self, number, params, arguments, meta):
        return self.question(params, "roots", ROOTS, lambda answer: " ".join(root["uri"] for root in answer["roots"]))

    def tool_rounds(self, number, params, arguments, meta):
        if not self.modern:
            answers = [self.ask(*ELICIT) for _ in range(2)]
            return text(
                " and ".join(name_in(answer["result"]) if "result" in answer else str(answer) for answer in answers)
            )
        state = params.get("requestState", "")
        responses = params.get("inputResponses") or {}
        said = state.split("|")[1:] + [name_in(answer) for answer in responses.values()]
        if len(said) < 2:
            requests = {f"who{len(said)}": {"method": ELICIT[0], "params": ELICIT[1]}}
            return {
                "resultType": "input_required",
                "inputRequests": requests,
                "requestState": "|".join(["state", *said]),
            }
        return text(" and ".join(said))

    def tool_both(self, number, params, arguments, meta):
        if self.modern:
            responses = params.get("inputResponses") or {}
            if len(responses) < 2:
                requests = {
                    "a": {"method": ELICIT[0], "params": ELICIT[1]},
                    "b": {"method": SAMPLE[0], "params": SAMPLE[1]},
                }
                return {"resultType": "input_required", "inputRequests": requests}
            who, model = responses["a"], responses["b"]
        else:
            boxes = [self.put(*ELICIT)[1], self.put(*SAMPLE)[1]]
            who, model = (box.get(timeout=30)["result"] for box in boxes)
        return text(f"{name_in(who)}: {model['content']['text']}")

    def tool_abandon(self, number, params, arguments, meta):
        asked, _ = self.put(*ELICIT)
        while "file" in arguments and not Path(arguments["file"]).exists():
            self.event(number).wait(0.02)
        self.event(number).wait(int(arguments.get("ms", 0)) / 1000)
        if arguments.get("withdraw"):
            self.notify("notifications/cancelled", requestId=asked, reason="never mind")
        return text("never mind")

    def tool_ping(self, number, params, arguments, meta):
        return text(json.dumps(self.ask("ping", {})["result"]))

    def tool_toggle(self, number, params, arguments, meta):
        for _ in range(int(arguments.get("burst", 1))):
            self.extra = not self.extra
            self.tell("notifications/tools/list_changed", lambda wanted: wanted.get("toolsListChanged"))
        if arguments.get("here"):  # some servers send it on the stream of whatever request there is
            self.notify("notifications/tools/list_changed")
        return text(f"extra is {self.extra}")

    def tool_touch(self, number, params, arguments, meta):
        uri = f"doc://{self.name}/readme"
        if self.modern or uri in self.subscribed:
            self.tell(
                "notifications/resources/updated",
                lambda wanted: uri in (wanted.get("resourceSubscriptions") or []),
                uri=uri,
            )
        return text("touched")

    def tool_counts(self, number, params, arguments, meta):
        return text(
            json.dumps(
                {
                    **self.counts,
                    "level": self.level,
                    "subscribed": sorted(self.subscribed),
                    "listening": [wanted for wanted, _ in self.listeners.values()],
                }
            )
        )

    def tool_emit(self, number, params, arguments, meta):
        fill = "x" * int(arguments.get("fill", 0))
        lines = [line.replace("{id}", str(number)).replace("{fill}", fill) for line in arguments["lines"]]
        with self.lock:
            sys.stdout.buffer.write("".join(lines).encode("latin-1"))
            sys.stdout.buffer.flush()
        if arguments.get("die"):
            os._exit(3)

    def tool_task(self, number, params, arguments, meta):
        task = {"taskId": arguments.get("id", f"task of {self.name}"), "status": "working"}
        self.tasks.append(task)
        return {"resultType": "task", **task} if self.modern else {"task": task}

    def tool_forget(self, number, params, arguments, meta):
        self.forget()
        return text("forgotten")

    def tool_unstream(self, number, params, arguments, meta):
        self.unstream()
        return text("ended")

    def tool_unlisten(self, number, params, arguments, meta):
        for listener, (_, channel) in list(self.listeners.items()):
            del self.listeners[listener]
            if arguments.get("cut"):
                channel(None)
            else:
                result = {"resultType": "complete", "_meta": {PREFIX + "subscriptionId": listener}}
                self.write({"id": listener, "result": result}, channel)
        return text("ended")

    def tool_cut(self, number, params, arguments, meta):
        self.local.channel(None)

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


def name_in(answer):
    return str((answer.get("content") or {}).get("name"))


def serve_stdio(options):
    output = sys.stdout.buffer

    def write(line):
        output.write(line.encode() + b"\n")
        output.flush()

    server = Server(options.era, options.name, write, options.page_size, options.list_fault, options.hints)
    for line in sys.stdin.buffer:
        if line.strip():
            server.handle(json.loads(line))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--era", choices=["legacy", "modern"], default="legacy")
    parser.add_argument("--name", default="fixture")
    parser.add_argument("--page-size", type=int, default=0)
    parser.add_argument("--list-fault", default="")
    parser.add_argument("--hints", action="store_true")
    parser.add_argument("--http", type=int)
    parser.add_argument("--sse", action="store_true")
    options = parser.parse_args()
    if options.http is None:
        serve_stdio(options)
        return
    from mcp_fixture_http import serve

    serve(
        options,
        lambda default: Server(
            options.era, options.name, default, options.page_size, options.list_fault, options.hints
        ),
    )


if __name__ == "__main__":
    main()
