"""The evaluations of the demo data."""

import pytest
from django.core.management import call_command

from agents_app.editing.change_context import change
from evals_app.compare.pairs import compute_statistics
from evals_app.gates.checking import check_gates, gates_for
from evals_app.models import Dataset, Experiment
from evals_app.views.start_experiment import default_target
from tests.factories import AgentFactory, UserFactory


@pytest.mark.django_db
def test_the_draft_of_the_demo_misses_the_gate_that_its_live_version_meets():
    UserFactory(username="maya")
    agent = AgentFactory(id="reply-drafter", owner_id="support")
    with change(publish=False):
        agent.edit({"description": "Shorter"})
    live, draft = agent.versions.order_by("version_number")

    call_command("seed_demo_evaluations")
    call_command("seed_demo_evaluations")  # changes nothing

    assert Dataset.objects.get().item_count == 40
    after, before = Experiment.objects.all()
    assert (before.version_number, after.version_number, after.succeeded_count) == (1, 2, 40)
    agent.refresh_from_db()
    assert [state.is_met for state in check_gates(agent, live, gates_for(agent))] == [True]
    (missed,) = check_gates(agent, draft, gates_for(agent))
    assert "Version 2 needs 0.80 on 'Cites a source'" in missed.message
    assert not missed.is_met
    figures = compute_statistics(before, after)["scorers"]
    assert figures["cites-source"]["worse"] > figures["cites-source"]["better"]
    assert figures["answer-length"]["better"] == 40


@pytest.mark.django_db
def test_an_experiment_of_the_demo_offers_an_agent_that_answers_without_a_key():
    UserFactory(username="maya")
    AgentFactory(id="reply-drafter", owner_id="support")

    call_command("seed_demo_evaluations")

    providers = {"reply-drafter": "anthropic", "refund-desk": "demo"}
    assert default_target(Dataset.objects.get(), providers) == "agent:refund-desk"
