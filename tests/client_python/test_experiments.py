"""Experiments with the Python client and the pytest plugin, and the example for GitHub Actions."""

import asyncio
import os
import re
import shlex
import subprocess
import sys
import tomllib
import uuid

import pytest
import yaml
from agentcms_client import AsyncClient, BarMissed, Call, Client, ExperimentFailed

from agentcms.settings import BASE_DIR
from evals_app.management.commands.run_experiment import Command
from tests.served import Served

CLIENT = BASE_DIR / "clients" / "python"
ECHO = {"provider": "demo", "name": "echo"}
ANSWER = "I am the demo model 'echo'. You said: {}"


@pytest.fixture(scope="module")
def exam(served: Served):
    """Return the ID of an agent and of a dataset with a right and a wrong answer."""
    items = [
        {"externalId": "right", "input": "One", "groundTruth": ANSWER.format("One")},
        {"externalId": "wrong", "input": "Two", "groundTruth": "No"},
    ]
    with Client(served.base_url, served.keys["python"]) as cms:
        key = cms.send(Call("POST", "/api/datasets", body={"name": f"Exam {uuid.uuid4().hex[:8]}"}))["id"]
        cms.create_agent(key, name="Exam", model=ECHO, instructions="")
        cms.send(Call("POST", f"/api/datasets/{key}/items/batch", body={"items": items}))
    return key


def test_both_clients_run_experiments_and_name_what_misses_a_bar(served, exam):
    with Client(served.base_url, served.keys["python"]) as cms:
        outcome = cms.experiments.run(exam, exam, scorers=["exact"], fail_under={"exact": 0.5})
        with pytest.raises(BarMissed, match=r"The bar is 0.8.\nThe worst items:\nexact 0.0 \| Two"):
            cms.experiments.run(exam, exam, scorers=["exact"], fail_under={"exact": 0.8})
        with pytest.raises(ExperimentFailed, match="longer than 0 seconds"):
            cms.experiments.run(exam, exam, scorers=["exact"], timeout=0)

    async def run():
        async with AsyncClient(served.base_url, served.keys["python"]) as cms:
            return await cms.experiments.run(exam, exam, scorers=["exact"], repeats=2)

    repeated = asyncio.run(run())
    assert (outcome.mean("exact"), len(outcome.results), outcome.experiment["verdict"]) == (0.5, 2, "passed")
    assert (repeated.mean("exact"), len(repeated.results), repeated.failed) == (0.5, 4, [])
    assert outcome.worst(1)[0].startswith("exact 0.0 | Two -> ")


def run_pytest(served, folder, text, *options):
    plugin = tomllib.loads((CLIENT / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]["agentcms"]
    (folder / "test_exam.py").write_text(text)
    environment = {
        **os.environ,
        "PYTHONPATH": str(CLIENT),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "AGENTCMS_URL": served.base_url,
        "AGENTCMS_API_KEY": served.keys["python"],
    }
    command = [sys.executable, "-m", "pytest", "-p", plugin, "-p", "no:cacheprovider", "-q", *options]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)


def test_the_plugin_runs_the_tests_of_the_readme_and_names_the_worst_items(served, exam, tmp_path):
    (example,) = re.findall(r"```pytest\n(.*?)```", (CLIENT / "README.md").read_text(), re.S)
    text = example.replace('"clerk"', f'"{exam}"').replace('"support"', f'"{exam}"')

    done = run_pytest(served, tmp_path, text.replace("dataset=", 'scorers=["exact"], dataset='), "--strict-markers")

    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 passed" in done.stdout
    assert "2 failed" in done.stdout
    assert "test_each_answer_is_exact[wrong]" in done.stdout
    assert "test_each_answer_is_exact[right]" not in done.stdout
    assert "exact 0.0 | Two" in done.stdout


def test_the_plugin_says_what_a_mark_lacks(served, tmp_path):
    text = "import pytest\n\n@pytest.mark.agent_eval\ndef test_it(experiment):\n    pass\n"

    done = run_pytest(served, tmp_path, text)

    assert done.returncode != 0
    assert "Write @pytest.mark.agent_eval(agent=" in done.stdout + done.stderr


def test_the_example_for_github_actions_uses_what_exists():
    example = yaml.safe_load((BASE_DIR / "docs/examples/github-actions.yml").read_text())
    steps = [step for job in example["jobs"].values() for step in job["steps"]]
    commands = [step["run"] for step in steps if "run" in step]
    (command,) = [shlex.split(run) for run in commands if "run_experiment" in run]
    variables = {name for step in steps for name in step.get("env", {})}
    extras = tomllib.loads((CLIENT / "pyproject.toml").read_text())["project"]["optional-dependencies"]

    options = Command().create_parser("manage.py", "run_experiment").parse_args(command[3:])

    assert (options.dataset, options.fail_under, options.max_cost) == ("support-questions", ["exact=0.8"], 1.0)
    assert variables == set(re.findall(r'"(AGENTCMS_\w+)"', (CLIENT / "agentcms_client/pytest_plugin.py").read_text()))
    assert 'pip install "agentcms-client[pytest]"' in commands
    assert "pytest" in extras
