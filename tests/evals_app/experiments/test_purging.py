"""Purged items: what experiments stored of them is gone, and they no longer run."""

import json
from datetime import timedelta
from importlib import import_module
from io import StringIO

import pytest
from django.apps import apps
from django.core import serializers
from django.core.management import call_command
from django.utils import timezone

from agentcms.errors import Conflict
from agents_app.registry import Entry, Kind, registry
from evals_app.datasets.changes import change_item
from evals_app.datasets.from_runs import item_of_run
from evals_app.datasets.purging import purge_item
from evals_app.experiments.external import submit_result
from evals_app.experiments.running.item_loop import ItemLoop
from evals_app.models import ExperimentResult, ItemVersion
from jobs_app import runner
from memory_app.models import Forgotten, Message, Thread
from memory_app.realms import resource_digest
from runs_app.models import AgentRun
from runs_app.privacy import forgetting
from runs_app.privacy.forgetting import FORGET
from tests.api_client import Caller
from tests.evals_app.experiment_runs import make_dataset, new_experiment, run_experiment, work
from tests.factories import AgentFactory, api_key, member
from tests.runs import DEMO, LONG
from tests.runs_app.factories import RunFactory
from tests.served import wait_until

pytestmark = pytest.mark.usefixtures("idle_engine")

SECRET = "Xylophone7391"
SLOW = {"provider": "demo", "name": "echo", "delay": 0.05}


@pytest.fixture
def editor():
    return member("editor")


@pytest.fixture
def quoting(monkeypatch):
    """Register a scorer that quotes the answer in its reason, and one that quotes it in its error."""

    def fail(answer):
        raise ValueError(answer)

    functions = {"quoting": lambda answer: {"score": 1, "reason": answer}, "failing": fail}
    for key, function in functions.items():
        registry.add(Entry(Kind.SCORER, key, key, target=function))
    yield [*functions]
    for key in functions:
        registry.remove(Kind.SCORER, key)


def stored_texts():
    """Return all texts that the tables of experiments, runs and memory have, as one."""
    models = (ItemVersion, ExperimentResult, AgentRun, Thread, Message)
    return "".join(serializers.serialize("json", model.objects.all()) for model in models)


def test_no_text_of_a_purged_item_is_left(editor, quoting):
    agent = AgentFactory(model=DEMO, instructions="", memory="last-messages")
    dataset = make_dataset({"input": f"I am {SECRET}", "ground_truth": SECRET}, "Other")
    experiment = run_experiment(dataset, editor, agent, scorerIds=quoting, memory={"thread": "per-item"})
    first, other = experiment.results.order_by("item_id")
    run = RunFactory(agent=agent)
    assert SECRET in stored_texts()

    purge_item(dataset, first.item, editor)

    assert SECRET not in stored_texts()
    first.refresh_from_db()
    assert [entry["score"] for entry in first.scores] == [1, None]
    assert {*AgentRun.objects.values_list("pk", flat=True)} == {other.run_key, run.pk}


def test_no_text_of_a_submitted_result_of_a_purged_item_is_left(editor):
    dataset = make_dataset("One")
    experiment = new_experiment(dataset, editor, start=False)
    score = {"scorerId": "own", "score": 1, "reason": SECRET, "metadata": {"quote": SECRET}}
    result = submit_result(experiment, {"item_id": str(dataset.items.get().pk), "output": SECRET, "scores": [score]})
    error = {"message": f"Nothing was found for {SECRET}", "code": "EMPTY"}
    ExperimentResult.objects.update(tags=[SECRET], comment=SECRET, error=error, resource_digest="0f")

    purge_item(dataset, result.item, editor)

    assert SECRET not in stored_texts()
    result.refresh_from_db()
    assert (result.scores[0]["score"], result.error["code"], result.resource_digest) == (1, "EMPTY", "")


def test_a_purge_deletes_the_thread_that_the_items_of_an_experiment_share(editor):
    agent = AgentFactory(model=DEMO, instructions="", memory="last-messages")
    dataset = make_dataset(f"I am {SECRET}")
    run_experiment(dataset, editor, agent, memory={"thread": "shared", "resource": "ci"})

    purge_item(dataset, dataset.items.get(), editor)

    assert not Thread.objects.exists()
    assert SECRET not in stored_texts()


def test_an_item_that_is_purged_while_it_runs_leaves_no_text(editor):
    agent = AgentFactory(model=SLOW, instructions="")
    dataset = make_dataset(f"{SECRET} {LONG}")
    experiment = new_experiment(dataset, editor, agent)
    item_loop = ItemLoop(experiment, None)
    item_loop.begin()
    item_loop.start(0)
    run = AgentRun.objects.get()

    purge_item(dataset, dataset.items.get(), editor)
    wait_until(lambda: AgentRun.objects.get(pk=run.pk).is_finished, 30)
    work()

    assert SECRET not in stored_texts()
    assert not AgentRun.objects.exists()


def test_an_item_that_is_purged_while_it_runs_leaves_no_text_in_a_shared_thread(editor):
    agent = AgentFactory(model=SLOW, instructions="", memory="last-messages")
    dataset = make_dataset(f"{SECRET} {LONG}")
    experiment = new_experiment(dataset, editor, agent, memory={"thread": "shared", "resource": "ci"})
    item_loop = ItemLoop(experiment, None)
    item_loop.begin()
    item_loop.start(0)
    run = AgentRun.objects.get()

    purge_item(dataset, dataset.items.get(), editor)
    wait_until(lambda: not AgentRun.objects.unfinished().filter(pk=run.pk).exists(), 30)
    work()

    assert SECRET not in stored_texts()
    assert not Thread.objects.exists()


def test_a_program_outside_cannot_submit_a_result_of_a_purged_item(editor):
    dataset = make_dataset("One")
    experiment = new_experiment(dataset, editor, start=False)
    item = dataset.items.get()
    purge_item(dataset, item, editor)

    with pytest.raises(Conflict, match="was purged"):
        submit_result(experiment, {"item_id": str(item.pk), "input": SECRET, "output": SECRET})

    assert SECRET not in stored_texts()


def test_a_purged_item_does_not_run(editor):
    agent = AgentFactory(model=DEMO, instructions="")
    dataset = make_dataset("One", "Two")
    purge_item(dataset, dataset.items.first(), editor)

    experiment = run_experiment(dataset, editor, agent)

    assert (experiment.status, experiment.total_items, experiment.succeeded_count) == ("completed", 1, 1)
    assert "purged" not in json.dumps([result.output for result in experiment.results.all()])


def test_items_of_runs_of_a_person_are_purged_with_the_data_of_the_person(editor, quoting):
    agent = AgentFactory(model=DEMO, instructions="", memory="last-messages")
    caller = Caller(api_key(editor))
    body = {"messages": f"I am {SECRET}", "memory": {"thread": "t", "resource": "ann"}}
    run = AgentRun.objects.get(pk=caller.post(f"/api/agents/{agent.pk}/generate", body).body["runId"])
    dataset = make_dataset(item_of_run(AgentRun.objects.with_roles(editor).get(pk=run.pk), editor), "Other")
    named = {"input": "Who am I?", "metadata": {"threadId": "t", "resourceId": "ann"}}
    reading = make_dataset(named, pk="reading")
    for tested in (dataset, reading):
        run_experiment(tested, editor, agent, scorerIds=quoting)
    assert stored_texts().count(SECRET) > 8

    runner.run_now(FORGET, {"realm": f"u{editor.pk}", "resource": "ann"})

    assert SECRET not in stored_texts()
    assert [*ItemVersion.objects.filter(dataset=dataset).order_by("item_id").values_list("input", flat=True)] == [
        "[purged]",
        "Other",
    ]
    assert dataset.items.filter(purged_at=None).count() == 1


def test_copies_of_runs_that_are_gone_are_purged_with_the_data_of_the_person(editor):
    agent = AgentFactory(model=DEMO, instructions="", memory="last-messages")
    caller = Caller(api_key(editor))
    body = {"messages": f"I am {SECRET}", "memory": {"thread": "t", "resource": "ann"}}
    run = AgentRun.objects.get(pk=caller.post(f"/api/agents/{agent.pk}/generate", body).body["runId"])
    dataset = make_dataset(item_of_run(AgentRun.objects.with_roles(editor).get(pk=run.pk), editor), "Other")
    reading = make_dataset({"input": "Who am I?", "metadata": {"threadId": "t", "resourceId": "ann"}}, pk="reading")
    run_experiment(reading, editor, agent)
    change_item(dataset, dataset.items.first().pk, {"metadata": {"checked": True}})
    AgentRun.objects.all().delete()  # as after RUN_DAYS
    change_item(dataset, dataset.items.first().pk, {"metadata": {"checked": False}})
    assert SECRET in stored_texts()

    runner.run_now(FORGET, {"realm": f"u{editor.pk}", "resource": "ann"})

    assert SECRET not in stored_texts()
    assert dataset.items.filter(purged_at=None).count() == 1


def test_an_item_that_is_made_of_a_run_just_before_its_deletion_is_purged_too(editor, monkeypatch):
    agent = AgentFactory(model=DEMO, instructions="", memory="last-messages")
    body = {"messages": f"I am {SECRET}", "memory": {"thread": "t", "resource": "ann"}}
    Caller(api_key(editor)).post(f"/api/agents/{agent.pk}/generate", body)
    announce = forgetting.announce_deletion

    def announce_and_copy(run_ids):
        announce(run_ids)
        make_dataset(*(item_of_run(run, editor) for run in AgentRun.objects.with_roles(editor)))

    monkeypatch.setattr(forgetting, "announce_deletion", announce_and_copy)
    runner.run_now(FORGET, {"realm": f"u{editor.pk}", "resource": "ann"})

    assert [item.input for item in ItemVersion.objects.all()] == ["[purged]"]


def test_a_copy_of_a_process_whose_clock_is_ahead_is_purged_too(editor):
    make_dataset("Copied", "Of others")
    digest = resource_digest(f"u{editor.pk}", "ann")
    later = timezone.now() + timedelta(hours=1)
    ItemVersion.objects.filter(input="Copied").update(resource_digest=digest, created_at=later)

    runner.run_now(FORGET, {"realm": f"u{editor.pk}", "resource": "ann"})

    assert {*ItemVersion.objects.values_list("input", flat=True)} == {"[purged]", "Of others"}


def test_copies_that_a_backup_brings_back_are_purged_again(editor, monkeypatch):
    make_dataset("Before", "After", "Of others")
    digest, time = resource_digest(f"u{editor.pk}", "ann"), timezone.now() - timedelta(days=1)
    Forgotten.objects.create(digest=digest, forgotten_at=time)
    ItemVersion.objects.exclude(input="Of others").update(resource_digest=digest)
    ItemVersion.objects.filter(input="Before").update(created_at=time - timedelta(days=1))
    monkeypatch.setattr("sys.stdin", StringIO())

    call_command("sweep_forgotten", stdout=StringIO())

    assert {*ItemVersion.objects.values_list("input", flat=True)} == {"[purged]", "After", "Of others"}


def test_the_migration_marks_copies_whose_runs_are_there(editor):
    agent = AgentFactory(model=DEMO, instructions="", memory="last-messages")
    caller = Caller(api_key(editor))
    for memory in ({"memory": {"thread": "t", "resource": "ann"}}, {}):
        caller.post(f"/api/agents/{agent.pk}/generate", {"messages": "Hello", **memory})
    AgentRun.objects.filter(thread=None).update(resource=None)  # as without memory
    runs = AgentRun.objects.with_roles(editor).order_by("pk")
    make_dataset(*(item_of_run(run, editor) for run in runs), "Other")
    marks = [*ItemVersion.objects.order_by("pk").values_list("resource_digest", flat=True)]
    ItemVersion.objects.update(resource_digest="")

    import_module("evals_app.migrations.0011_fill_resources_of_copies").fill(apps, None)

    own = f"u{editor.pk}"
    assert marks == [resource_digest(own, "ann"), resource_digest(own, own), ""]
    assert [*ItemVersion.objects.order_by("pk").values_list("resource_digest", flat=True)] == marks
