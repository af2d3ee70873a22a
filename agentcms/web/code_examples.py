"""Examples of API requests in curl, Python and JavaScript."""

from __future__ import annotations

import json
import re
import shlex
from typing import NamedTuple

from agentcms.wire.json_types import JSONValue

FILE_NAME = "agents.jsonl"


class ExampleRequest(NamedTuple):
    """A request of the API. `body` is a JSON value or None; with `sends_file` the body is a file of JSON Lines."""

    method: str  # in upper case
    url: str
    body: JSONValue = None
    sends_file: bool = False
    response: str = "json"  # "json", "events" or "lines"


class CodeExample(NamedTuple):
    """A request in one language."""

    language: str
    label: str
    code: str


def code_examples(request: ExampleRequest) -> list[CodeExample]:
    """Return a request in curl, Python and JavaScript. The API key is in the environment variable KEY."""
    return [
        CodeExample("curl", "curl", curl_command(request)),
        CodeExample("python", "Python", python_code(request)),
        CodeExample("javascript", "JavaScript", javascript_code(request)),
    ]


def curl_command(request: ExampleRequest) -> str:
    """Return a request as a command of curl."""
    method = "" if request.method == "GET" else f" -X {request.method}"
    lines = [f"curl{' -N' if request.response == 'events' else ''}{method} {shlex.quote(request.url)}"]
    lines.append('-H "Authorization: Bearer $KEY"')
    if request.sends_file:
        lines += ['-H "Content-Type: application/x-ndjson"', f"--data-binary @{FILE_NAME}"]
    elif request.body is not None:
        text = json.dumps(request.body, indent=2, ensure_ascii=False)
        lines += ['-H "Content-Type: application/json"', f"-d {shlex.quote(text)}"]
    return " \\\n  ".join(lines)


# --- Python


def python_code(request: ExampleRequest) -> str:
    """Return a request as Python code that uses httpx."""
    headers = {"Authorization": "Bearer KEY"}
    if request.sends_file:
        headers["Content-Type"] = "application/x-ndjson"
    streams = request.response == "events"
    # `httpx.delete` takes no body.
    names_method = streams or (request.method == "DELETE" and request.body is not None)
    arguments = [json.dumps(request.method)] if names_method else []
    arguments += [json.dumps(request.url), f"headers={python_value(headers)}"]
    if request.sends_file:
        arguments.append(f'content=open("{FILE_NAME}", "rb")')
    elif request.body is not None:
        arguments.append(f"json={python_value(request.body)}")
    arguments.append("timeout=300")
    function = "httpx.stream" if streams else f"httpx.{'request' if names_method else request.method.lower()}"
    call = f"{function}(\n{''.join(f'    {argument},{chr(10)}' for argument in arguments)})"
    call = call.replace('"Bearer KEY"', "f\"Bearer {os.environ['KEY']}\"")
    if streams:
        reading = "    response.raise_for_status()\n    for line in response.iter_lines():\n        print(line)"
        return f"import os\n\nimport httpx\n\nwith {call} as response:\n{reading}"
    result = "response.text" if request.response == "lines" else "response.json()"
    return f"import os\n\nimport httpx\n\nresponse = {call}\nresponse.raise_for_status()\nprint({result})"


def python_value(value: object, indent: int = 4) -> str:
    """Return a JSON value as Python code, nested at an indentation of `indent` spaces."""
    inner, outer = " " * (indent + 4), " " * indent
    match value:
        case dict() if value:
            rows = [f"{json.dumps(key)}: {python_value(item, indent + 4)}" for key, item in value.items()]
        case list() if value:
            rows = [python_value(item, indent + 4) for item in value]
        case bool() | None:
            return str(value)
        case _:
            return json.dumps(value, ensure_ascii=False)
    opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
    if len(one_line := f"{opening}{', '.join(rows)}{closing}") <= 60 and "\n" not in one_line:
        return one_line
    return f"{opening}\n{''.join(f'{inner}{row},{chr(10)}' for row in rows)}{outer}{closing}"


# --- JavaScript


def javascript_code(request: ExampleRequest) -> str:
    """Return a request as JavaScript that uses fetch, for Node.js."""
    options = [*([] if request.method == "GET" else [f'method: "{request.method}"'])]
    headers = ["Authorization: `Bearer ${process.env.KEY}`"]
    if request.sends_file:
        headers.append('"Content-Type": "application/x-ndjson"')
        options.append(f'body: readFileSync("{FILE_NAME}")')
    elif request.body is not None:
        headers.append('"Content-Type": "application/json"')
        options.append(f"body: JSON.stringify({javascript_value(request.body)})")
    options.append(f"headers: {{ {', '.join(headers)} }}")
    importing = 'import { readFileSync } from "node:fs";\n\n' if request.sends_file else ""
    indented = "".join(f"  {option},\n" for option in options)
    call = f"{importing}const response = await fetch({json.dumps(request.url)}, {{\n{indented}}});"
    return f"{call}\nif (!response.ok) throw new Error(await response.text());\n{javascript_reading(request)}"


def javascript_reading(request: ExampleRequest) -> str:
    if request.response == "events":
        return "for await (const text of response.body.pipeThrough(new TextDecoderStream())) console.log(text);"
    return f"console.log(await response.{'text' if request.response == 'lines' else 'json'}());"


def javascript_value(value: object) -> str:
    """Return a JSON value as JavaScript, two levels deep in a call."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    text = re.sub(r'^(\s*)"__proto__":', r'\1["__proto__"]:', text, flags=re.MULTILINE)  # sets the prototype otherwise
    return re.sub(r'^(\s*)"([A-Za-z_]\w*)":', r"\1\2:", text, flags=re.MULTILINE | re.ASCII).replace("\n", "\n  ")
