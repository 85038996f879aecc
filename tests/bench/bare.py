"""The reference: a relay without any feature on the same front end, HTTP in, a JSON line to one stdio server out.

bare.py PORT COMMAND...     no tokens, no checks, no log; everything is passed on to the one server
"""

import asyncio
import itertools
import sys

import msgspec
import uvicorn

try:
    import uvloop
except ImportError:
    uvloop = None


class Envelope(msgspec.Struct, omit_defaults=True):
    method: str = ""
    id: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    params: msgspec.Raw = msgspec.Raw(b"{}")


class Answer(msgspec.Struct):
    id: int
    result: msgspec.Raw = msgspec.Raw(b"")
    error: msgspec.Raw = msgspec.Raw(b"")


HEADERS = [(b"content-type", b"application/json")]


class Relay:
    def __init__(self, process):
        self.process = process
        self.numbers = itertools.count(1)
        self.waiting = {}
        self.envelope = msgspec.json.Decoder(Envelope)
        self.answer = msgspec.json.Decoder(Answer)

    async def read(self):
        buffer = bytearray()
        while data := await self.process.stdout.read(1 << 16):
            buffer += data
            if b"\n" not in data:
                continue
            *lines, rest = bytes(buffer).split(b"\n")
            buffer = bytearray(rest)
            for line in lines:
                answer = self.answer.decode(line)
                self.waiting.pop(answer.id).set_result(answer)

    async def __call__(self, scope, receive, send):
        body = b""
        more = True
        while more:
            message = await receive()
            body += message["body"]
            more = message.get("more_body")
        envelope = self.envelope.decode(body)
        head = b'{"jsonrpc":"2.0","method":"%s","params":%s' % (envelope.method.encode(), bytes(envelope.params))
        if envelope.id is msgspec.UNSET:
            self.process.stdin.write(head + b"}\n")
            await respond(send, 202, b"")
            return
        number = next(self.numbers)
        future = self.waiting[number] = asyncio.get_running_loop().create_future()
        self.process.stdin.write(head + b',"id":%d}\n' % number)
        answer = await future
        part = b'"error":' + bytes(answer.error) if answer.error else b'"result":' + bytes(answer.result)
        await respond(send, 200, b'{"jsonrpc":"2.0","id":%s,%s}' % (bytes(envelope.id), part))


async def respond(send, status, body):
    headers = [*HEADERS, (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def main(port, command):
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    relay = Relay(process)
    reading = asyncio.ensure_future(relay.read())
    config = uvicorn.Config(
        relay,
        port=port,
        loop="none",
        http="httptools",
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=3600,
    )
    try:
        await uvicorn.Server(config).serve()
    finally:
        process.kill()
        await process.wait()
        reading.cancel()


with asyncio.Runner(loop_factory=uvloop.new_event_loop if uvloop else None) as runner:
    runner.run(main(int(sys.argv[1]), sys.argv[2:]))
