"""The retry of many failed items: their threads are found at once, and those of other items stay."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agentcms.errors import ApiError
from evals_app.experiments.memory import own_thread_prefix
from evals_app.experiments.retrying import retry_failed
from evals_app.models import Experiment, ExperimentResult
from memory_app.models import Thread
from tests.evals_app.experiment_runs import make_dataset, new_experiment
from tests.memory_app.conftest import add_thread

pytestmark = pytest.mark.django_db


def ended(editor, agent, count, answers=0):
    """Return an experiment that has ended, with failed items and then some answers."""
    dataset = make_dataset(*map(str, range(count + answers)), pk=f"of-{count}")
    experiment = new_experiment(dataset, editor, agent)
    for number, version in enumerate(dataset.item_versions.order_by("item_id")):
        ExperimentResult.objects.create(
            experiment=experiment,
            item_id=version.item_id,
            item_version=version,
            state="done",
            error={"message": "No"} if number < count else None,
        )
    Experiment.objects.filter(pk=experiment.pk).update(status="completed")
    return experiment


def test_a_retry_takes_as_many_queries_for_few_items_as_for_many(editor, agent):
    counts = []
    for count in (2, 30):
        experiment = ended(editor, agent, count)
        with CaptureQueriesContext(connection) as queries:
            assert retry_failed(experiment, editor) == count
        counts.append(len(queries))

    assert counts[0] == counts[1]


def test_a_retry_deletes_the_threads_of_failed_items_alone(editor, agent):
    experiment = ended(editor, agent, 2, answers=1)
    for result in experiment.results.all():
        for retry in (0, 12):
            thread = add_thread(editor, f"{own_thread_prefix(result)}{retry}")
            Thread.objects.filter(pk=thread.pk).update(experiment_id=experiment.pk)
    shared = add_thread(editor, f"eval-thread-{experiment.pk}")
    Thread.objects.filter(pk=shared.pk).update(experiment_id=experiment.pk)

    retry_failed(experiment, editor)

    answer = experiment.results.get()
    expected = {f"{own_thread_prefix(answer)}{retry}" for retry in (0, 12)} | {shared.key}
    assert {*Thread.objects.values_list("key", flat=True)} == expected


def test_a_retry_counts_as_an_experiment_of_its_user(editor, agent, settings):
    settings.EXPERIMENTS_PER_USER = 1
    experiment = ended(editor, agent, 1)
    new_experiment(make_dataset("Other", pk="other"), editor, agent)

    with pytest.raises(ApiError, match="limit of 1 unfinished experiment"):
        retry_failed(experiment, editor)

    experiment.refresh_from_db()
    assert (experiment.status, experiment.results.count()) == ("completed", 1)
