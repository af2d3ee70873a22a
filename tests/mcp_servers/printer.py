"""A small MCP server for tests over its standard input and output: `python printer.py`.

It has tools of `office.py` that a program needs, and starts in a tenth of its time, because it imports no library.
"""

import base64
import json
import os
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path
from urllib.request import urlopen

VERSION = "2025-06-18"
lock = threading.Lock()
waits = {"waiting": 0, "cancelled": 0}
cancelled: dict[object, threading.Event] = {}  # of calls in progress, by the ID of their request


class Content(list):
    """The parts of a result that is not a value."""


class CallCancelled(Exception):
    """A call that the client no longer waits for."""


def wait(request_id, seconds):
    waits["waiting"] += 1
    try:
        if cancelled[request_id].wait(seconds):
            waits["cancelled"] += 1
            raise CallCancelled
    finally:
        waits["waiting"] -= 1
    return f"Waited {seconds} seconds."


def fail(request_id):
    raise ValueError("The printer is out of paper.")


def draw(request_id, size):
    data = base64.b64encode(b"\x89PNG" + b"\0" * size).decode()
    return Content([{"type": "image", "data": data, "mimeType": "image/png"}])


def probe(request_id, path, url):
    """Try what a hostile program would try: read a file, and connect."""
    return {"file": attempt(lambda: Path(path).read_text()), "url": attempt(lambda: urlopen(url, timeout=2).read())}


def attempt(action):
    try:
        return f"succeeded: {action()!r}"
    except OSError as error:
        return f"failed: {type(error).__name__}"


def limits(request_id):
    names = ("DATA", "NPROC", "CPU", "CORE")
    return {name: resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))[0] for name in names}


def leave_behind(request_id):
    """Start a process that ignores signals and outlives this one. Return its ID."""
    program = "import signal, time; [signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15)]; time.sleep(120)"
    return subprocess.Popen([sys.executable, "-c", program], start_new_session=True, stdin=subprocess.DEVNULL).pid


def freeze(request_id):
    """Stop this process. Another thread may take the signal, so this one could still answer before it stops."""
    os.kill(os.getpid(), signal.SIGSTOP)
    threading.Event().wait()


TOOLS = {
    "add": lambda request_id, a, b: a + b,
    "wait": wait,
    "calls": lambda request_id: waits,
    "fail": fail,
    "repeat": lambda request_id, text, times: text * times,
    "draw": draw,
    "environment": lambda request_id: sorted(os.environ),
    "probe": probe,
    "limits": limits,
    "leave_behind": leave_behind,
    "process": lambda request_id: os.getpid(),
    "freeze": freeze,
    "stop": lambda request_id: os._exit(3),
}


def list_tools():
    description = os.environ.get("ADD_DESCRIPTION", "Add two numbers.")
    numbers = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
    schemas = {"add": numbers | {"required": ["a", "b"]}}
    return [
        {
            "name": name,
            "description": description if name == "add" else "",
            "inputSchema": schemas.get(name, {"type": "object"}),
        }
        for name in TOOLS
    ]


def call_tool(request_id, name, arguments):
    if name not in TOOLS:
        return {"content": [{"type": "text", "text": f"Unknown tool: {name}"}], "isError": True}
    try:
        value = TOOLS[name](request_id, **arguments)
    except ValueError:
        return {"content": [{"type": "text", "text": f"Error executing tool {name}"}], "isError": True}
    if isinstance(value, Content):
        return {"content": value}
    if isinstance(value, str):
        return {"content": [{"type": "text", "text": value}]}
    structured = value if isinstance(value, dict) else {"result": value}
    return {"content": [{"type": "text", "text": json.dumps(value)}], "structuredContent": structured}


def answer(message):
    request_id, parameters = message["id"], message.get("params") or {}
    match message["method"]:
        case "initialize":
            info = {"name": "printer", "version": "1"}
            result = {"protocolVersion": VERSION, "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            result = {"tools": list_tools()}
        case "tools/call":
            try:
                result = call_tool(request_id, parameters["name"], parameters.get("arguments") or {})
            except CallCancelled:
                return
        case "ping":
            result = {}
        case _:
            send({"id": request_id, "error": {"code": -32601, "message": "Method not found"}})
            return
    send({"id": request_id, "result": result})


def send(message):
    with lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def main():
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for line in sys.stdin:
        message = json.loads(line)
        if message["method"] == "notifications/cancelled":
            if (event := cancelled.get(message["params"]["requestId"])) is not None:
                event.set()
        elif "id" in message:
            cancelled[message["id"]] = threading.Event()
            threading.Thread(target=answer, args=(message,), daemon=True).start()


if __name__ == "__main__":
    main()
