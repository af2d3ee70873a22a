"""Release gates that are added or raised later, that warn, that hold for a team, and sub-agents that changed."""

import json

import pytest

from agents_app.editing.change_context import change
from agents_app.editing.version_refusals import GateNotMet
from evals_app.api.experiment_representation import result_body
from evals_app.datasets.changes import add_items, delete_items
from evals_app.experiments.external import finalize_experiment, run_item, submit_result
from evals_app.models import Dataset, Experiment, ReleaseGate
from evals_app.scorers.changes import change_scorer, create_scorer
from tests.api_client import Caller, agent_path
from tests.evals_app.experiment_runs import make_dataset, new_experiment, run_experiment
from tests.evals_app.gates.test_gates import experiment_of, live_number
from tests.factories import AgentFactory, api_key, member
from tests.runs import DEMO

pytestmark = pytest.mark.django_db


@pytest.fixture
def agent():
    row = AgentFactory(id="concierge", instructions="One")
    make_dataset({"input": "One", "ground_truth": "One"})
    ReleaseGate.objects.create(agent=row, dataset_id="support", scorer="exact", minimum=0.8)
    return row


def test_undo_never_publishes_what_was_not_live(agent):
    with change(publish=False):
        draft = agent.edit({"instructions": "Two"})
    experiment_of(draft)
    draft.activate()
    with change(publish=False):
        unmet = agent.edit({"instructions": "Three"})

    agent.activations.first().undo()

    assert live_number(agent) == 1
    with pytest.raises(GateNotMet):
        unmet.activate()
    assert live_number(agent) == 1


def test_a_gate_that_is_added_later_leaves_what_is_live(agent):
    ReleaseGate.objects.all().delete()
    agent.edit({"instructions": "Two"})
    ReleaseGate.objects.create(agent=agent, dataset_id="support", scorer="exact", minimum=0.8)

    agent.activations.first().undo()

    assert live_number(agent) == 1


def test_a_bar_that_is_raised_holds_for_the_next_version(agent):
    with change(publish=False):
        draft = agent.edit({"instructions": "Two"})
    experiment_of(draft, mean=0.85)
    agent.gates.update(minimum=0.9)

    with pytest.raises(GateNotMet, match="its last experiment scored"):
        draft.activate()


@pytest.mark.usefixtures("idle_engine")
def test_what_a_program_outside_drives_meets_no_gate(agent):
    """It could submit what it likes, or run an easy item as often as the dataset has items."""
    answer = "I am the demo model 'echo'. You said: {}"
    agent.edit({"model": DEMO})
    dataset = Dataset.objects.get()
    items = [{"input": text, "ground_truth": answer.format(text)} for text in ("One", "Two")]
    one, two = (version.item_id for version in add_items(dataset, items))
    delete_items(dataset, [dataset.items.first().pk])
    with change(publish=False):
        draft = agent.edit({"instructions": ""})
    editor = member("editor")

    for runs in ([(one, 0), (one, 1)], [(one, 0), (two, 0)], []):
        experiment = new_experiment(dataset, editor, agent, start=False, scorerIds=["exact"], agentVersion="draft")
        for item, attempt in runs:
            run_item(experiment, str(item), {"attempt": attempt}, editor)
        for item in (one, two) if not runs else ():
            scores = [{"scorerId": "exact", "score": 1}]
            submit_result(experiment, {"item_id": str(item), "output": "", "scores": scores, "trace_id": "of-mine"})
        experiment.refresh_from_db()
        finalize_experiment(experiment)
        assert (experiment.status, experiment.succeeded_count) == ("completed", 2)
        assert experiment.summary["scorers"]["exact"]["mean"] == 1.0
        with pytest.raises(GateNotMet):
            draft.activate()
    assert [result_body(result)["traceId"] for result in experiment.results.all()] == ["of-mine"] * 2
    assert experiment.title.endswith("(submitted)")


@pytest.mark.usefixtures("idle_engine")
def test_a_gate_warns_of_sub_agents_that_changed_since_the_experiment(agent):
    helper = AgentFactory(id="helper", model=DEMO)
    with change(publish=False):
        agent.edit({"model": DEMO, "agents": ["helper"]})
    run_experiment(Dataset.objects.get(), member("editor"), agent, scorerIds=["exact"], agentVersion="draft")
    agent.gates.update(minimum=0)
    path = agent_path("concierge", "gates")
    manager = Caller(api_key(member("manager")))

    before = manager.get(path).body["gates"][0]
    helper.edit({"instructions": "Other"})
    after = manager.get(path).body["gates"][0]

    assert [before["met"], before["warning"]] == [True, None]
    assert [after["met"], after["warning"]] == [True, "Sub-agents changed since the experiment: helper."]


def test_a_gate_that_only_warns_says_so_whenever_a_version_goes_live_over_http(agent):
    agent.gates.update(mode="warn")
    publisher = Caller(api_key(member("publisher")))
    need = "needs 0.80 on 'Equals the ground truth' over 'Support'; no experiment has tested it."
    with change(publish=False):
        draft = agent.edit({"instructions": "Two"})

    saved = publisher.patch(agent_path(), {"instructions": "Three", "autoPublish": False})
    activated = publisher.post(agent_path("concierge", "versions", str(draft.pk), "activate"), {})
    published = publisher.patch(agent_path(), {"instructions": "Four", "autoPublish": True})
    restored = publisher.post(agent_path("concierge", "versions", str(draft.pk), "restore"), {"autoPublish": True})

    assert (saved.body["warnings"], live_number(agent)) == ([], 5)
    assert activated.body["warnings"] == [{"field": "gates", "key": "gates", "message": f"Version 2 {need}"}]
    assert published.body["warnings"] == [{"field": "gates", "key": "gates", "message": f"Version 4 {need}"}]
    assert "warnings" not in restored.body  # it was live before


@pytest.mark.usefixtures("idle_engine")
def test_a_gate_warns_of_sub_agents_that_changed_when_a_version_goes_live(agent):
    helper = AgentFactory(id="helper", model=DEMO)
    with change(publish=False):
        draft = agent.edit({"model": DEMO, "agents": ["helper"]})
    run_experiment(Dataset.objects.get(), member("editor"), agent, scorerIds=["exact"], agentVersion="draft")
    agent.gates.update(minimum=0)
    helper.edit({"instructions": "Other"})
    publisher = Caller(api_key(member("publisher")))

    answer = publisher.post(agent_path("concierge", "versions", str(draft.pk), "activate"), {})

    assert answer.status_code == 200
    assert [entry["message"] for entry in answer.body["warnings"]] == [
        "Sub-agents changed since the experiment: helper."
    ]


@pytest.mark.usefixtures("idle_engine")
def test_a_gate_warns_of_sub_agents_of_sub_agents_too(agent):
    deepest = AgentFactory(id="deepest", model=DEMO)
    AgentFactory(id="helper", model=DEMO, agents=["deepest"])
    with change(publish=False):
        agent.edit({"model": DEMO, "agents": ["helper"]})
    run_experiment(Dataset.objects.get(), member("editor"), agent, scorerIds=["exact"], agentVersion="draft")
    agent.gates.update(minimum=0)

    deepest.edit({"instructions": "Other"})
    (gate,) = Caller(api_key(member("manager"))).get(agent_path("concierge", "gates")).body["gates"]

    assert gate["warning"] == "Sub-agents changed since the experiment: deepest."


def test_a_gate_warns_of_other_versions_of_its_scorer(agent):
    snapshot = {"name": "Says", "type": "check", "presetConfig": {"check": "includes", "value": "You"}}
    create_scorer(snapshot, owner_id="", author="ann", id="says")
    change_scorer("says", {"name": "Says so"}, author="ann")
    agent.gates.update(scorer="says", statistic="difference_to_live", minimum=0)
    with change(publish=False):
        draft = agent.edit({"instructions": "Two"})
    for version, number in ((agent.active_version, 2), (draft, 1)):
        experiment_of(version, scorer_versions={"says": number})
    Experiment.objects.update(summary={"scorers": {"says": {"mean": 0.9}}})
    path, manager = agent_path("concierge", "gates"), Caller(api_key(member("manager")))

    (gate,) = manager.get(path).body["gates"]
    Experiment.objects.update(scorer_versions={"says": 2})
    (same,) = manager.get(path).body["gates"]

    warning = "The experiment was scored by v1 of 'says', but v2 is live and v2 scored the live version."
    assert [gate["met"], gate["warning"]] == [True, warning]
    assert [same["met"], same["warning"]] == [True, None]


def test_a_manager_makes_a_gate_for_all_agents_over_http(agent):
    ReleaseGate.objects.all().delete()
    manager = Caller(api_key(member("manager")))
    path = agent_path("concierge", "gates")

    gate = manager.post(path, {"datasetId": "support", "scorer": "exact", "min": 0.8, "allAgents": True}).body
    other = AgentFactory(id="other", instructions="One")
    with change(publish=False):
        draft = other.edit({"instructions": "Two"})
    with pytest.raises(GateNotMet):
        draft.activate()
    lowered = manager.patch(agent_path("other", "gates", gate["id"]), {"min": 0.1})
    narrowed = manager.patch(f"{path}/{gate['id']}", {"allAgents": False})
    draft.activate()

    assert (gate["agentId"], gate["allAgents"], lowered.body["min"]) == (None, True, 0.1)
    assert (narrowed.body["agentId"], manager.delete(f"{path}/{gate['id']}").status_code) == ("concierge", 200)
    assert Caller(api_key(member("publisher"))).post(path, {"allAgents": True}).status_code == 403


def test_strangers_to_a_team_gate_learn_nothing_of_its_dataset(agent):
    AgentFactory(id="own", owner_id="support")
    make_dataset("One", pk="secret", owner_id="support")
    ReleaseGate.objects.create(owner_id="support", dataset_id="secret", scorer="exact", minimum=0.8)
    outside = Caller(api_key(member("manager", "elsewhere")))

    assert outside.get(agent_path("own", "gates")).status_code == 404
    assert "secret" not in json.dumps(outside.get(agent_path("concierge", "gates")).body)
