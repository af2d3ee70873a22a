"""Experiments over workflows and scorers, which are called without a run."""

import asyncio
import threading
from datetime import timedelta

import pytest
from django.db import connections
from django.utils import timezone

from agentcms.errors import ApiError
from agents_app.configuration.schema import ConfigError
from agents_app.registry import Kind, registry, scorer, workflow
from evals_app.experiments import external
from evals_app.experiments.direct.calls import insert_call, perform_call
from evals_app.experiments.retrying import retry_failed
from evals_app.experiments.running.item_loop import ItemLoop, free_slots
from evals_app.experiments.stopping import request_cancel
from evals_app.experiments.targets import resolve_target
from evals_app.models import Dataset, Experiment, ItemVersion
from evals_app.scorers.changes import change_scorer, create_scorer
from runs_app.models import AgentRun
from tests.evals_app.experiment_runs import make_dataset, new_experiment, run_experiment, work
from tests.factories import member
from tests.served import wait_until

pytestmark = pytest.mark.usefixtures("idle_engine")

TICKET = {"subject": "Urgent", "body": "My invoice for billing is wrong."}
SAYS_HELLO = {"name": "Hello", "type": "check", "presetConfig": {"check": "includes", "value": "hello"}}


@pytest.fixture
def editor():
    return member("editor")


def over(kind, key, **more):
    return {"targetType": kind, "targetId": key, **more}


def results(experiment):
    return list(experiment.results.select_related("item_version").order_by("item_id"))


def test_a_workflow_gets_the_input_as_its_arguments(editor):
    right = {"input": TICKET, "ground_truth": {"queue": "billing", "priority": "high"}}
    dataset = make_dataset(right, {"input": {**TICKET, "body": "?"}, "ground_truth": {}}, scorer_keys=["exact"])

    experiment = run_experiment(dataset, editor, **over("workflow", "triage-ticket", repeats=2))

    assert (experiment.status, experiment.succeeded_count, experiment.title) == ("completed", 4, "triage-ticket")
    assert [row.output["queue"] for row in results(experiment)] == ["billing"] * 2 + ["general"] * 2
    assert experiment.summary["scorers"]["exact"]["mean"] == 0.5
    assert not AgentRun.objects.exists()


def test_an_asynchronous_workflow_is_awaited(editor):
    @workflow("waits-a-moment")
    async def wait_a_moment(text: str) -> str:
        await asyncio.sleep(0)
        return text

    experiment = run_experiment(make_dataset({"input": {"text": "One"}}), editor, **over("workflow", "waits-a-moment"))

    assert [(row.output, row.error) for row in results(experiment)] == [("One", None)]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_workflow_that_tries_to_end_its_process_fails_its_item_once(editor, is_async):
    calls = []

    def leave() -> str:
        calls.append(1)
        raise SystemExit("now")

    async def leave_later() -> str:
        leave()

    workflow("leaves")(leave_later if is_async else leave)
    experiment = run_experiment(make_dataset({"input": {}}), editor, **over("workflow", "leaves"))
    registry.remove(Kind.WORKFLOW, "leaves")

    assert (experiment.status, experiment.failed_count, len(calls)) == ("completed", 1, 1)
    error = {"message": "The function tried to end its process or its caller.", "code": "EXPERIMENT_TARGET_FAILED"}
    assert [row.error for row in results(experiment)] == [error]


@pytest.mark.postgres_only
def test_calls_and_scorers_hold_no_database_connection(editor):
    wrapper, open_connections = connections["default"], []

    @workflow("looks-at-connection")
    def look() -> str:
        open_connections.append(wrapper.connection)
        return ""

    @scorer("looks-too")
    def look_too(answer: str) -> float:
        open_connections.append(wrapper.connection)
        return 1.0

    dataset = make_dataset({"input": {}}, scorer_keys=["looks-too"])
    experiment = new_experiment(dataset, editor, **over("workflow", "looks-at-connection"))
    result = insert_call(experiment, ItemVersion.objects.select_related("item").get(), 0)
    perform_call(result, resolve_target(experiment, editor))
    registry.remove(Kind.SCORER, "looks-too")

    assert open_connections == [None, None]


@pytest.mark.postgres_only
def test_a_request_that_waits_for_an_item_holds_no_database_connection(editor, monkeypatch):
    experiment = new_experiment(make_dataset({"input": TICKET}), editor, **over("workflow", "triage-ticket"))
    result = insert_call(experiment, ItemVersion.objects.select_related("item").get(), 0)
    open_connections = []

    def end_meanwhile(seconds):
        open_connections.append(connections["default"].connection)
        experiment.results.update(state="done")

    monkeypatch.setattr(external.time, "sleep", end_meanwhile)
    external.wait_for_result(experiment, result)

    assert open_connections == [None]


def test_a_celery_task_is_called_too(editor):
    experiment = run_experiment(
        make_dataset({"input": {"text": "a b a"}}), editor, **over("workflow", "word-frequency")
    )

    assert results(experiment)[0].output == {"a": 2, "b": 1}


def test_what_a_workflow_cannot_take_or_do_fails_the_item(editor):
    @workflow("fails-politely")
    def fails_politely(text: str) -> str:
        raise ValueError("The text is about nothing.")

    dataset = make_dataset("a text", {"input": {}}, {"input": {"text": "x", "more": 1}}, {"input": {"text": "x"}})

    experiment = run_experiment(dataset, editor, **over("workflow", "fails-politely"))

    not_an_object, missing, unknown, failed = [row.error for row in results(experiment)]
    assert not_an_object == {
        "message": "The input must be an object with the arguments of the workflow: text.",
        "code": "EXPERIMENT_ITEM_INPUT_INVALID",
    }
    assert "text: Missing required argument" in missing["message"]
    assert "more: Unexpected keyword argument" in unknown["message"]
    assert failed == {"message": "The text is about nothing.", "code": "EXPERIMENT_TARGET_FAILED"}
    assert (experiment.status, experiment.failed_count) == ("completed", 4)


def test_a_scorer_scores_the_answers_in_the_inputs(editor):
    create_scorer(SAYS_HELLO, owner_id="", author="ann", id="says-hello")
    rows = [("hello you", 1), ("good day", {"min": 0.5}), ("hello", {"score": 0})]
    items = [{"input": {"input": "Hi?", "output": text}, "ground_truth": truth} for text, truth in rows]
    dataset = make_dataset(*items, {"input": {"input": "No answer"}}, scorer_keys=["agreement"])

    experiment = run_experiment(dataset, editor, **over("scorer", "says-hello"))

    *scored, invalid = results(experiment)
    assert [row.output["score"] for row in scored] == [1.0, 0.0, 1.0]
    assert [row.score_of("agreement") for row in scored] == [1.0, 0.5, 0.0]
    assert invalid.error["code"] == "EXPERIMENT_ITEM_INPUT_INVALID"
    assert experiment.title == "says-hello v1"


def test_a_scorer_sees_context_calls_and_instructions(editor):
    trajectory = {"name": "Steps", "type": "trajectory", "presetConfig": {"expected": ["add"], "mode": "superset"}}
    create_scorer(trajectory, owner_id="", author="ann", id="steps")
    called = {"output": "3", "calls": [{"toolName": "add", "args": {"a": 1}, "result": 3}], "context": ["A rule"]}

    experiment = run_experiment(
        make_dataset({"input": called}, {"input": {"output": "3"}}), editor, **over("scorer", "steps")
    )

    assert [row.output["score"] for row in results(experiment)] == [1.0, 0.0]


def test_a_scorer_is_tested_at_the_version_that_was_asked_for(editor):
    create_scorer(SAYS_HELLO, owner_id="", author="ann", id="says-hello")
    change_scorer("says-hello", {"presetConfig": {"check": "includes", "value": "bye"}}, author="ann", publish=False)
    dataset = make_dataset({"input": {"output": "bye"}})

    scores = {
        version: results(run_experiment(dataset, editor, **over("scorer", "says-hello", agentVersion=version)))[
            0
        ].output
        for version in ("live", "draft", "1", "v2")
    }

    assert [output["score"] for output in scores.values()] == [0.0, 1.0, 0.0, 1.0]
    assert [*Experiment.objects.order_by("created_at").values_list("version_number", "target_state")] == [
        (1, "live"),
        (2, "draft"),
        (1, "version"),
        (2, "version"),
    ]
    assert Experiment.objects.values("snapshot_hash").distinct().count() == 2


@pytest.mark.parametrize(
    "target",
    [
        over("workflow", "nobody"),
        over("workflow", "triage-ticket", agentVersion="3"),
        over("scorer", "nobody"),
        over("scorer", "exact", agentVersion="draft"),
        over("scorer", "of-sales"),
    ],
)
def test_what_is_unknown_or_foreign_runs_nothing(editor, target):
    create_scorer(SAYS_HELLO, owner_id="sales", author="ann", id="of-sales")

    with pytest.raises(ApiError) as raised:
        new_experiment(make_dataset({"input": {}}), editor, **target)

    assert raised.value.code == "EXPERIMENT_TARGET_NOT_FOUND"
    assert not Experiment.objects.exists()


def test_what_only_agents_have_is_refused(editor):
    with pytest.raises(ConfigError) as raised:
        new_experiment(make_dataset({"input": {}}), editor, **over("scorer", "exact", memory={"thread": "x"}, seed=1))

    assert {issue.field for issue in raised.value.issues} == {"memory", "seed"}


def test_a_version_that_the_dataset_does_not_have_is_refused(editor):
    with pytest.raises(ConfigError) as raised:
        new_experiment(make_dataset("One"), editor, targetType="workflow", targetId="triage-ticket", version=9)

    assert [(issue.field, issue.message) for issue in raised.value.issues] == [
        ("version", "The dataset has 1 version.")
    ]


def test_it_runs_with_the_rights_that_its_user_has_now(editor):
    experiment = new_experiment(make_dataset({"input": TICKET}), editor, **over("workflow", "triage-ticket"))
    editor.memberships.all().delete()

    work()

    experiment.refresh_from_db()
    assert (experiment.status, experiment.results.count()) == ("failed", 0)


class Gate:
    """A workflow that waits, so that a test sees what is open."""

    def __init__(self):
        self.opened, self.calls = threading.Event(), []

        @workflow("waits")
        def waits(number: int) -> int:
            self.calls.append(number)
            assert self.opened.wait(20)
            return number


def test_a_cancelled_experiment_starts_no_more_and_keeps_what_ended(editor):
    gate = Gate()
    dataset = make_dataset(*[{"input": {"number": number}} for number in range(6)])
    experiment = new_experiment(dataset, editor, **over("workflow", "waits", maxConcurrency=2))
    running = ItemLoop(experiment, None)
    running.begin()
    running.step()
    wait_until(lambda: len(gate.calls) == 2, 20)

    request_cancel(experiment)
    running.step()
    gate.opened.set()
    running.work(20)

    experiment.refresh_from_db()
    assert (experiment.status, experiment.succeeded_count, sorted(gate.calls)) == ("cancelled", 2, [0, 1])


def test_a_call_that_is_open_at_the_end_of_a_slice_is_waited_for(editor, monkeypatch):
    gate = Gate()
    experiment = new_experiment(
        make_dataset({"input": {"number": 7}}, {"input": {"number": 8}}),
        editor,
        **over("workflow", "waits", maxConcurrency=1),
    )
    threading.Timer(0.5, gate.opened.set).start()

    ItemLoop(experiment, None).work(0.2)

    assert [row.output for row in results(experiment)] == [7]


def test_a_call_whose_process_died_is_made_again_and_the_dead_one_stores_nothing(editor):
    dataset = make_dataset({"input": TICKET})
    experiment = new_experiment(dataset, editor, **over("workflow", "triage-ticket"))
    dead = insert_call(experiment, ItemVersion.objects.select_related("item").get(), 0)

    work()

    (again,) = results(experiment)
    assert (again.state, again.retry_count, again.output["queue"]) == ("done", 1, "billing")
    assert not perform_call(dead, resolve_target(experiment, editor))


def test_calls_count_against_the_limit_of_experiments(editor, settings):
    settings.EXPERIMENT_RUNS = 3
    experiment = new_experiment(make_dataset(*[{"input": TICKET}] * 5), editor, **over("workflow", "triage-ticket"))
    Experiment.objects.update(status="running")
    for version in ItemVersion.objects.all()[:2]:
        insert_call(experiment, version, 0)

    assert free_slots(experiment) == 1


def test_failed_calls_are_made_again(editor):
    attempts = []

    @workflow("fails-once")
    def fails_once(text: str) -> str:
        attempts.append(text)
        if len(attempts) == 1:
            raise ValueError("Not yet.")
        return text

    experiment = run_experiment(make_dataset({"input": {"text": "One"}}), editor, **over("workflow", "fails-once"))
    assert results(experiment)[0].error["message"] == "Not yet."

    retry_failed(experiment, editor)
    work()

    assert [row.output for row in results(experiment)] == ["One"]


def test_every_registered_workflow_has_a_key_that_experiments_take(editor):
    """A workflow is a target by its key, whether it is a function or a task."""
    from agents_app.registry import Kind

    dataset = make_dataset({"input": {}})
    for entry in registry.entries(Kind.WORKFLOW):
        experiment = new_experiment(dataset, editor, **over("workflow", entry.key, start=False))
        assert (experiment.target_type, experiment.target_id) == ("workflow", entry.key)


def test_a_program_outside_calls_single_items(editor):
    from evals_app.experiments.external import run_item

    dataset = make_dataset({"input": TICKET}, scorer_keys=["answer-length"])
    experiment = new_experiment(dataset, editor, **over("workflow", "triage-ticket", start=False))
    item = str(ItemVersion.objects.get().item_id)

    first, again = (run_item(experiment, item, {}, editor) for _ in range(2))

    assert (first.output["queue"], first.pk) == ("billing", again.pk)
    experiment.refresh_from_db()
    assert (experiment.succeeded_count, Dataset.objects.count()) == (1, 1)


def test_a_call_from_outside_whose_process_died_is_made_again_later(editor):
    from evals_app.experiments.external import run_item

    experiment = new_experiment(
        make_dataset({"input": TICKET}), editor, **over("workflow", "triage-ticket", start=False)
    )
    dead = insert_call(experiment, ItemVersion.objects.select_related("item").get(), 0)
    experiment.results.update(started_at=timezone.now() - timedelta(minutes=11))

    assert run_item(experiment, str(dead.item_id), {}, editor).output["queue"] == "billing"
