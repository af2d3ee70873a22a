"""An ACP agent that breaks the protocol: `python hostile_agent.py`. The task says how."""

import json
import os
import sys
import time

UPDATE, ASK, READ, WRITE = "session/update", "session/request_permission", "fs/read_text_file", "fs/write_text_file"
OPTION = {"optionId": "yes", "name": "Yes", "kind": "allow_once"}


def send(value):
    sys.stdout.buffer.write((value if isinstance(value, str) else json.dumps(value)).encode("utf-8", "surrogatepass"))
    sys.stdout.buffer.write(b"\n")
    sys.stdout.buffer.flush()


def update(**fields):
    send({"jsonrpc": "2.0", "method": UPDATE, "params": {"sessionId": "s", "update": fields}})


def say(text, kind="agent_message_chunk"):
    update(sessionUpdate=kind, content={"type": "text", "text": text})


def ask(method, **params):
    send({"jsonrpc": "2.0", "id": 99, "method": method, "params": {"sessionId": "s", **params}})
    return sys.stdin.readline()


def request(**call):
    return ask(ASK, toolCall={"toolCallId": "c", **call}, options=[OPTION])


ATTACKS = {
    "noise": lambda: [send(text) for text in ("no json", "[]", "null", '"x"', "{", "\ud800", "1" * 5000)],
    "wrong-ids": lambda: [
        send({"jsonrpc": "2.0", "id": number, "result": {}}) for number in (77, None, "x", -1, 1.5, [], {})
    ],
    "wrong-methods": lambda: [send({"jsonrpc": "2.0", "id": 9, "method": method}) for method in (5, [], {}, True)],
    "no-update": lambda: [
        update(sessionUpdate=kind) for kind in ("agent_message_chunk", "plan", "tool_call", "x", "")
    ],
    "odd-updates": lambda: [send({"jsonrpc": "2.0", "method": UPDATE, "params": item}) for item in (5, [], {}, None)],
    "nul": lambda: [say("a\0b\ud800c"), say("\0", "agent_thought_chunk"), plan("a\0b"), call("a\0b\udfff")],
    "odd-numbers": lambda: send(
        '{"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": {"sessionUpdate": '
        '"tool_call", "toolCallId": "c", "title": "t", "rawInput": {"a": NaN, "b": 1e999, "c": 1' + "0" * 3000 + "}}}}"
    ),
    "deep": lambda: call("t", rawInput=json.loads("[" * 400 + "]" * 400)),
    "many-updates": lambda: [plan(str(number)) for number in range(3000)],
    "no-options": lambda: ask(ASK, toolCall={"toolCallId": "c"}, options=[]),
    "odd-request": lambda: ask(ASK, toolCall=5, options="x"),
    "nul-request": lambda: request(title="a\0b\ud800", kind="edit", rawInput={"a\0": "\0"}),
    "nul-option": lambda: ask(
        ASK,
        toolCall={"toolCallId": "c", "title": "t", "locations": [{"path": "/a\0b"}]},
        options=[{**OPTION, "optionId": "a\0b"}, OPTION],
    ),
    "large-request": lambda: request(title="x" * 100_000, rawInput={"text": "x" * 1_000_000}),
    "other-files": lambda: [
        ask(READ, path=path) for path in ("/etc/passwd", "../x", "a\0b", "\ud800", "", "x" * 5000, "a/" * 3000)
    ],
    "metadata": lambda: [
        ask(method, **params, _meta={name: 5})
        for method, params in ((READ, {"path": "x"}), (WRITE, {"path": "x", "content": "x"}))
        for name in ("path", "content", "session_id", "line")
    ],
    "other-writes": lambda: [ask(WRITE, path=path, content="x") for path in ("/etc/x", "../x", "a\0b", "", "x" * 300)],
    "unknown-methods": lambda: [ask(method) for method in ("terminal/create", "x", "", "session/prompt", "_own/x")],
    "newer-updates": lambda: [update(sessionUpdate="of_a_newer_protocol") for _ in range(100)],
    "twice": lambda: send({"jsonrpc": "2.0", "id": 3, "result": {"stopReason": "end_turn"}}),
}
ENDS = {
    "closes": lambda: sys.exit(0),
    "half": lambda: [sys.stdout.write('{"jsonrpc": "2.0", "id"'), sys.exit(0)],
    "huge-line": lambda: send("x" * 5_000_000),
    "endless-line": lambda: [sys.stdout.write("x" * 100_000) for _ in iter(int, 1)],
    "endless-lines": lambda: [send("") for _ in iter(int, 1)],
    "endless-errors": lambda: [sys.stderr.write("x" * 10_000) for _ in iter(int, 1)],
    "silent": lambda: time.sleep(300),
    "odd-error": lambda: [send({"jsonrpc": "2.0", "id": 2, "error": "no"}), time.sleep(300)],
}


def plan(text):
    update(sessionUpdate="plan", entries=[{"content": text, "priority": "high", "status": "pending"}])


def call(title, **fields):
    update(sessionUpdate="tool_call", toolCallId="c", title=title, **fields)


RESULTS = {
    "initialize": {"protocolVersion": 1, "agentCapabilities": {}},
    "session/new": {"sessionId": json.loads(os.environ.get("SESSION_ID", '"s"'))},
    "session/prompt": {"stopReason": "end_turn"},
}


def main():
    while line := sys.stdin.readline():
        message = json.loads(line)
        if message.get("method") == "session/prompt":
            {**ATTACKS, **ENDS}[message["params"]["prompt"][0]["text"]]()
            say("the end")
        if "id" in message and "method" in message:
            send({"jsonrpc": "2.0", "id": message["id"], "result": RESULTS[message["method"]]})


if __name__ == "__main__":
    main()
