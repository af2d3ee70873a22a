"""Experiments that end, are renamed, cancelled or deleted at the same moment."""

import pytest

from agentcms.errors import ApiError, Conflict
from evals_app.datasets.deletion import delete_experiment, delete_with_experiments
from evals_app.experiments import external
from evals_app.experiments.creation import save_experiment
from evals_app.experiments.ending import count_so_far, finish_experiment, mark_cancelled
from evals_app.experiments.external import finalize_experiment, run_item, submit_result
from evals_app.experiments.jobs import EXPERIMENT_JOB
from evals_app.experiments.options import parse_experiment
from evals_app.experiments.retrying import retry_failed
from evals_app.experiments.running.item_loop import ItemLoop
from evals_app.experiments.stopping import end_early, request_cancel
from evals_app.models import Experiment, ExperimentResult
from jobs_app import runner
from jobs_app.models import Job
from runs_app.models import AgentRun
from tests.evals_app.experiment_runs import make_dataset, new_experiment, run_experiment, work
from tests.factories import AgentFactory
from tests.runs import LONG, SLOW
from tests.served import wait_until

pytestmark = pytest.mark.usefixtures("idle_engine")
Status = Experiment.Status


@pytest.fixture
def slow():
    return AgentFactory(model=SLOW, instructions="")


def begin(experiment):
    """Return the loop of an experiment after its first step, with the first items running."""
    item_loop = ItemLoop(experiment, None)
    item_loop.begin()
    item_loop.step()
    return item_loop


def wait_for_stopped_runs():
    wait_until(lambda: not AgentRun.objects.unfinished().exists(), 20, "the end of the runs")


def test_a_name_that_was_given_meanwhile_stays(editor, agent):
    experiment = new_experiment(make_dataset("One"), editor, agent)
    Experiment.objects.update(name="Renamed", metadata={"a": 1})

    finish_experiment(experiment, Status.COMPLETED)

    stored = Experiment.objects.get()
    assert (stored.name, stored.metadata, stored.status) == ("Renamed", {"a": 1}, "completed")


def test_a_retry_keeps_a_name_that_was_given_meanwhile(editor, agent, monkeypatch):
    experiment = run_experiment(make_dataset({"input": "One", "scorer_keys": ["missing"]}), editor, agent)
    reopen = retry_failed.__globals__["reopen"]

    def rename_first(row):
        Experiment.objects.update(name="Renamed")
        reopen(row)

    monkeypatch.setitem(retry_failed.__globals__, "reopen", rename_first)
    retry_failed(experiment, editor)

    assert Experiment.objects.get().name == "Renamed"


def test_an_end_that_another_process_has_stored_stays(editor, agent):
    experiment = new_experiment(make_dataset("One"), editor, agent)
    other = Experiment.objects.get()
    finish_experiment(other, Status.CANCELLED, "Cancelled.")

    finish_experiment(experiment, Status.COMPLETED)

    assert (experiment.status, experiment.stop_reason) == ("cancelled", "Cancelled.")
    assert Experiment.objects.get().status == "cancelled"


def test_a_loop_does_not_end_an_experiment_with_an_open_item(editor, slow):
    experiment = new_experiment(make_dataset(LONG), editor, slow)
    begin(experiment)

    finish_experiment(Experiment.objects.get(), Status.COMPLETED)

    assert Experiment.objects.get().status == "running"
    request_cancel(experiment)
    wait_for_stopped_runs()


def test_counting_late_leaves_the_figures_of_an_ended_experiment(editor, agent):
    dataset = make_dataset({"input": "One", "ground_truth": "One"}, scorer_keys=["exact"])
    experiment = run_experiment(dataset, editor, agent)

    count_so_far(Experiment.objects.get())

    assert Experiment.objects.get().summary == experiment.summary
    assert experiment.summary["scorers"]["exact"]["count"] == 1


def test_nothing_starts_after_the_mark_of_a_cancellation(editor, slow):
    experiment = new_experiment(make_dataset(*[LONG] * 3), editor, slow, maxConcurrency=1)
    item_loop = begin(experiment)
    item_loop.experiment.concurrency = 3

    mark_cancelled(Experiment.objects.get())

    assert (item_loop.start(1), experiment.results.count()) == (0, 1)
    request_cancel(experiment)
    item_loop.work(20)


def test_an_experiment_of_a_command_that_was_killed_is_cancelled_at_once(editor, slow):
    """Otherwise nothing would ever end it, and it would count against those that its user may have."""
    dataset = make_dataset(LONG, LONG)
    options = parse_experiment({"targetType": "agent", "targetId": slow.pk, "maxConcurrency": 1})
    begin(save_experiment(dataset, options, editor))  # and no more of the command

    request_cancel(Experiment.objects.get())

    stored = Experiment.objects.get()
    assert (stored.status, stored.stop_reason, stored.failed_count) == ("cancelled", "Cancelled.", 1)
    wait_for_stopped_runs()


def test_a_job_ends_a_cancelled_experiment_itself(editor, slow):
    experiment = new_experiment(make_dataset(LONG), editor, slow)
    begin(experiment)

    request_cancel(experiment)

    assert Experiment.objects.get().status == "running"
    work()
    assert Experiment.objects.get().status == "cancelled"


# --- Deletions


@pytest.mark.parametrize("delete", [delete_experiment, lambda row: delete_with_experiments(row.dataset)])
def test_the_job_of_a_deleted_experiment_ends_without_an_error(editor, slow, delete, monkeypatch):
    experiment = new_experiment(make_dataset(*[LONG] * 4), editor, slow, maxConcurrency=2)
    step = ItemLoop.step

    def step_and_delete(item_loop, **options):
        happened = step(item_loop, **options)
        if item_loop.experiment.results.count() == 2:
            delete(Experiment.objects.get())
        return happened

    monkeypatch.setattr(ItemLoop, "step", step_and_delete)
    job = runner.run_claimed(str(Job.objects.get(kind=EXPERIMENT_JOB).pk))

    assert (job.state, job.error) == (Job.State.DONE, "")
    assert not Experiment.objects.exists()
    assert not Job.objects.filter(kind=EXPERIMENT_JOB, state=Job.State.QUEUED).exists()
    wait_for_stopped_runs()
    assert {*AgentRun.objects.values_list("status", flat=True)} == {"cancelled"}
    assert experiment.results.count() == 0


def test_nothing_starts_in_a_deleted_experiment(editor, slow):
    experiment = new_experiment(make_dataset(*[LONG] * 3), editor, slow, maxConcurrency=1)
    item_loop = begin(experiment)
    item_loop.experiment.concurrency = 3

    delete_experiment(Experiment.objects.get())

    assert (item_loop.start(1), AgentRun.objects.count()) == (0, 1)
    wait_for_stopped_runs()


@pytest.mark.parametrize(
    "act",
    [request_cancel, lambda row: retry_failed(row, row.created_by), lambda row: submit(row), finalize_experiment],
)
def test_what_uses_a_deleted_experiment_says_so(editor, act):
    experiment = new_experiment(make_dataset("One"), editor, start=False)
    item = experiment.dataset.items.get()
    Experiment.objects.all().delete()
    experiment.item_id = item.pk

    with pytest.raises(ApiError) as raised:
        act(experiment)

    assert (raised.value.status, raised.value.code) == (404, "EXPERIMENT_NOT_FOUND")


def submit(experiment):
    return submit_result(experiment, {"item_id": str(experiment.item_id), "output": "Yes"})


# --- Experiments that a program outside drives


def test_the_end_by_a_program_stops_its_open_items(editor, slow):
    experiment = new_experiment(make_dataset(LONG), editor, slow, start=False)
    item = experiment.dataset.items.get()
    external.start_target(
        experiment,
        external.find_item_version(experiment, str(item.pk)),
        external.targets.resolve_target(experiment, editor),
        editor,
        {},
    )

    finalize_experiment(experiment)

    result = ExperimentResult.objects.get()
    assert (experiment.status, experiment.failed_count, result.state) == ("completed", 1, "done")
    assert result.error["code"] == "stopped"
    wait_for_stopped_runs()


def test_an_item_does_not_run_in_a_finalized_experiment(editor, agent):
    experiment = new_experiment(make_dataset("One"), editor, agent, start=False)
    stale = Experiment.objects.get()
    finalize_experiment(experiment)

    with pytest.raises(Conflict) as raised:
        run_item(stale, str(experiment.dataset.items.get().pk), {}, editor)

    assert raised.value.code == "EXPERIMENT_ALREADY_FINALIZED"
    assert (AgentRun.objects.count(), ExperimentResult.objects.count()) == (0, 0)


def test_a_late_result_leaves_the_figures_of_a_finalized_experiment(editor, agent):
    dataset = make_dataset({"input": "One"}, {"input": "Two"}, scorer_keys=["answer-length"])
    experiment = new_experiment(dataset, editor, agent, start=False)
    first, second = (str(item.pk) for item in dataset.items.all())
    run_item(experiment, first, {}, editor)
    late = Experiment.objects.get()
    finalize_experiment(experiment)
    summary = Experiment.objects.get().summary

    with pytest.raises(Conflict):
        run_item(late, second, {}, editor)
    count_so_far(late)

    assert summary["scorers"]["answer-length"]["count"] == 1
    assert Experiment.objects.get().summary == summary


def test_an_early_end_counts_an_item_that_started_at_the_same_moment(editor, slow, monkeypatch):
    experiment = new_experiment(make_dataset(LONG), editor, slow)
    item_loop = ItemLoop(experiment, None)
    item_loop.begin()
    monkeypatch.setitem(end_early.__globals__, "store_ended_results", lambda row, scoring: item_loop.start(0))

    end_early(Experiment.objects.get(), Status.FAILED, "No")

    stored = Experiment.objects.get()
    assert (stored.status, stored.failed_count, stored.results.get().error["code"]) == ("failed", 1, "stopped")
    wait_for_stopped_runs()
