"""Experiments with the Python client and the pytest plugin, and the example for GitHub Actions."""

import asyncio
import os
import re
import shlex
import subprocess
import sys
import tomllib
import uuid
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
import yaml
from agentcms_client import (
    ApiError,
    AsyncClient,
    BarMissed,
    Call,
    Client,
    ExperimentFailed,
    ItemsFailed,
    Outcome,
    experiments,
    pytest_plugin,
)
from agentcms_client.command import build_parser, exit_code, run_options
from agentcms_client.experiments import POLL_SECONDS, Request, run_steps, wait_steps
from agentcms_client.outcomes import worse_scorers
from django.core.management.base import BaseCommand

from agentcms.settings import BASE_DIR
from evals_app.management.commands.run_experiment import Command, parse_bar, request_body
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


def test_a_scorer_that_fails_for_an_answer_misses_its_bar():
    scores = [{"scorerId": "picky", "score": 1.0, "error": None}, {"scorerId": "picky", "score": None, "error": "No"}]
    outcome = Outcome({"status": "completed"}, [{"error": None, "scores": [score]} for score in scores])

    assert outcome.missed({"picky": 0.5}) == ["'picky' failed for 1 answer, so its mean is not that of all."]


def test_a_mean_that_equals_its_bar_but_for_the_arithmetic_reaches_it():
    """The mean of 0.7, 0.8 and 0.9 is a little less than 0.8 in binary, and so is 0.7 less 0.8 than -0.1."""
    results = [{"error": None, "scores": [{"scorerId": "exact", "score": score}]} for score in (0.7, 0.8, 0.9)]
    outcome = Outcome({"status": "completed"}, results)
    statistics = {"scorers": {"exact": {"low": None, "high": None, "difference": 0.7 - 0.8}}}

    assert outcome.mean("exact") == 0.8
    assert outcome.missed({"exact": 0.8}) == []
    assert outcome.missed({"exact": 0.80004}) == ["'exact' scored 0.800. The bar is 0.80004."]
    assert worse_scorers(statistics, margin=0.1) == []
    assert worse_scorers(statistics, margin=0.0999) == [
        "'exact' may be worse by 0.100 than the baseline. The margin is 0.0999."
    ]


def test_of_a_judge_that_is_better_the_lower_it_scores_high_scores_are_bad():
    def result(question, toxicity, exact):
        scores = [{"scorerId": "toxicity", "score": toxicity}, {"scorerId": "exact", "score": exact}]
        return {"error": None, "scores": scores, "input": question, "output": "", "itemId": question}

    summary = {"scorers": {"toxicity": {"lowerIsBetter": True}, "exact": {"lowerIsBetter": False}}}
    results = [result("Kind", 0.0, 0.5), result("Rude", 0.9, 1.0), result("Curt", 0.3, 0.0)]
    outcome = Outcome({"status": "completed", "summary": summary}, results)

    assert outcome.missed({"toxicity": 0.4, "exact": 0.5}) == []
    assert outcome.missed({"toxicity": 0.1}) == ["'toxicity' scored 0.400. The bar is at most 0.1."]
    assert [line.split(" | ")[1][:4] for line in outcome.worst(3, "toxicity")] == ["Rude", "Curt", "Kind"]
    assert [line.split(" | ")[1][:4] for line in outcome.worst(3, "exact")] == ["Curt", "Kind", "Rude"]
    assert [line.split(" | ")[1][:4] for line in outcome.worst(3)] == ["Curt", "Rude", "Kind"]


def test_a_baseline_that_stops_hides_no_missed_bar():
    def run(**options):
        steps = run_steps(Request("support", "clerk", not_worse_than="live", **options))
        result = {"error": None, "scores": [{"scorerId": "exact", "score": 0.5}], "input": "One", "output": "Two"}
        steps.send(None)
        for metadata in ({}, {"cancelled": True}):
            steps.send({"id": "1", "datasetId": "support", "status": "completed", "metadata": metadata})
            steps.send({"results": [result], "pagination": {"hasMore": False}})

    with pytest.raises(BarMissed, match="The worst items"):
        run(fail_under={"exact": 0.8})
    with pytest.raises(ExperimentFailed, match="The baseline did not run to its end") as raised:
        run(fail_under={"exact": 0.5})
    assert (raised.value.outcome.status, exit_code(raised.value)) == ("completed", 3)


@pytest.mark.parametrize("error", [httpx.ConnectError("refused"), ApiError(503, {})])
def test_an_outage_of_the_server_is_waited_for(error):
    started = {"id": "e", "datasetId": "d", "status": "running"}
    steps = wait_steps(started, Request("d", "clerk"))

    assert next(steps) == POLL_SECONDS
    assert next(steps).path == "/api/datasets/d/experiments/e"
    assert steps.throw(error) == POLL_SECONDS
    next(steps)
    with pytest.raises(StopIteration) as end:
        steps.send({**started, "status": "completed"})

    assert end.value.value["status"] == "completed"


@pytest.mark.parametrize(("error", "outage"), [(ApiError(404, {}), 300), (ApiError(503, {}), -1)])
def test_an_experiment_that_is_gone_and_a_long_outage_raise(monkeypatch, error, outage):
    monkeypatch.setattr(experiments, "MAX_OUTAGE", outage)
    steps = wait_steps({"id": "e", "datasetId": "d", "status": "running"}, Request("d", "clerk"))
    next(steps)
    next(steps)

    with pytest.raises(ApiError):
        steps.throw(error)


def test_items_that_fail_raise_unless_they_are_allowed(served, exam):
    with Client(served.base_url, served.keys["python"]) as cms:
        key = cms.send(Call("POST", "/api/datasets", body={"name": f"Exam {uuid.uuid4().hex[:8]}"}))["id"]
        items = [{"input": "One"}, {"input": "Two", "scorerIds": ["missing"]}]
        cms.send(Call("POST", f"/api/datasets/{key}/items/batch", body={"items": items}))

        with pytest.raises(ItemsFailed, match=r"1 item failed to run.\nfailed: Scorer .*missing.* \| Two") as raised:
            cms.experiments.run(key, exam)
        allowed = cms.experiments.run(key, exam, max_failed=1)

    assert [len(outcome.failed) for outcome in (raised.value.outcome, allowed)] == [1, 1]


def test_a_spent_budget_raises_with_the_results_so_far(served, exam):
    with (
        Client(served.base_url, served.keys["python"]) as cms,
        pytest.raises(ExperimentFailed, match=r"The budget of 1 token is spent\.") as raised,
    ):
        cms.experiments.run(exam, exam, budget={"maxTokens": 1}, maxConcurrency=1)

    assert (raised.value.outcome.status, len(raised.value.outcome.results)) == ("cancelled", 1)


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


def test_an_experiment_that_misses_its_bar_runs_once_for_all_tests_of_items(served, exam, tmp_path):
    options = f'agent="{exam}", dataset="{exam}", scorers=["exact"], per_item=True, fail_under={{"exact": 1}}'
    text = f"import pytest\n\n@pytest.mark.agent_eval({options})\ndef test_it(experiment):\n    pass\n"
    path = f"/api/datasets/{exam}/experiments"

    with Client(served.base_url, served.keys["python"]) as cms:
        before = cms.send(Call("GET", path))["pagination"]["total"]
        done = run_pytest(served, tmp_path, text)
        after = cms.send(Call("GET", path))["pagination"]["total"]

    assert "2 errors" in done.stdout
    assert after - before == 1


def test_the_plugin_says_what_a_mark_lacks(served, tmp_path):
    text = "import pytest\n\n@pytest.mark.agent_eval\ndef test_it(experiment):\n    pass\n"

    done = run_pytest(served, tmp_path, text)

    assert done.returncode != 0
    assert "Write @pytest.mark.agent_eval(agent=" in done.stdout + done.stderr


def test_the_plugin_does_not_pass_over_a_dataset_without_items(monkeypatch):
    mark = SimpleNamespace(args=(), kwargs={"agent": "clerk", "dataset": "empty", "per_item": True})
    definition = SimpleNamespace(get_closest_marker={pytest_plugin.MARK: mark}.get)
    monkeypatch.setattr(pytest_plugin, "find_items", lambda dataset_id: [])

    with pytest.raises(pytest.UsageError, match="'empty' has no items"):
        pytest_plugin.pytest_generate_tests(SimpleNamespace(definition=definition, fixturenames=["experiment"]))


def test_the_plugin_reads_the_environment_like_the_command(monkeypatch):
    monkeypatch.setenv("AGENTCMS_URL", "http://cms\n")
    monkeypatch.setenv("AGENTCMS_API_KEY", "key\n")

    with pytest_plugin.connect() as cms:
        assert (str(cms.http.base_url), cms.http.headers["Authorization"]) == ("http://cms", "Bearer key")

    monkeypatch.setenv("AGENTCMS_API_KEY", "kéy")
    with pytest.raises(pytest.UsageError, match="Copy the key again"):
        pytest_plugin.connect()


def test_the_example_for_github_actions_uses_what_exists():
    example = yaml.safe_load((BASE_DIR / "docs/examples/github-actions.yml").read_text())
    steps = [step for job in example["jobs"].values() for step in job["steps"]]
    commands = [step["run"] for step in steps if "run" in step]
    of_client, of_server = [shlex.split(run) for run in commands if "run_experiment" in run]
    of_jobs = [{name for step in job["steps"] for name in step.get("env", {})} for job in example["jobs"].values()]
    extras = tomllib.loads((CLIENT / "pyproject.toml").read_text())["project"]["optional-dependencies"]

    options = Command().create_parser("manage.py", "run_experiment").parse_args(of_server[3:])
    same = build_parser().parse_args(of_client[3:])

    assert (options.dataset, options.fail_under, options.max_cost) == ("support-questions", ["exact=0.8"], 1.0)
    assert (same.dataset, same.fail_under, same.max_cost) == ("support-questions", [("exact", 0.8)], 1.0)
    assert of_client[:2] == ["python", "-m"]
    of_command = set(re.findall(r'"(AGENTCMS_\w+)"', (CLIENT / "agentcms_client/command.py").read_text()))
    assert of_jobs == [of_command, {"DATABASE_URL", "SECRET_KEY", "PROVIDER_KEY_SECRET"}]
    (of_pip,) = [shlex.split(run) for run in commands if run.startswith("pip install ")]
    (folder,) = [step["with"]["path"] for step in steps if "repository" in step.get("with", {})]
    path, _, extra = of_pip[2].removesuffix("]").partition("[")
    assert BASE_DIR / Path(path).relative_to(folder) == CLIENT
    assert extra in extras


def test_the_command_of_the_client_has_the_options_of_that_of_the_server():
    def options_of(parser):
        return {name for action in parser._actions for name in action.option_strings if name.startswith("--")}

    ours = options_of(Command().create_parser("manage.py", "run_experiment"))
    (commands,) = [action for action in build_parser()._actions if hasattr(action, "choices") and action.choices]
    of_client = options_of(commands.choices["run_experiment"])
    of_django = options_of(BaseCommand().create_parser("manage.py", "any"))

    assert ours - of_client - of_django == {"--agent-version", "--user"}
    assert of_client - ours == {"--timeout"}


def test_blanks_around_the_keys_of_scorers_do_not_count():
    options = ["data", "--agent", "clerk", "--scorers", "exact, polite,", "--fail-under", "exact = 0.8"]

    of_server = Command().create_parser("manage.py", "run_experiment").parse_args(options)
    of_client = run_options(build_parser().parse_args(["run_experiment", *options]))

    assert request_body(vars(of_server), "live")["scorerIds"] == of_client["scorers"] == ["exact", "polite"]
    assert dict(map(parse_bar, of_server.fail_under)) == of_client["fail_under"] == {"exact": 0.8}
