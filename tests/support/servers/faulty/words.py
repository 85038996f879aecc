"""Servers on stdio whose messages are trouble (standard library only): words.py KIND [OPTION...].

asks                         sends requests of its own and answers tools/list only once its ping was answered
lines crlf|bom|split|join|pretty...    odd line ends
giant [list]                 tools big {kib} and edge answer with one very long line
bytes                        tools bad, surrogate and nul answer with bytes that are no good text
late                         tools late, twice, stranger, as_text, null_id, both and swapped answer out of order
changing [undeclared] [early]    tools toggle, storm and vanish change the list of tools
names                        tools whose names no client takes
noisy [glue]                 prints on stdout what is no protocol
handshake [version V | error | bare | nulls | extra | no-tools]    answers initialize oddly
schemas                      tools with schemas that strict clients refuse
pages [stuck | cycle | empty | error]    lists its tools in pages
progress                     tool slow tells of its progress, tool silent does not
"""

import json
import sys
import threading
import time

from stdio_server import (
    ECHO,
    KIND,
    NO_ANSWER,
    OBJECT,
    OPTIONS,
    answer,
    hello,
    listed,
    note,
    raw,
    respond,
    send,
    serve,
    text,
    tool,
)


def asks():
    questions = {
        "ping": None,
        "roots/list": None,
        "sampling/createMessage": {
            "messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}],
            "maxTokens": 5,
        },
        "elicitation/create": {"message": "name?", "requestedSchema": OBJECT},
        "x/unknown": None,
    }
    answers, waiting = {}, []
    tools = {"asked": tool(lambda: json.dumps(answers))}
    for line in sys.stdin.buffer:
        message = json.loads(line)
        method = message.get("method")
        if method is None:
            answers[message["id"]] = message["error"]["code"] if "error" in message else "result"
            while waiting and "q-ping" in answers:
                send(respond(waiting.pop(0), tools, {}))
        elif method == "notifications/initialized":
            for question, params in questions.items():
                send({"id": f"q-{question}", "method": question, **({} if params is None else {"params": params})})
        elif method.startswith("tools/") and "q-ping" not in answers:
            waiting.append(message)
        elif (members := respond(message, tools, {})) is not None:
            send(members)


def lines():
    begun = []

    def out(members):
        message = {"jsonrpc": "2.0", **members}
        data = json.dumps(message, ensure_ascii=False, indent=1 if "pretty" in OPTIONS else None).encode()
        data = data.replace(b"\n", b"\r\n") + (b"\r\n" if "crlf" in OPTIONS else b"\n")
        if not begun and "bom" in OPTIONS:
            data = b"\xef\xbb\xbf" + data
        if not begun and "join" in OPTIONS:
            data += b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"too"}}\r\n'
        begun.append(True)
        for start in range(0, len(data), 7 if "split" in OPTIONS else len(data)):
            raw(data[start : start + 7] if "split" in OPTIONS else data)
            time.sleep(0.0005 if "split" in OPTIONS else 0)

    serve({**ECHO, "accents": tool(lambda: "\u00e9\u4e16\U0001f600" * 20)}, out=out)


def giant():
    def big(arguments, message):
        return "x" * (1024 * arguments.get("kib", 256))

    def edge(arguments, message):
        """An answer of exactly 64 KiB and one byte, its line end included."""
        empty = len(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": text("")}, ensure_ascii=False)) + 1
        return "x" * (64 * 1024 + 1 - empty)

    tools = {**ECHO, "big": (OBJECT, big), "edge": (OBJECT, edge)}
    many = {f"tool_{number:03}": ECHO["echo"] for number in range(300)} if "list" in OPTIONS else {}
    long = [{**each, "description": "d" * 1000} for each in listed(many)]
    serve({**tools, **many}, on={"tools/list": lambda message: {"tools": listed(tools) + long}})


def bytes_():
    def bad(arguments, message):
        head = f'{{"jsonrpc":"2.0","id":{message["id"]},"result":{{"content":[{{"type":"text","text":"caf'.encode()
        raw(head + b"\xff\xfe\xe9" + b'"}]}}\n')
        sys.stderr.buffer.write(b"caf\xff\xfe\xe9\n")
        sys.stderr.flush()
        return NO_ANSWER

    def escaped(escape):
        def function(arguments, message):
            raw(
                f'{{"jsonrpc":"2.0","id":{message["id"]},"result":{{"content":[{{"type":"text",'
                f'"text":"a{escape}b"}}]}}}}\n'.encode()
            )
            return NO_ANSWER

        return (OBJECT, function)

    serve({**ECHO, "bad": (OBJECT, bad), "surrogate": escaped("\\ud800"), "nul": escaped("\\u0000")})


def late():
    held = []

    def later(arguments, message):
        threading.Timer(arguments.get("s", 1), answer, (message, "late")).start()
        return NO_ANSWER

    def twice(arguments, message):
        answer(message, "first")
        return "second"

    def another_id(number):
        def function(arguments, message):
            answer({"id": number(message)}, "whose?")
            return NO_ANSWER if number(message) in (None, str(message["id"])) else "mine"

        return (OBJECT, function)

    def both(arguments, message):
        send({"id": message["id"], "result": text("r"), "error": {"code": -1, "message": "e"}})
        return NO_ANSWER

    def swapped(arguments, message):
        held.append(message)
        if len(held) == 2:
            for one in reversed(held):
                answer(one, f"answer to {one['params']['arguments']['n']}")
            held.clear()
        return NO_ANSWER

    functions = {"late": later, "twice": twice, "both": both, "swapped": swapped}
    ids = {"stranger": lambda m: 987654, "as_text": lambda m: str(m["id"]), "null_id": lambda m: None}
    tools = {name: (OBJECT, function) for name, function in functions.items()}
    serve({**ECHO, **tools, **{name: another_id(number) for name, number in ids.items()}})


def changing():
    tools = {}

    def changed():
        note("notifications/tools/list_changed")

    def toggle():
        if tools.pop("extra", None) is None:
            tools["extra"] = tool(lambda: "extra")
        changed()
        return f"now {len(tools)}"

    def storm():
        for _ in range(200):
            changed()
        return "sent 200"

    def vanish():
        del tools["vanish"]
        changed()
        return "gone"

    def begin(message):
        if "early" in OPTIONS:
            changed()
        return hello(message, tools={} if "undeclared" in OPTIONS else {"listChanged": True})

    reads = []

    def lists(message):
        reads.append(1)
        return {"tools": listed(tools)}

    tools.update(toggle=tool(toggle), storm=tool(storm), vanish=tool(vanish), reads=tool(lambda: str(len(reads))))
    serve(tools, on={"initialize": begin, "tools/list": lists})


def names():
    odd = ["a" * 60, "b" * 64, "c" * 65, "d" * 128, "with.dot", "with/slash", "with blank", "Case", "case"]
    odd += ["caf\u00e9", "cafe\u0301", "\u5de5\u5177", "\U0001f680", "twice", "twice", "", "bell\u0007", "\u202eevil"]
    odd += ["server__tool", "-dash", "1digit", "a-b", "a_b", "a.b"]
    shown = [{"name": name, "description": f"no {number}", "inputSchema": OBJECT} for number, name in enumerate(odd)]
    tools = {name: (OBJECT, lambda arguments, message: f"called {message['params']['name']!r}") for name in odd}
    serve(tools, on={"tools/list": lambda message: {"tools": shown}})


def noisy():
    raw(b"Server version: 1.2.3\n\n> starting up...\n\x1b[32mready\x1b[0m\n")

    def out(members):
        raw(b'INFO handled a request\nnull\n5\n[]\n{"level":"info","msg":"no message"}\n')
        if "tools" in members.get("result", {}) and "glue" in OPTIONS:
            raw(b"[50] log without a line end" + json.dumps({"jsonrpc": "2.0", **members}).encode() + b"\n")
        else:
            send(members)

    serve(out=out)


def handshake():
    def refuse(message):
        raise RuntimeError("unsupported")

    bare = {"protocolVersion": "2025-06-18"}
    identity = {"name": "odd", "version": "0"}
    answers = {
        "error": refuse,
        "bare": lambda message: bare,
        "nulls": lambda message: {
            **bare,
            "capabilities": {"tools": None},
            "serverInfo": {**identity, "title": None},
            "instructions": None,
        },
        "extra": lambda message: (
            hello(message, instructions="i" * 204_800, _meta={"x": 1})
            | {"capabilities": {"tools": {}, "telepathy": {"level": 9}, "experimental": None}}
        ),
        "no-tools": lambda message: {**bare, "capabilities": {"prompts": {}}, "serverInfo": identity},
        "version": lambda message: {**hello(message), "protocolVersion": OPTIONS[1]},
    }
    serve({} if "no-tools" in OPTIONS else ECHO, on={"initialize": answers[OPTIONS[0]]})


def schemas():
    property_of = {
        "ref_self": {"$ref": "#"},
        "ref_dangling": {"$ref": "#/$defs/Nowhere"},
        "ref_remote": {"$ref": "http://192.0.2.1/schema.json"},
        "bool_property": True,
        "bad_type_name": {"type": "str"},
        "enum_mixed": {"enum": [1, "one", None, True]},
        "bad_pattern": {"type": "string", "pattern": "(?<n>[a-z"},
        "draft4": {"type": "number", "minimum": 0, "exclusiveMinimum": True},
    }
    whole = {
        "good_first": OBJECT,
        "empty": {},
        "string_schema": {"type": "string"},
        "top_anyof": {"anyOf": [OBJECT, OBJECT]},
        "type_list": {"type": ["object", "null"]},
        "null_required": {"type": "object", "properties": {}, "required": None},
    }
    whole |= {name: {"type": "object", "properties": {"p": part}} for name, part in property_of.items()}
    deep = {}
    for _ in range(200):
        deep = {"type": "object", "properties": {"d": deep}}
    whole |= {"deep": deep, "good_last": OBJECT}
    shown = [{"name": name, "inputSchema": schema} for name, schema in whole.items()]
    shown += [{"name": "no_schema"}, {"name": "boolean_schema", "inputSchema": True}, {"inputSchema": OBJECT}, 5]
    tools = {name: (schema, lambda arguments, message: message["params"]["name"]) for name, schema in whole.items()}
    serve(tools, on={"tools/list": lambda message: {"tools": shown}})


def pages():
    tools = {
        f"tool_{number:02}": (OBJECT, lambda arguments, message: message["params"]["name"]) for number in range(23)
    }
    everything = listed(tools)

    def page(message):
        cursor = (message.get("params") or {}).get("cursor")
        if "stuck" in OPTIONS:
            return {"tools": everything[:5], "nextCursor": "same"}
        if "cycle" in OPTIONS:
            there = cursor == "a"
            return {"tools": everything[5:10] if there else everything[:5], "nextCursor": "b" if there else "a"}
        number = int(cursor.split("-")[1]) if cursor else 0
        if "error" in OPTIONS and number == 2:
            raise RuntimeError("page lost")
        found = [] if "empty" in OPTIONS and number == 1 else everything[number * 5 : number * 5 + 5]
        more = {"nextCursor": f"page-{number + 1}"} if (number + 1) * 5 < len(everything) else {}
        return {"tools": found, **more}

    serve(tools, on={"tools/list": page})


def progress():
    def slow(arguments, message):
        token = (message["params"].get("_meta") or {}).get("progressToken")
        steps = int(arguments.get("s", 8) / 0.2)
        for step in range(steps):
            time.sleep(0.2)
            if token is not None:
                note(
                    "notifications/progress", {"progressToken": token, "progress": step + 1, "message": f"step {step}"}
                )
        answer(message, f"done after {steps}")
        for late_token in (token if token is not None else "none", "never-given"):
            note("notifications/progress", {"progressToken": late_token, "progress": 10**9})
        return NO_ANSWER

    def quiet(arguments, message):
        time.sleep(arguments.get("s", 8))
        return "done silently"

    serve({"slow": (OBJECT, slow), "silent": (OBJECT, quiet)})


KINDS = {
    "asks": asks,
    "lines": lines,
    "giant": giant,
    "bytes": bytes_,
    "late": late,
    "changing": changing,
    "names": names,
    "noisy": noisy,
    "handshake": handshake,
    "schemas": schemas,
    "pages": pages,
    "progress": progress,
}

if __name__ == "__main__":
    KINDS[KIND]()
