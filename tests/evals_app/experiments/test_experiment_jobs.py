"""Experiments: runs of all items, repeats, scores, budgets, cancelling, lost processes."""

import json
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import OperationalError
from django.utils import timezone

from agentcms.errors import ApiError
from agents_app.editing.change_context import change
from agents_app.registry import Entry, Kind, registry
from evals_app.compare.pairs import compute_statistics
from evals_app.datasets.changes import add_items
from evals_app.experiments import jobs
from evals_app.experiments.ending import finish_experiment
from evals_app.experiments.jobs import EXPERIMENT_JOB
from evals_app.experiments.results import next_open_results, store_result
from evals_app.experiments.retrying import retry_failed
from evals_app.experiments.running import item_loop as item_loops
from evals_app.experiments.running.item_loop import ItemLoop, free_slots
from evals_app.experiments.stopping import request_cancel
from evals_app.models import Experiment, ExperimentResult
from jobs_app import runner
from jobs_app.models import Job
from runs_app.engine.run_ends import LOST_MESSAGE
from runs_app.models import AgentRun
from tests.evals_app.experiment_runs import make_dataset, new_experiment, run_experiment, work
from tests.factories import AgentFactory, member
from tests.runs import DEMO, LONG, SLOW
from tests.served import wait_until

pytestmark = pytest.mark.usefixtures("idle_engine")

SAID = "I am the demo model 'echo'. You said: {}"


def results(experiment):
    return list(experiment.results.select_related("item_version").order_by("item_id", "attempt"))


def scores(experiment, key="exact"):
    return [result.score_of(key) for result in results(experiment)]


def test_every_item_is_answered_and_scored(editor, agent):
    right = {"input": "One", "ground_truth": SAID.format("one")}
    dataset = make_dataset(right, {"input": "Two", "ground_truth": "No"}, scorer_keys=["exact"])

    experiment = run_experiment(dataset, editor, agent)

    assert (experiment.status, experiment.succeeded_count, experiment.failed_count) == ("completed", 2, 0)
    assert [result.output for result in results(experiment)] == [SAID.format("One"), SAID.format("Two")]
    assert scores(experiment) == [1.0, 0.0]
    assert experiment.summary["scorers"]["exact"]["mean"] == 0.5
    assert (experiment.version_number, experiment.snapshot_hash) == (1, agent.active_version.snapshot_hash)
    assert AgentRun.objects.filter(experiment_id=experiment.pk).count() == 2


def test_repeats_run_each_item_again(editor, agent):
    experiment = run_experiment(make_dataset("One", "Two"), editor, agent, repeats=3)

    assert [result.attempt for result in results(experiment)] == [0, 1, 2] * 2
    assert experiment.total_items == experiment.succeeded_count == 6


def test_each_repeat_has_a_seed_of_its_own(editor, agent):
    experiment = run_experiment(make_dataset("One"), editor, agent, repeats=3, seed=41)

    runs = AgentRun.objects.filter(experiment_id=experiment.pk).order_by("created_at")
    assert sorted(run.input["options"]["seed"] for run in runs) == [41, 42, 43]
    assert experiment.succeeded_count == 3


def test_without_a_seed_the_model_chooses(editor, agent):
    experiment = run_experiment(make_dataset("One"), editor, agent)

    assert "seed" not in (AgentRun.objects.get(experiment_id=experiment.pk).input.get("options") or {})


def test_an_experiment_reads_the_items_of_its_version(editor, agent):
    dataset = make_dataset("One")
    add_items(dataset, [{"input": "Two"}])

    experiment = run_experiment(dataset, editor, agent, version=1)

    assert [result.item_version.input for result in results(experiment)] == ["One"]


def test_the_inputs_may_be_messages_or_other_values(editor, agent):
    messages = [{"role": "user", "content": "First"}, {"role": "assistant", "content": "Yes"}]
    dataset = make_dataset(
        {"input": {"messages": [*messages, {"role": "user", "content": "Last"}]}}, {"input": {"a": 1}}
    )

    experiment = run_experiment(dataset, editor, agent)

    assert [result.output for result in results(experiment)] == [
        SAID.format("Last Before that: First"),
        SAID.format('{"a": 1}'),
    ]


def test_scorers_come_from_one_place(editor, agent):
    own = {"input": "Own", "scorer_keys": ["includes-ground-truth"], "ground_truth": "own"}
    dataset = make_dataset("Inherits", own, {"input": "None", "scorer_keys": []}, scorer_keys=["exact"])

    by_item = run_experiment(dataset, editor, agent)
    by_experiment = run_experiment(dataset, editor, agent, scorerIds=["answer-length"])

    keys = [[score["scorerId"] for score in result.scores] for result in results(by_item)]
    assert keys == [["exact"], ["includes-ground-truth"], []]
    assert [[score["scorerId"] for score in result.scores] for result in results(by_experiment)] == [
        ["answer-length"]
    ] * 3


def test_an_unknown_scorer_of_the_dataset_runs_nothing_unless_each_item_has_its_own(editor, agent):
    dataset = make_dataset("One", {"input": "Two", "scorer_keys": ["exact"]}, scorer_keys=["exact", "missing"])
    own = make_dataset({"input": "One", "scorer_keys": ["exact"]}, pk="own", scorer_keys=["missing"])

    with pytest.raises(ApiError, match="Dataset 'support' names it") as refused:
        new_experiment(dataset, editor, agent)

    assert refused.value.code == "EXPERIMENT_SCORER_NOT_FOUND"
    assert not Experiment.objects.exists()
    assert new_experiment(dataset, editor, agent, scorerIds=["exact"]).scorer_keys == ["exact"]
    assert new_experiment(own, editor, agent).total_items == 1


def test_an_unknown_scorer_of_an_item_fails_it_without_a_run(editor, agent):
    dataset = make_dataset("One", {"input": "Two", "scorer_keys": ["missing"]})

    experiment = run_experiment(dataset, editor, agent)

    assert (experiment.status, experiment.succeeded_count, experiment.failed_count) == ("completed", 1, 1)
    error = results(experiment)[1].error
    assert error == {"message": "Scorer with id missing not found", "code": "EXPERIMENT_ITEM_SCORER_NOT_FOUND"}
    assert AgentRun.objects.count() == 1


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"targetId": "nobody"}, "EXPERIMENT_TARGET_NOT_FOUND"),
        ({"agentVersion": "99"}, "EXPERIMENT_TARGET_NOT_FOUND"),
        ({"scorerIds": ["missing"]}, "EXPERIMENT_SCORER_NOT_FOUND"),
    ],
)
def test_what_is_unknown_runs_nothing(editor, agent, body, code):
    with pytest.raises(ApiError) as raised:
        new_experiment(make_dataset("One"), editor, agent, **body)

    assert raised.value.code == code
    assert not Experiment.objects.exists()


def test_an_empty_dataset_is_refused(editor, agent):
    with pytest.raises(ApiError) as raised:
        new_experiment(make_dataset(), editor, agent)

    assert raised.value.code == "EXPERIMENT_NO_ITEMS"


def test_what_a_scorer_says_is_stored_without_what_databases_refuse(editor, agent):
    """Models copy what they read, and PostgreSQL stores no NUL, no half of a surrogate pair and no NaN."""

    def odd(answer):
        return {"score": 1, "reason": "a\0b\ud800", "details": {"c\0": float("nan"), "d": ["\0"]}}

    def broken(answer):
        raise ValueError("e\0f\udc00")

    registry.add(Entry(Kind.SCORER, "odd", "Odd", target=odd))
    registry.add(Entry(Kind.SCORER, "broken", "Broken", target=broken))

    experiment = run_experiment(make_dataset("One"), editor, agent, scorerIds=["odd", "broken"])

    first, second = results(experiment)[0].scores
    assert (experiment.status, experiment.succeeded_count) == ("completed", 1)
    assert (first["score"], first["reason"][:1], second["error"][:13]) == (1.0, "a", "ValueError: e")
    assert "\0" not in json.dumps([first, second])
    assert "\\u0000" not in json.dumps([first, second])
    for target, end in (("odd", {"score": 1.0, "reason": first["reason"]}), ("broken", None)):
        options = {"targetType": "scorer", "targetId": target, "scorerIds": []}
        called = run_experiment(make_dataset({"input": {"output": "Hi"}}, pk=target), editor, **options)
        assert (called.status, results(called)[0].output) == ("completed", end)


def test_a_failing_scorer_leaves_the_answer(editor, agent):
    def broken(answer):
        raise ValueError("No")

    registry.add(Entry(Kind.SCORER, "broken", "Broken", target=broken))
    try:
        experiment = run_experiment(make_dataset("One"), editor, agent, scorerIds=["broken", "answer-length"])
    finally:
        registry.remove(Kind.SCORER, "broken")

    first, second = results(experiment)[0].scores
    assert (first["score"], first["error"], second["score"]) == (None, "ValueError: No", 1.0)
    assert experiment.summary["scorers"]["broken"]["unscored"] == 1


def test_a_draft_is_run_as_it_was_when_the_experiment_was_created(editor, agent):
    with change(publish=False):
        agent.edit({"instructions": "Be brief."})
    experiment = new_experiment(make_dataset("One"), editor, agent, agentVersion="draft")
    with change(publish=False):
        agent.edit({"instructions": "Be long."})
    work()

    assert results(experiment)[0].output.endswith("My instructions begin: Be brief.")


def test_a_cancelled_experiment_stops_its_runs_and_starts_no_more(editor):
    dataset = make_dataset(*[LONG] * 4)
    experiment = new_experiment(dataset, editor, AgentFactory(model=SLOW), maxConcurrency=2)
    running = ItemLoop(experiment, None)
    running.begin()
    running.step()
    wait_until(lambda: AgentRun.objects.filter(status="running").count() == 2, 20)

    request_cancel(experiment)
    running.work(20)

    experiment.refresh_from_db()
    assert (experiment.status, experiment.results.count()) == ("cancelled", 2)
    assert {result.error["code"] for result in results(experiment)} == {"stopped"}
    assert set(AgentRun.objects.values_list("status", flat=True)) == {"cancelled"}


@pytest.mark.parametrize(
    ("budget", "reason"),
    [
        ({"maxTokens": 1}, "The budget of 1 token is spent."),
        ({"maxFailures": 1}, "1 item failed."),
        ({"maxFailures": 2}, "2 items failed."),
        ({"maxConsecutiveFailures": 2}, "2 items failed in a row."),
    ],
)
def test_a_budget_stops_an_experiment(editor, agent, budget, reason):
    bad = {"scorer_keys": ["missing"]} if "maxTokens" not in budget else {}
    dataset = make_dataset(*[{"input": f"Number {n}", **bad} for n in range(6)])

    experiment = run_experiment(dataset, editor, agent, budget=budget, maxConcurrency=1)

    assert (experiment.status, experiment.stop_reason) == ("cancelled", reason)
    assert experiment.done_count < 6


def test_an_item_whose_process_died_runs_again(editor, agent):
    experiment = new_experiment(make_dataset("One"), editor, agent)
    running = ItemLoop(experiment, None)
    running.begin()
    running.start(0)
    (result,) = results(experiment)
    wait_until(lambda: AgentRun.objects.get(pk=result.run_id).is_finished, 20)
    AgentRun.objects.update(status="failed", error=LOST_MESSAGE)

    work()

    (again,) = results(experiment)
    assert (again.retry_count, again.error, again.output) == (1, None, SAID.format("One"))
    assert again.run_id != result.run_id


def test_of_two_loops_one_starts_a_lost_item_again(editor, agent):
    """A loop that lost its lease goes on until it notices."""
    loops = [ItemLoop(new_experiment(make_dataset("One"), editor, agent), None)]
    loops.append(ItemLoop(Experiment.objects.get(), None))
    for item_loop in loops:
        item_loop.begin()
    loops[0].start(0)
    wait_until(lambda: AgentRun.objects.get().is_finished, 20)
    AgentRun.objects.update(status="failed", error=LOST_MESSAGE)
    seen = [next_open_results(item_loop.experiment)[0] for item_loop in loops]

    assert [item_loop.start_again(result) for item_loop, result in zip(loops, seen, strict=True)] == [True, False]
    late = seen[1]
    late.retry_count = 0  # as the second loop has read it
    assert store_result(late) is False

    loops[0].work(20)
    assert AgentRun.objects.count() == 2
    result = ExperimentResult.objects.get()
    assert (result.retry_count, result.error, result.output) == (1, None, SAID.format("One"))


@pytest.mark.parametrize("place", ["experiment", "item", "dataset"])
def test_a_scorer_that_is_named_twice_scores_once(editor, agent, place):
    twice = ["exact", "exact"]
    item = {"input": "One", "ground_truth": "Two", **({"scorer_keys": twice} if place == "item" else {})}
    dataset = make_dataset(item, scorer_keys=twice if place == "dataset" else [])

    experiment = run_experiment(dataset, editor, agent, **({"scorerIds": twice} if place == "experiment" else {}))

    assert len(experiment.results.get().scores) == 1
    assert experiment.summary["scorers"]["exact"]["count"] == 1


def test_two_loops_start_no_more_items_than_may_run_at_once(editor, agent):
    experiment = new_experiment(make_dataset("One", "Two"), editor, agent, maxConcurrency=1)
    loops = [ItemLoop(experiment, None), ItemLoop(Experiment.objects.get(), None)]
    for item_loop in loops:
        item_loop.begin()
    before = loops[1].count_open()

    started = [item_loop.start(before) for item_loop in loops]

    assert (started, AgentRun.objects.count()) == ([1, 0], 1)


def test_another_worker_continues_with_a_job_of_its_own(editor, agent):
    experiment = new_experiment(make_dataset("One", "Two"), editor, agent)
    first = Job.objects.get(kind=EXPERIMENT_JOB)
    Job.objects.filter(pk=first.pk).update(
        state=Job.State.RUNNING, attempts=1, lease_until=timezone.now() - timedelta(seconds=1)
    )

    runner.run_claimed(str(first.pk))
    work()

    experiment.refresh_from_db()
    assert (experiment.status, experiment.succeeded_count) == ("completed", 2)
    assert Job.objects.filter(kind=EXPERIMENT_JOB).count() == 2
    last = Job.objects.filter(kind=EXPERIMENT_JOB).latest("created_at")
    assert (last.done, last.total) == (2, 2)  # the page of jobs shows it as complete


def queued_jobs():
    return Job.objects.filter(kind=EXPERIMENT_JOB, state=Job.State.QUEUED)


def test_an_outage_at_the_end_of_a_job_leaves_one_job(editor, agent, monkeypatch):
    monkeypatch.setattr(jobs, "SLICE", 0.0)
    new_experiment(make_dataset("One"), editor, agent)
    first = Job.objects.get(kind=EXPERIMENT_JOB)

    def lose_database(job, result):
        raise OperationalError("gone")

    with monkeypatch.context() as outage:
        outage.setattr(Job, "finish", lose_database)
        runner.run_claimed(str(first.pk))
    Job.objects.filter(pk=first.pk).update(lease_until="2020-01-01T00:00Z")
    runner.run_claimed(str(first.pk))

    assert (queued_jobs().count(), Job.objects.get(pk=first.pk).state) == (1, Job.State.DONE)


def test_a_job_goes_on_no_more_once_a_retry_has_a_newer_one(editor, agent, monkeypatch):
    new_experiment(make_dataset("One"), editor, agent)

    def work_while_retried(item_loop, seconds):
        finish_experiment(item_loop.experiment, Experiment.Status.CANCELLED)
        retry_failed(item_loop.experiment, editor)
        item_loop.experiment.refresh_from_db()

    monkeypatch.setattr(ItemLoop, "work", work_while_retried)

    runner.run_claimed(str(queued_jobs().get().pk))

    assert queued_jobs().count() == 1


def test_a_job_works_for_a_limited_time(editor, agent, monkeypatch):
    monkeypatch.setattr(jobs, "SLICE", 0.0)
    new_experiment(make_dataset("One"), editor, agent)

    runner.run_claimed(str(Job.objects.get(kind=EXPERIMENT_JOB).pk))

    assert sorted(Job.objects.filter(kind=EXPERIMENT_JOB).values_list("state", flat=True)) == ["done", "queued"]


def test_runs_of_experiments_have_their_own_limit(editor, settings):
    settings.RUNS_PER_USER, settings.EXPERIMENT_RUNS = 1, 3
    experiment = new_experiment(make_dataset(*[LONG] * 5), editor, AgentFactory(model=SLOW), maxConcurrency=20)
    running = ItemLoop(experiment, None)
    running.begin()

    assert (running.start(0), running.start(3)) == (3, 0)
    request_cancel(experiment)
    running.work(20)


def test_experiments_of_other_teams_get_their_share(editor, settings):
    settings.EXPERIMENT_RUNS = 4
    other = member("editor", "sales")
    sales = AgentFactory(model=DEMO, owner_id="sales")
    new_experiment(make_dataset("One", pk="sales", owner_id="sales"), other, sales)
    experiment = new_experiment(make_dataset(*range(9)), editor, AgentFactory(model=DEMO), maxConcurrency=9)

    assert free_slots(experiment) == 2


def test_an_experiment_runs_with_the_rights_that_its_user_has_now(editor, agent):
    experiment = new_experiment(make_dataset("One"), editor, agent)
    editor.memberships.all().delete()

    work()

    experiment.refresh_from_db()
    assert (experiment.status, AgentRun.objects.count()) == ("failed", 0)
    assert experiment.error == "This needs the Editor role in Shared."


def test_an_experiment_fails_when_its_user_may_run_no_more(editor, agent):
    experiment = new_experiment(make_dataset(*"123456"), editor, agent, maxConcurrency=1)
    running = ItemLoop(experiment, None)
    running.begin()
    running.step()
    editor.memberships.update(role="viewer")

    running.work(20)

    experiment.refresh_from_db()
    assert experiment.status == "failed"
    assert "role" in experiment.error
    assert experiment.failed_count < 5


def switch_off(user):
    User.objects.filter(pk=user.pk).update(is_active=False)


@pytest.mark.parametrize("lose", [switch_off, User.delete])
def test_an_experiment_fails_within_seconds_when_its_account_is_off(lose, editor, agent, monkeypatch):
    monkeypatch.setattr(item_loops, "TARGET_CHECK_INTERVAL", -1)
    experiment = new_experiment(make_dataset(*"123456"), editor, agent, maxConcurrency=1)
    running = ItemLoop(experiment, None)
    running.begin()
    running.step()
    lose(User.objects.get(pk=editor.pk))

    running.work(20)

    experiment.refresh_from_db()
    assert (experiment.status, experiment.results.count()) == ("failed", 1)
    assert experiment.error == "The account that started the experiment is not active."


def test_bars_decide_about_the_verdict(editor, agent):
    dataset = make_dataset({"input": "One", "ground_truth": SAID.format("One")}, scorer_keys=["exact"])

    met = run_experiment(dataset, editor, agent, bars={"exact": 0.9})
    missed = run_experiment(dataset, editor, agent, scorerIds=["exact", "cites-source"], bars={"cites-source": 0.5})
    without = run_experiment(dataset, editor, agent)

    assert [met.verdict, missed.verdict, without.verdict] == ["passed", "scored", ""]


def test_two_workers_at_once_give_each_item_one_result(editor, agent):
    experiment = new_experiment(make_dataset(*map(str, range(6))), editor, agent, maxConcurrency=2)
    loops = [ItemLoop(Experiment.objects.get(pk=experiment.pk), None) for _ in range(2)]
    for one in loops:
        one.begin()

    def is_over():
        for one in loops:
            one.step()
        return loops[0].experiment.is_finished

    wait_until(is_over, 30)

    experiment.refresh_from_db()
    assert experiment.succeeded_count == 6
    assert ExperimentResult.objects.count() == AgentRun.objects.count() == 6


def test_a_gate_scorer_must_give_each_answer_a_1(editor, agent):
    truth = {"ground_truth": SAID.format("One")}
    good = make_dataset({"input": "One", **truth}, pk="good", scorer_keys=["exact"])
    mixed = make_dataset({"input": "One", **truth}, {"input": "Two", **truth}, pk="mixed", scorer_keys=["exact"])

    passed = run_experiment(good, editor, agent, gateScorers=["exact"])
    failed = run_experiment(mixed, editor, agent, gateScorers=["exact"], bars={"exact": 0.5})

    assert [row.verdict for row in (passed, failed)] == ["passed", "failed"]
    with pytest.raises(ValidationError):
        new_experiment(good, editor, agent, scorerIds=["exact"], gateScorers=["cites-source"])


@pytest.mark.parametrize(
    ("judged_by", "verdict"), [({"gateScorers": ["exact"]}, "failed"), ({"bars": {"exact": 1}}, "scored")]
)
def test_an_experiment_with_failed_items_has_not_passed(editor, agent, judged_by, verdict):
    items = {"input": "One", "ground_truth": SAID.format("One")}, {"input": "Two", "scorer_keys": ["unknown"]}
    dataset = make_dataset(*items, scorer_keys=["exact"])

    experiment = run_experiment(dataset, editor, agent, **judged_by)

    assert (experiment.status, experiment.failed_count, experiment.verdict) == ("completed", 1, verdict)


@pytest.mark.parametrize("scorers", [{}, {"scorerIds": ["exact"]}])
@pytest.mark.parametrize("named", [{"bars": {"cites-source": 0.5}}, {"gateScorers": ["cites-source"]}])
def test_a_bar_of_a_scorer_that_scores_no_answer_runs_nothing_and_is_named(editor, agent, scorers, named):
    dataset = make_dataset({"input": "One", "scorer_keys": ["picky"]}, "Two", scorer_keys=["exact"])

    with pytest.raises(ValidationError, match="'cites-source' is not among"):
        new_experiment(dataset, editor, agent, **scorers, **named)
    assert not Experiment.objects.exists()
    new_experiment(dataset, editor, agent, start=False, bars={"of-a-program": 0.5})
    new_experiment(dataset, editor, agent, bars={"exact": 0.5, "picky": 0.5})


def test_a_scorer_that_fails_for_an_answer_decides_about_the_verdict(editor, agent):
    def picky(answer):
        if "Two" in answer:
            raise ValueError("No")
        return 1.0

    registry.add(Entry(Kind.SCORER, "picky", "Picky", target=picky))
    dataset = make_dataset("One", "Two")

    by_gate = run_experiment(dataset, editor, agent, scorerIds=["picky"], gateScorers=["picky"])
    by_bar = run_experiment(dataset, editor, agent, scorerIds=["picky"], bars={"picky": 0.5})

    assert (by_gate.summary["scorers"]["picky"]["min"], by_gate.verdict, by_bar.verdict) == (1.0, "failed", "scored")


def test_experiments_wait_for_a_place_in_the_worker_in_their_order(editor, agent, settings):
    settings.EXPERIMENTS_PER_WORKER = 1
    dataset = make_dataset("One")
    for _ in range(3):
        new_experiment(dataset, editor, agent)
    queued = [*Job.objects.filter(kind=EXPERIMENT_JOB).order_by("created_at")]

    def run(number):
        return runner.run_claimed(str(queued[number].pk)).state

    assert jobs.experiment_slots.take(Job.objects.create_claimed(EXPERIMENT_JOB, {}))
    while_taken = [run(number) for number in range(3)]
    jobs.experiment_slots.free()
    out_of_turn = run(2)
    queued[0].discard()  # nothing waits for a job that is gone
    in_turn = [run(1), run(2)]

    assert (while_taken, out_of_turn, in_turn) == (["queued"] * 3, "queued", ["done"] * 2)
    assert [row.status for row in Experiment.objects.order_by("created_at")] == ["pending", "completed", "completed"]
    assert Job.objects.get(pk=queued[1].pk).attempts == 1
    assert (jobs.experiment_slots.taken, jobs.experiment_slots.waiting) == (0, {})


def test_a_cancelled_experiment_ends_without_a_place(editor, agent, settings):
    settings.EXPERIMENTS_PER_WORKER = 1
    experiment = new_experiment(make_dataset("One"), editor, agent)
    assert jobs.experiment_slots.take(Job.objects.create_claimed(EXPERIMENT_JOB, {}))
    request_cancel(experiment)

    work()
    jobs.experiment_slots.free()

    experiment.refresh_from_db()
    assert (experiment.status, jobs.experiment_slots.taken) == ("cancelled", 0)


def test_a_comparison_is_complete_after_a_version_was_deleted(editor, agent):
    dataset = make_dataset(*"123", scorer_keys=["answer-length"])
    before = run_experiment(dataset, editor, agent)
    agent.instructions = "Be brief."
    agent.save()
    after = run_experiment(dataset, editor, agent)
    agent.versions.get(version_number=1).delete()

    statistics = compute_statistics(before, after)

    assert (before.version_number, after.version_number) == (1, 2)
    assert statistics["scorers"]["answer-length"]["pairs"] == 3
