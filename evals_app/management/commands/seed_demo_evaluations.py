"""The evaluations of the demo: a dataset, an experiment for the live version and the draft of an agent, and a gate."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, cast

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand
from django.db import transaction
from django.utils import timezone

from agentcms.wire.json_types import JSONObject
from agents_app.models import Agent
from agents_app.registry import Kind, registry
from evals_app.datasets.changes import add_items
from evals_app.demo.questions import QUESTIONS, Question
from evals_app.experiments.ending import finish_experiment
from evals_app.experiments.scoring import score_entry
from evals_app.models import Dataset, Experiment, ExperimentResult, ItemVersion, ReleaseGate
from versions_app.models import AgentVersion

if TYPE_CHECKING:
    from django.contrib.auth.models import User

AGENT_ID = "reply-drafter"
KEYLESS_AGENT_ID = "refund-desk"  # of the same team; it answers without an API key
DATASET_ID = "customer-questions"
SCORERS = ("cites-source", "answer-length")
BAR = 0.8  # of the mean of "cites-source"; the draft is below
POLITE = (
    "Hello, and thank you very much for your message. We are glad that you chose one of our lamps, and we are "
    "sorry that you had to write to us about it. We know how annoying it is to wait for an answer, so here it is "
    "at once. {answer} We hope that this helps. If anything is unclear, or if it takes longer than you expect, "
    "please write to us again and we look into it on the same day. You can also call us on working days between "
    "nine and five, and a person from our small team will answer. Many questions are answered on the pages of our "
    "help centre as well, which we improve with each message that we receive, so thank you for yours. We wish you "
    "a pleasant evening under good light. Kind regards, the team of the lamp shop"
)


class Command(BaseCommand):
    """Creates the evaluations of the demo, unless there are datasets or the demo agents are missing."""

    help = "Create a dataset with two experiments and a release gate for a demo agent."

    def handle(self, *args: object, **options: object) -> None:
        agent = Agent.objects.filter(pk=AGENT_ID).select_related("active_version").first()
        user = get_user_model().objects.filter(username="maya").first()
        if Dataset.objects.exists() or agent is None or agent.active_version is None or user is None:
            return
        draft = cast(AgentVersion, agent.versions.order_by("-version_number").first())
        with transaction.atomic():
            dataset = create_dataset(agent)
            create_experiment(dataset, agent.active_version, user, days_ago=9, is_polite=True, uncited_every=10)
            create_experiment(dataset, draft, user, days_ago=1, is_polite=False, uncited_every=3)
            ReleaseGate.objects.create(
                agent=agent, dataset=dataset, scorer=SCORERS[0], minimum=BAR, max_failed=2, created_by=user
            )
        self.stderr.write(f"Created the dataset {DATASET_ID} with two experiments and a release gate of {AGENT_ID}.")


def create_dataset(agent: Agent) -> Dataset:
    dataset = Dataset.objects.create(
        id=DATASET_ID,
        owner_id=agent.owner_id,
        name="Customer questions",
        description="Questions from three months of support, with the answers that we agreed on.",
        scorer_keys=[*SCORERS],
        target_type="agent",
        target_ids=[agent.pk, KEYLESS_AGENT_ID],
    )
    add_items(dataset, [{"input": question.text, "ground_truth": cited_answer(question)} for question in QUESTIONS])
    dataset.refresh_from_db()
    return dataset


def cited_answer(question: Question) -> str:
    return f"{question.answer} [Help centre: {question.page}]"


def create_experiment(
    dataset: Dataset, version: AgentVersion, user: User, *, days_ago: int, is_polite: bool, uncited_every: int
) -> None:
    """Create an experiment that has ended, in which each answer of a certain number cites no source."""
    began = timezone.now() - timedelta(days=days_ago)
    experiment = Experiment.objects.create(
        dataset=dataset,
        dataset_version=dataset.version,
        target_type="agent",
        target_id=version.agent_id,
        target_owner_id=dataset.owner_id,
        target_state="version",
        version_id=version.pk,
        version_number=version.version_number,
        snapshot_hash=version.snapshot_hash,
        total_items=dataset.item_count,
        created_by=user,
        created_by_name=user.get_username(),
        created_at=began,
        started_at=began,
    )
    cited = [bool(number % uncited_every) for number in range(1, len(QUESTIONS) + 1)]
    answers = [answer_to(*pair, is_polite=is_polite) for pair in zip(QUESTIONS, cited, strict=True)]
    add_results(experiment, answers)
    # `finish_experiment` has set the present time.
    Experiment.objects.filter(pk=experiment.pk).update(completed_at=began + timedelta(minutes=2))


def add_results(experiment: Experiment, outputs: list[str]) -> None:
    """Add a result for each item, in their order, and finish the experiment."""
    items = ItemVersion.objects.at_version(experiment.dataset_version).filter(dataset=experiment.dataset_id)
    ExperimentResult.objects.bulk_create(build_results(experiment, list(items.order_by("item_id")), outputs))
    finish_experiment(experiment, Experiment.Status.COMPLETED)


def answer_to(question: Question, is_cited: bool, *, is_polite: bool) -> str:
    answer = cited_answer(question) if is_cited else question.answer
    return POLITE.format(answer=answer) if is_polite else answer


def build_results(
    experiment: Experiment, items: Sequence[ItemVersion], outputs: Sequence[str]
) -> list[ExperimentResult]:
    results = []
    for number, (item, output) in enumerate(zip(items, outputs, strict=True)):
        # Invented figures, which vary a little with the answer and the number of the item.
        tokens = 420 + len(output) // 4
        result = ExperimentResult(
            experiment=experiment,
            item_id=item.item_id,
            item_version=item,
            state=ExperimentResult.State.DONE,
            output=output,
            duration_ms=600 + 7 * tokens // 5 + 37 * (number % 11),
            tokens=tokens,
            cost=Decimal(tokens) / 400_000,
            scores=[score_with(key, output) for key in SCORERS],
            started_at=experiment.created_at,
            completed_at=experiment.created_at,
        )
        results.append(result)
    return results


def score_with(key: str, output: str) -> JSONObject:
    """Return the score that a registered scorer gives an answer."""
    entry = registry.get(Kind.SCORER, key)
    if entry is None or entry.target is None:
        return score_entry(key, error="The scorer is not registered.")
    return score_entry(key, entry.title, entry.target(output))
