"""The command that runs an experiment in CI: its exit codes and reports."""

import io
import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from xml.etree import ElementTree

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection, connections
from django.utils import timezone

from agents_app.editing.change_context import change
from agents_app.models import Agent
from agents_app.registry import Entry, Kind, registry
from evals_app.datasets.changes import add_items
from evals_app.experiments.running import foreground
from evals_app.experiments.running.item_loop import ItemLoop
from evals_app.models import Dataset, Experiment
from evals_app.reports.files import junit_report
from jobs_app.models import JobQuerySet
from runs_app.engine.engine import Engine
from runs_app.models import AgentRun
from runs_app.providers import cached_providers
from tests.evals_app.experiment_runs import make_dataset
from tests.factories import AgentFactory, UserFactory
from tests.runs import DEMO

pytestmark = pytest.mark.usefixtures("idle_engine")

SAID = "I am the demo model 'echo'. You said: One"


@pytest.fixture
def agent():
    UserFactory(is_superuser=True)
    make_dataset({"input": "One", "ground_truth": SAID}, scorer_keys=["exact"])
    return AgentFactory(id="clerk", model=DEMO, instructions="")


def run(*options):
    return execute("run_experiment", "support", "--agent", "clerk", *options)


def execute(*command):
    """Return the exit code, and what the command printed."""
    output, errors = io.StringIO(), io.StringIO()
    try:
        call_command(*command, stdout=output, stderr=errors)
    except SystemExit as end:
        return end.code, output.getvalue() + errors.getvalue()
    except CommandError as error:
        return error.returncode, str(error)
    return 0, output.getvalue()


def test_it_passes_and_writes_reports(agent, tmp_path):
    code, text = run("--fail-under", "exact=0.8", "--json", str(tmp_path / "a"), "--junit", str(tmp_path / "b"))

    assert (code, text) == (0, "clerk v1: 1 answered, 0 failed.\nexact: 1.000\n")
    report = json.loads((tmp_path / "a").read_text())
    assert (report["missed"], report["results"][0]["output"]) == ([], SAID)
    suite = ElementTree.parse(tmp_path / "b").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("1", "0", "0")


def test_a_missed_bar_exits_with_1(agent, tmp_path):
    code, text = run("--scorers", "cites-source", "--fail-under", "cites-source=0.5", "--junit", str(tmp_path / "b"))

    assert code == 1
    assert "'cites-source' scored 0.000. The bar is 0.5." in text
    assert ElementTree.parse(tmp_path / "b").getroot().get("failures") == "1"


def test_a_junit_report_leaves_out_what_xml_does_not_allow(agent):
    assert run("--scorers", "exact")[0] == 0
    experiment = Experiment.objects.get()
    experiment.name = "Nightly\ufffe\x0b"
    experiment.results.update(error={"message": "Odd \ufffe\uffff\x1b end 🙂\t\ufffd"})

    suite = ElementTree.fromstring(junit_report(experiment, ["Too\uffff low"]))

    assert suite.get("name") == "Nightly"
    assert suite.find("testcase/error").get("message") == "Odd  end 🙂\t\ufffd"
    assert suite.find("testcase/failure").get("message") == "Too low"


def test_a_version_that_is_worse_than_live_exits_with_1(agent):
    with change(publish=False):
        agent.edit({"instructions": "Be brief."})

    code, text = run("--version", "draft", "--not-worse-than", "live", "--margin", "0.02")

    assert code == 1
    assert "'exact' may be worse by 1.000 than the baseline." in text


@pytest.mark.parametrize(
    "options",
    [
        ["--agent-version", "99"],
        ["--scorers", "missing"],
        ["--fail-under", "exact"],
        ["--fail-under", "missing=1"],
        ["--user", "nobody"],
        ["--max-cost", "-1"],
        ["--fail-under", "exact=nan"],
        ["--margin", "nan"],
        ["--json", "missing/a.json"],
        ["--junit", "/"],
    ],
)
def test_wrong_use_exits_with_2(agent, options):
    assert run(*options)[0] == 2
    assert not Experiment.objects.exists()


@pytest.mark.parametrize("thread", ["per-item", "exam"])
def test_it_gives_a_thread_to_an_agent_whose_memory_needs_one(agent, thread):
    with change(publish=True):
        agent.edit({"memory": {"options": {}, "observationalMemory": True}})

    assert run()[0] == 4  # each item failed to run
    assert run("--thread", thread, "--resource", "ci-user", "--fail-under", "exact=1")[0] == 0

    assert Experiment.objects.latest("created_at").memory == {"thread": thread, "resource": "ci-user"}


def test_an_unusable_thread_is_wrong_use(agent):
    code, text = run("--thread", "a/b")

    assert (code, "--thread: " in text) == (2, True)


@pytest.mark.parametrize("option", ["--repeats", "--concurrency", "--seed", "--max-cost"])
def test_an_error_names_its_option(agent, option):
    code, text = run(option, "-1")

    assert (code, text.partition(":")[0]) == (2, option)


def test_a_cancelled_experiment_exits_with_3(agent):
    def cancel(answer):
        Experiment.objects.update(cancel_requested_at=timezone.now())
        return 1.0

    add_items(Dataset.objects.get(), [{"input": str(number)} for number in range(4)])
    registry.add(Entry(Kind.SCORER, "cancels", "Cancels", target=cancel))
    try:
        code, text = run("--scorers", "cancels", "--concurrency", "1")
    finally:
        registry.remove(Kind.SCORER, "cancels")

    assert (code, "Cancelled." in text) == (3, True)


def priced_model(name, settings):
    """Return a model whose answers cost what those of a real one do."""
    from pydantic_ai.models.function import FunctionModel

    class Priced(FunctionModel):
        system = "openai"

    async def answer(messages, info):
        yield SAID

    return Priced(stream_function=answer, model_name="gpt-4o")


def test_a_spent_budget_exits_with_3(agent, tmp_path):
    registry.add(Entry(Kind.MODEL_PROVIDER, "priced", "Priced", target=priced_model))
    cached_providers.invalidate()
    AgentFactory(id="dear", model={"provider": "priced", "name": "gpt-4o"}, instructions="")
    add_items(Dataset.objects.get(), [{"input": str(number)} for number in range(4)])
    options = ["--concurrency", "1", "--max-cost", "0.00001", "--fail-under", "exact=0.1"]

    code, text = run("--agent", "dear", *options, "--junit", str(tmp_path / "b"))

    experiment = Experiment.objects.get()
    assert (code, "The budget of $1e-05 is spent." in text) == (3, True)
    assert experiment.done_count == experiment.results.count() == 1
    assert experiment.summary["cost"] > 0.00001
    assert ElementTree.parse(tmp_path / "b").getroot().get("tests") == "1"


def test_workflows_and_scorers_are_run_without_a_worker(agent, tmp_path):
    ticket = {
        "input": {"subject": "Hi", "body": "My delivery"},
        "ground_truth": {"queue": "delivery", "priority": "normal"},
    }
    make_dataset(ticket, pk="tickets", scorer_keys=["exact"])
    make_dataset({"input": {"output": "No source"}, "ground_truth": 0}, pk="answers", scorer_keys=["agreement"])

    codes = [
        execute("run_experiment", "tickets", "--workflow", "triage-ticket", "--fail-under", "exact=1"),
        execute("run_experiment", "answers", "--scorer", "cites-source", "--fail-under", "agreement=1"),
        execute("run_experiment", "answers", "--scorer", "exact", "--fail-under", "agreement=2"),
    ]

    assert [code for code, _ in codes] == [0, 0, 1]
    assert codes[0][1] == "triage-ticket: 1 answered, 0 failed.\nexact: 1.000\n"


def test_items_that_fail_exit_with_4(agent):
    add_items(Dataset.objects.get(), [{"input": "Two", "scorer_keys": ["missing"]}])

    assert run()[0] == 4


def test_a_scorer_that_fails_for_an_answer_misses_its_bar(agent):
    def picky(answer):
        if "Two" in answer:
            raise ValueError("No")
        return 1.0

    registry.add(Entry(Kind.SCORER, "picky", "Picky", target=picky))
    add_items(Dataset.objects.get(), [{"input": "Two"}])

    code, text = run("--scorers", "picky", "--fail-under", "picky=0.5")

    assert (code, "'picky' failed for 1 answer," in text) == (1, True)


# --- Experiments that do not end as they should


def test_a_baseline_that_spent_its_budget_is_no_pass(agent):
    """The agent of the baseline is dear, the draft costs nothing."""
    registry.add(Entry(Kind.MODEL_PROVIDER, "priced", "Priced", target=priced_model))
    cached_providers.invalidate()
    AgentFactory(id="dear", model={"provider": "priced", "name": "gpt-4o"}, instructions="")
    with change(publish=False):
        Agent.objects.get(pk="dear").edit({"model": DEMO})
    add_items(Dataset.objects.get(), [{"input": str(number)} for number in range(4)])
    options = ["--version", "draft", "--not-worse-than", "live", "--concurrency", "1", "--max-cost", "0.00001"]

    code, text = run("--agent", "dear", *options)

    assert [*Experiment.objects.order_by("pk").values_list("status", flat=True)] == ["completed", "cancelled"]
    assert (code, "The budget of $1e-05 is spent." in text) == (3, True)
    assert "Run the command again, with a larger --max-cost" in text


def test_a_scorer_without_a_score_in_both_versions_is_no_pass(agent):
    with change(publish=False):
        agent.edit({"model": {"provider": "demo", "name": "fail"}})
    code, text = run("--version", "live", "--not-worse-than", "draft")

    assert (code, "'exact' cannot be compared with the baseline" in text) == (1, True)


def test_a_scorer_that_fails_in_both_versions_is_no_pass(agent):
    def broken(answer):
        raise ValueError("No")

    registry.add(Entry(Kind.SCORER, "broken", "Broken", target=broken))

    code, text = run("--scorers", "exact,broken", "--not-worse-than", "live")

    assert (code, "'broken' cannot be compared with the baseline" in text) == (1, True)


def test_a_comparison_without_any_scorer_is_no_pass(agent):
    Dataset.objects.update(scorer_keys=[])

    code, text = run("--not-worse-than", "live")

    assert (code, "nothing can be compared with the baseline." in text) == (1, True)


@pytest.fixture
def heeded_interruptions():
    """Heed SIGINT as in a terminal. Shells start programs in the background so that they ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_cancels_the_experiment(agent, number, heeded_interruptions):
    # One, although two answers are scored at once: a second one ends the experiment without a wait for its runs.
    signals = iter([number])

    def interrupt(answer):
        for next_signal in signals:
            os.kill(os.getpid(), next_signal)
        time.sleep(1)
        return 1.0

    add_items(Dataset.objects.get(), [{"input": str(number)} for number in range(4)])
    registry.add(Entry(Kind.SCORER, "interrupts", "Interrupts", target=interrupt))

    code, text = run("--scorers", "interrupts", "--concurrency", "2")

    experiment = Experiment.objects.get()
    assert (code, experiment.status, "Cancelled." in text) == (3, "cancelled", True)
    assert not experiment.results.filter(state="running").exists()
    assert not AgentRun.objects.unfinished().exists()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_an_interruption_while_runs_are_handed_to_the_engine_leaves_none_behind(
    agent, heeded_interruptions, monkeypatch
):
    signals, submit = iter([signal.SIGINT]), Engine.submit_claimed

    def submit_interrupted(engine, agent_run, *arguments, **options):
        for number in signals:
            os.kill(os.getpid(), number)
        submit(engine, agent_run, *arguments, **options)

    monkeypatch.setattr(Engine, "submit_claimed", submit_interrupted)
    add_items(Dataset.objects.get(), [{"input": str(number)} for number in range(4)])

    assert run("--concurrency", "2")[0] == 3
    assert Experiment.objects.get().status == "cancelled"
    assert not AgentRun.objects.unfinished().exists()


@pytest.mark.sqlite_only
def test_an_interruption_inside_of_a_query_is_not_lost(agent, heeded_interruptions, monkeypatch):
    """SQLite replaces an error of the Python functions that it calls."""

    def be_interrupted(item_loop, seconds):
        connection.ensure_connection()
        connection.connection.create_function("interrupt", 0, lambda: os.kill(os.getpid(), signal.SIGINT) or sum([]))
        connection.cursor().execute("SELECT interrupt()")

    monkeypatch.setattr(ItemLoop, "work", be_interrupted)

    assert run()[0] == 3
    assert Experiment.objects.get().status == "cancelled"


def test_an_interrupted_query_does_not_prevent_the_cancellation(agent, monkeypatch):
    add_items(Dataset.objects.get(), [{"input": str(number)} for number in range(4)])

    def be_interrupted(item_loop, seconds):
        query = connection.cursor()
        query.execute("SELECT id FROM evals_app_datasetitem")
        assert query.fetchone()
        run_in_thread(lambda: Dataset.objects.update(description="Written by another process"))
        raise KeyboardInterrupt  # whose traceback keeps the query open

    monkeypatch.setattr(ItemLoop, "work", be_interrupted)

    code, text = run()

    assert (code, Experiment.objects.get().status, "Cancelled." in text) == (3, "cancelled", True)


def test_an_interruption_of_its_own_rollback_cancels_the_experiment(agent, monkeypatch):
    def be_interrupted_twice(item_loop, seconds):
        try:
            raise KeyboardInterrupt
        finally:  # the rollback, whose error replaces the interruption
            raise OperationalError("sending query failed: another command is already in progress")

    monkeypatch.setattr(ItemLoop, "work", be_interrupted_twice)
    monkeypatch.setattr(foreground, "MAX_OUTAGE", -1.0)

    code, text = run()

    assert (code, Experiment.objects.get().status, "Cancelled." in text) == (3, "cancelled", True)


def run_in_thread(function):
    with ThreadPoolExecutor(1) as pool:
        pool.submit(function).result()
        pool.submit(connections.close_all).result()


def test_a_command_that_is_killed_at_its_start_leaves_no_experiment(agent, monkeypatch):
    """Without its job, no worker would ever end it."""

    def be_killed(*args):
        raise SystemExit(137)

    monkeypatch.setattr(JobQuerySet, "create_claimed", be_killed)

    assert (run()[0], Experiment.objects.count()) == (137, 0)


def test_an_unexpected_error_is_not_a_missed_bar(agent, settings):
    settings.EXPERIMENT_RUNS = None

    code, text = run()

    assert (code, Experiment.objects.get().status) == (4, "failed")
    assert "unexpected error (TypeError)" in text


def test_an_outage_that_does_not_end_is_not_a_missed_bar(agent, monkeypatch):
    def fail(item_loop, **options):
        raise OperationalError("gone")

    monkeypatch.setattr(ItemLoop, "collect", fail)
    monkeypatch.setattr(foreground, "MAX_OUTAGE", -1.0)

    code, text = run()

    assert (code, "did not respond for too long" in text) == (4, True)
