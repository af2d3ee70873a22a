"""Stored scorers: their versions, and the runs that they score."""

import asyncio
from types import SimpleNamespace

import pytest
from cachetools import TTLCache
from django.utils.asyncio import async_unsafe

from agentcms.cache import SizeLimitedCache
from agentcms.errors import Conflict, NotFound
from agents_app.configuration.schema import ConfigError
from agents_app.forms.existing_agent import ExistingAgentForm
from agents_app.models import Agent
from agents_app.registry import Kind, registry
from evals_app.models import Scorer
from evals_app.scorers import changes, scoring
from evals_app.scorers.cached_scorers import scorer_table
from evals_app.scorers.live import evaluator
from evals_app.scorers.results import Answer, answer_of_run
from runs_app.scoring import compute_score
from tests.factories import AgentFactory
from tests.runs_app.factories import RunFactory

CHECK = {"name": "Polite", "type": "check", "presetConfig": {"check": "includes", "value": "day"}}

SHOUTED = {"check": "includes", "value": "DAY"}


@pytest.fixture(autouse=True)
def cleared_table(monkeypatch):
    monkeypatch.setattr(scorer_table, "_cache", SizeLimitedCache(TTLCache(1, 60)))


def create(owner_id="", **fields):
    row = changes.create_scorer({**CHECK, **fields.pop("snapshot", {})}, owner_id=owner_id, author="ann", **fields)
    scorer_table.invalidate()
    return row


def change(row, fields, **options):
    changes.change_scorer(row.pk, fields, author="ann", **options)
    scorer_table.invalidate()
    row.refresh_from_db()
    return row


@pytest.mark.django_db
class TestVersions:
    def test_a_change_is_a_version_that_goes_live(self):
        row = change(create(), {"description": "New"})

        assert (row.head.version_number, row.live.version_number) == (2, 2)
        assert row.head.changed_fields == ["description"]

    def test_an_equal_change_is_no_version(self):
        assert change(create(), {"name": "Polite"}).head.version_number == 1

    def test_a_new_scorer_with_the_id_of_a_deleted_one_has_other_versions(self):
        """Charts and comparisons tell the scores of both apart by the number of the version."""
        run = RunFactory(output="A nice day.", agent_key="concierge")
        before = compute_score(run, create(id="polite").pk)["scorer_version"]
        change(create(id="kind"), {"name": "Kind"})
        for key in ("polite", "kind"):
            changes.delete_scorer(Scorer.objects.get(pk=key))
        scorer_table.invalidate()

        after = compute_score(run, create(id="polite", snapshot={"presetConfig": SHOUTED}).pk)["scorer_version"]
        changes.delete_scorer(Scorer.objects.get(pk="polite"))

        assert (before, after, create(id="polite").head.version_number) == (1, 2, 3)
        assert create(id="kind").head.version_number == 3

    def test_a_version_that_was_deleted_meanwhile_does_not_go_live(self):
        row = change(create(), {"name": "Second"})
        first = row.versions.get(version_number=1)
        row.versions.filter(pk=first.pk).delete()

        with pytest.raises(NotFound):
            changes.activate_version(row.pk, first)
        row.refresh_from_db()
        assert row.live.version_number == 2

    def test_a_roll_back_is_not_undone_by_the_next_change(self):
        row = change(create(), {"name": "Second"})

        changes.activate_version(row.pk, row.versions.get(version_number=1))
        row = change(row, {"description": "New"})

        assert (row.live.version_number, row.name, row.live.changed_fields) == (3, "Polite", ["description"])

    def test_a_draft_stays_while_another_version_is_published(self):
        row = change(change(create(), {"name": "Second"}), {"name": "Draft"}, publish=False)

        changes.activate_version(row.pk, row.versions.get(version_number=1))

        row.refresh_from_db()
        assert (row.head.version_number, row.live.version_number) == (3, 1)

    def test_a_published_change_starts_from_live_and_leaves_the_draft(self):
        row = change(change(create(), {"name": "Draft"}, publish=False), {"description": "New"})

        assert (row.live.version_number, row.name, row.live.changed_fields) == (3, "Polite", ["description"])
        assert (row.head.version_number, row.head.snapshot["name"]) == (2, "Draft")
        assert change(row, {}).versions.count() == 3

    def test_a_draft_leaves_the_live_version(self):
        row = change(create(), {"name": "Draft"}, publish=False)

        assert (row.head.version_number, row.live.version_number, row.name) == (2, 1, "Polite")

    def test_restoring_adds_a_version_with_the_old_configuration(self):
        row = change(create(), {"name": "Other"})

        changes.add_restored_version(row.pk, changes.get_scorer_version(row, "1"), "ann")

        row.refresh_from_db()
        assert (row.live.version_number, row.name, row.live.change_message) == (3, "Polite", "Restored v1")

    def test_the_only_version_is_not_deleted_while_it_is_a_draft(self):
        row = create(publish=False)

        with pytest.raises(Conflict, match="No version is live"):
            changes.delete_version(row, row.head)
        assert row.versions.exists()

    def test_the_id_of_a_scorer_in_code_is_taken(self):
        with pytest.raises(Conflict):
            create(id="answer-length")

    @pytest.mark.parametrize(
        ("fields", "field"),
        [
            ({"type": "llm-judge"}, "model.provider"),
            ({"type": "tone", "outputSchema": {"properties": 5}}, "outputSchema"),
            ({"type": "pipeline", "presetConfig": {"generateScore": {"prompt": "Rate it."}}}, "model.provider"),
            (
                {
                    "type": "pipeline",
                    "presetConfig": {"generateScore": {"prompt": "Rate it."}},
                    "model": {"provider": "openai"},
                },
                "model.name",
            ),
            ({"presetConfig": {"check": "magic"}}, "presetConfig.check"),
            ({"presetConfig": {"check": "matches", "pattern": "(?=a)"}}, "presetConfig.pattern"),
            ({"presetConfig": {"check": "json-schema", "schema": {"type": 5}}}, "presetConfig.schema"),
            ({"scoreRange": {"min": 2, "max": 1}}, "scoreRange"),
            ({"type": "trajectory", "presetConfig": {"mode": "loose"}}, "presetConfig.mode"),
            ({"type": "pipeline", "presetConfig": {}}, "presetConfig.generateScore"),
            (
                {"type": "pipeline", "presetConfig": {"generateScore": {"function": []}}},
                "presetConfig.generateScore.function",
            ),
            (
                {"type": "pipeline", "presetConfig": {"generateScore": {"function": "nowhere"}}},
                "presetConfig.generateScore.function",
            ),
            ({"type": "pipeline", "presetConfig": {"prepareRun": [1]}}, "presetConfig.prepareRun"),
            ({"presetConfig": {"check": ["equals"]}}, "presetConfig.check"),
            ({"presetConfig": {"check": "matches", "pattern": 12}}, "presetConfig.pattern"),
            ({"presetConfig": {"check": "max-steps", "max": "5"}}, "presetConfig.max"),
            ({"presetConfig": {"check": "called-tool", "tool": {}, "times": -1}}, "presetConfig.times"),
            ({"presetConfig": {"check": "includes", "values": [{}]}}, "presetConfig.values[0]"),
            ({"type": "trajectory", "presetConfig": {"forbiddenTools": [{}]}}, "presetConfig.forbiddenTools[0]"),
            ({"type": "trajectory", "presetConfig": {"expected": 7}}, "presetConfig.expected"),
        ],
    )
    def test_faults_name_their_field(self, fields, field):
        with pytest.raises(ConfigError) as caught:
            create(snapshot=fields)

        assert field in [issue.field for issue in caught.value.issues]


@pytest.mark.django_db
class TestRunsOfAgents:
    def test_a_run_is_scored_by_the_live_version(self):
        row = change(create(), {"presetConfig": {"check": "includes", "value": "night"}}, publish=False)

        columns = compute_score(RunFactory(agent=AgentFactory()), row.pk)

        assert (columns["score"], columns["label"], columns["scorer_version"]) == (1, "pass", 1)

    def test_a_scorer_of_another_team_scores_nothing(self):
        row = create(owner_id="other")

        assert "No scorer is registered" in compute_score(RunFactory(agent=AgentFactory()), row.pk)["error"]

    def test_the_editor_offers_shared_scorers_and_those_of_the_team(self):
        shared, own, other = (create(owner_id=owner, id=f"of-{owner or 'all'}") for owner in ("", "support", "other"))
        agent = AgentFactory(owner_id="support")
        form = ExistingAgentForm.for_agent(Agent.objects.with_versions().get(pk=agent.pk), None)

        keys = {row["key"] for row in form.scorer_rows}
        assert {shared.pk, own.pk} <= keys
        assert other.pk not in keys

    def test_an_unpublished_scorer_is_not_offered(self):
        create(publish=False)

        assert registry.find_staff_entry(Kind.SCORER, "polite") is None


@pytest.mark.django_db(transaction=True)
class TestScoreAnswer:
    def score(self, key, version=None, answer=Answer("Hi?", "Good day.")):  # noqa: B008  it is frozen
        return asyncio.run(scoring.score_answer(key, version, answer))

    def test_a_named_version_scores(self):
        row = change(create(), {"presetConfig": {"check": "includes", "value": "night"}})

        assert [self.score(row.pk, version=number).score for number in (None, 1, 2)] == [0, 1, 0]

    def test_registered_functions_evaluators_and_unknown_keys(self):
        from pydantic_evals.evaluators import Contains

        evaluator("says-day")(Contains(value="day"))

        assert self.score("answer-length").score is not None
        assert self.score("says-day").score == 1
        assert "Unknown scorer 'gone'" in self.score("gone").error

    def test_an_evaluator_runs_outside_of_the_event_loop(self):
        """There it may block, and query the database."""
        evaluator("queries")(SimpleNamespace(evaluate=async_unsafe(lambda context: True)))

        result = self.score("queries")

        assert (result.score, result.error) == (1, "")

    def test_the_run_gives_its_calls(self):
        chunks = [
            ("step-start", {}),
            ("tool-call", {"toolCallId": "1", "toolName": "refund", "args": {"order": "A1"}}),
            ("tool-result", {"toolCallId": "1", "toolName": "refund", "result": "Done"}),
        ]
        row = create(snapshot={"type": "trajectory", "presetConfig": {"expected": ["refund"]}})

        result = self.score(row.pk, answer=answer_of_run(RunFactory(agent=AgentFactory(), chunks=chunks)))

        assert (result.score, result.details["calls"]) == (1, ["refund"])


@pytest.mark.django_db
def test_true_in_place_of_1_is_a_change():
    row = create(snapshot={"presetConfig": {"check": "equals", "value": 1}})

    row = change(row, {"presetConfig": {"check": "equals", "value": True}})

    assert row.versions.count() == 2
    assert row.live.snapshot["presetConfig"]["value"] is True
    assert row.live.changed_fields == ["presetConfig"]
