"""MCP servers that break the protocol. Each attack is a function that answers a message as no honest server does.

Over HTTP, `python hostile.py http HOST PORT`, it is the path of the URL; as a program, `python hostile.py ATTACK`. Its
first word says to which message it answers so: `init`, `list` or `call`. All other messages get an honest answer.

At the path `/chosen`, the arguments of each call choose how it is answered: with an `attack`, with a `status`, or
after a `pause`. There the server has sessions, too.
"""

import itertools
import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOOL = {"name": "echo", "description": "Echo.", "inputSchema": {"type": "object"}}
BIG = 5_000_000
DEEP = 20_000


def reply(message, result):
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


def honest(message):
    match message["method"]:
        case "initialize":
            version = message["params"]["protocolVersion"]
            server = {"name": "hostile", "version": "1"}
            return reply(message, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server})
        case "tools/list":
            return reply(message, {"tools": [TOOL]})
        case "tools/call":
            return reply(message, {"content": [{"type": "text", "text": "honest"}]})
    return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "Method not found"}}


def text(message, value):
    return reply(message, {"content": [{"type": "text", "text": value}]})


def ping(number):
    return {"jsonrpc": "2.0", "id": f"p{number}", "method": "ping"}


def tools(message, *items, **more):
    return reply(message, {"tools": [{**TOOL, **item} for item in items], **more})


def nested(depth):
    return '{"a":' * depth + "1" + "}" * depth


def raw(message, result):
    return f'{{"jsonrpc": "2.0", "id": {json.dumps(message["id"])}, "result": {result}}}'


# Each returns a message, a text that is sent as it is, or an iterator of such pieces.
ATTACKS = {
    "honest": honest,
    "no-json": lambda m: "<html>Sign in</html>",
    "empty": lambda m: "",
    "null": lambda m: "null",
    "list": lambda m: "[1, 2]",
    "number": lambda m: "1" * 10_000,
    "other-id": lambda m: {**honest(m), "id": 4711},
    "text-id": lambda m: {**honest(m), "id": "x" * 100_000},
    "no-id": lambda m: {"jsonrpc": "2.0", "result": {}},
    "twice": lambda m: iter([json.dumps(honest(m)) + "\n", json.dumps(honest(m))]),
    "wrong-result": lambda m: reply(m, {"tools": 5, "content": "x", "protocolVersion": [], "capabilities": 1}),
    "no-base64": lambda m: reply(m, {"content": [{"type": "image", "data": "aaaaa", "mimeType": "image/png"}]}),
    "other-version": lambda m: {**honest(m), "result": {**honest(m)["result"], "protocolVersion": "2099-01-01"}},
    "text-result": lambda m: reply(m, "done"),
    "error-huge": lambda m: {"jsonrpc": "2.0", "id": m["id"], "error": {"code": 1, "message": "x" * 1_000_000}},
    "error-bidi": lambda m: {"jsonrpc": "2.0", "id": m["id"], "error": {"code": 1, "message": "a\0b\u202ed"}},
    "error-wrong": lambda m: {"jsonrpc": "2.0", "id": m["id"], "error": "no"},
    "error-nul": lambda m: {"jsonrpc": "2.0", "id": m["id"], "error": {"code": 1, "message": "a\0b\ud800c\u202ed"}},
    "deep": lambda m: raw(m, nested(DEEP)),
    "big-line": lambda m: text(m, "x" * BIG),
    "endless": lambda m: ("x" * 100_000 for _ in iter(int, 1)),
    "drip": lambda m: (time.sleep(0.2) or " " for _ in range(3000)),
    "silent": lambda m: (time.sleep(1) or "" for _ in range(600)),
    "pings": lambda m: (json.dumps(ping(number)) + "\n" for number in itertools.count()),
    "half": lambda m: json.dumps(honest(m))[:20],
    "not-utf8": lambda m: b'{"jsonrpc": "\xff\xfe"}',
    # Lists
    "many-tools": lambda m: tools(m, *({"name": f"tool-{number}"} for number in range(3000))),
    "unicode-names": lambda m: tools(
        m, *({"name": name} for name in ("e\u0301cho", "\u202eevil", "a\0b", "\ud800", "x" * 300, "../../x", "Ⅷ", "é"))
    ),
    "no-names": lambda m: tools(m, {"name": None}, {"name": 5}, {"name": ["a"]}),
    "schema-deep": lambda m: raw(m, json.dumps({"tools": [TOOL]}).replace('{"type": "object"}', nested(500))),
    "schema-loop": lambda m: tools(m, {"inputSchema": {"$ref": "#"}}),
    "schema-refs": lambda m: tools(m, {"inputSchema": {"type": "object", "$defs": bomb(), "$ref": "#/$defs/d20"}}),
    "schema-pattern": lambda m: tools(
        m, {"inputSchema": {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$(["}}}}
    ),
    "schema-remote": lambda m: tools(m, {"inputSchema": {"$ref": "http://127.0.0.1:9/schema.json"}}),
    "schema-wrong": lambda m: tools(m, {"inputSchema": {"type": "banana", "required": 5, "properties": []}}),
    "annotations-wrong": lambda m: tools(m, {"annotations": {"readOnlyHint": "yes", "title": "\0" * 1000}}),
    "pages": lambda m: tools(m, {"name": f"t{time.monotonic_ns()}"}, nextCursor=str(time.monotonic_ns())),
    "same-page": lambda m: tools(m, {}, nextCursor="a"),
    # Results
    "nul-text": lambda m: text(m, "a\0b"),
    "surrogate": lambda m: text(m, "a\ud800b"),
    "structured-nul": lambda m: reply(m, {"content": [], "structuredContent": {"a\0": "\0", "b": "\udfff"}}),
    "huge-number": lambda m: raw(m, '{"content": [], "structuredContent": {"n": 1' + "0" * 10_000 + "}}"),
    "not-finite": lambda m: raw(m, '{"content": [], "structuredContent": {"n": 1e999, "m": NaN}}'),
    "structured-deep": lambda m: raw(m, '{"content": [], "structuredContent": ' + nested(500) + "}"),
    "bad-image": lambda m: reply(m, {"content": [{"type": "image", "data": "?" * 1000, "mimeType": "\0/\0"}]}),
    "unknown-content": lambda m: reply(m, {"content": [{"type": "hologram", "text": 1}]}),
    "resource": lambda m: reply(
        m, {"content": [{"type": "resource_link", "uri": "file:///etc/passwd", "name": "\0", "size": -1}]}
    ),
    "many-parts": lambda m: reply(m, {"content": [{"type": "text", "text": "x"}] * 50_000}),
    "is-error": lambda m: reply(m, {"isError": True, "content": []}),
}


def bomb():
    """Return schemas, each of which names the one before twice."""
    schemas = {"d0": {"type": "string"}}
    for number in range(1, 21):
        before = {"$ref": f"#/$defs/d{number - 1}"}
        schemas[f"d{number}"] = {"type": "object", "properties": {"a": before, "b": before}}
    return schemas


CHOSEN = "chosen"
METHODS = {"init": "initialize", "list": "tools/list", "call": "tools/call"}


def choice_of(message):
    """Return what the arguments of a call choose."""
    return (message.get("params") or {}).get("arguments") or {}


def pieces_of(attack, message):
    """Return the pieces of the answer to a message, as bytes."""
    if attack == CHOSEN:
        chosen = choice_of(message).get("attack")
        attack = f"call-{chosen}" if chosen else "call-honest"
    phase, _, name = attack.partition("-")
    answer = ATTACKS[name](message) if message["method"] == METHODS[phase] else honest(message)
    answer = json.dumps(answer) if isinstance(answer, dict) else answer
    answer = [answer] if isinstance(answer, str | bytes) else answer
    return (piece if isinstance(piece, bytes) else piece.encode("utf-8", "surrogatepass") for piece in answer)


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "method" not in message:  # the answer to a request of an attack
            self.send_response(202)
            self.end_headers()
            return
        self.server.methods.append(message["method"])
        choice = choice_of(message) if self.path == f"/{CHOSEN}" else {}
        time.sleep(choice.get("pause", 0))
        status = choice.get("status", 200 if "id" in message else 202)
        self.send_response(status)
        is_stream = self.path.endswith("-pings") and message["method"] == METHODS[self.path[1:].partition("-")[0]]
        self.send_header("Content-Type", "text/event-stream" if is_stream else "application/json")
        for name, value in (choice.get("headers") or {}).items():
            self.send_header(name, value)
        if self.path == f"/{CHOSEN}" and message["method"] == "initialize":
            self.send_header("Mcp-Session-Id", f"session-{len(self.server.methods)}")
        self.end_headers()
        if status != 200:
            return
        try:
            for piece in pieces_of(self.path.strip("/"), message):
                self.wfile.write(b"data: " + piece + b"\n" if is_stream else piece)
                self.wfile.flush()
        except OSError:
            pass

    def do_GET(self):
        self.send_response(405)
        self.end_headers()

    do_DELETE = do_GET

    def log_message(self, *args):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 200  # a test connects for all attacks at once

    def __init__(self, *args):
        super().__init__(*args)
        self.methods = []  # of all messages


def serve_over_http(host):
    return Server((host, 0), Handler)


if __name__ == "__main__" and sys.argv[1] == "http":
    Server((sys.argv[2], int(sys.argv[3])), Handler).serve_forever()
elif __name__ == "__main__":
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "id" in message:
            for piece in pieces_of(sys.argv[1], message):
                sys.stdout.buffer.write(piece)
                sys.stdout.buffer.flush()
            sys.stdout.buffer.write(b"\n")
            sys.stdout.buffer.flush()
