"""The search of lists in the admin."""

import pytest
from django.urls import reverse

from agents_app.models import Agent
from evals_app.models import Experiment
from jobs_app.models import Job
from tests.evals_app.experiment_runs import make_dataset
from tests.factories import AgentFactory, UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def staff(client):
    client.force_login(UserFactory(is_staff=True, is_superuser=True))
    return client


def keys_of(client, model, search):
    page = client.get(reverse(f"admin:{model._meta.label_lower.replace('.', '_')}_changelist"), {"q": search})
    assert page.status_code == 200
    return [str(row.pk) for row in page.context["cl"].result_list]


@pytest.mark.parametrize(
    "search", ["Équipe", "équipe", "ÉQUIPE", "nuit ÉQUIPE", '"équipe de nuit"', "ÉQUIPE porter", "(É"]
)
def test_letters_beyond_z_are_found_in_upper_and_lower_case(staff, search):
    AgentFactory(id="porter", name="Équipe de nuit (Été)")
    AgentFactory(id="guide", name="Equipe de jour")

    assert keys_of(staff, Agent, search) == ["porter"]


def test_the_parts_of_a_search_are_all_needed(staff):
    AgentFactory(id="porter", name="Équipe de nuit")

    assert keys_of(staff, Agent, "équipe jour") == []


@pytest.mark.parametrize("word", ["a", "é"])
def test_a_list_without_a_search_shows_all_rows(staff, word):
    job = Job.objects.create(kind="check_history")

    assert keys_of(staff, Job, word) == [str(job.pk)]


@pytest.mark.parametrize("word", ["team", "équipe"])
def test_the_words_of_a_very_long_search_are_limited(staff, word):
    AgentFactory(id="porter", name="Équipe de nuit, a night team")
    AgentFactory(id="guide", name="Guide")

    assert keys_of(staff, Agent, f"{word} " * 1500) == ["porter"]


def test_columns_that_are_only_compared_as_a_whole_do_not_prevent_a_search(staff):
    dataset = make_dataset("One")
    experiment = Experiment.objects.create(dataset=dataset, dataset_version=1, target_id="x", name="Été")

    assert keys_of(staff, Experiment, "été") == [str(experiment.pk)]
