"""Datasets, experiments and judges that the benchmark of evaluations measures."""

from __future__ import annotations

import asyncio
import json
from typing import Any

CONCURRENCY = 10
ANSWER = "I am the demo model 'echo'. You said: Question {}"
JUDGES, JUDGE_DELAY = 3, 0.2  # seconds


def create_rows() -> tuple[Any, Any]:
    """Return the user and the agent of the measurements."""
    from django.contrib.auth import get_user_model

    from agents_app.models import Agent

    user, _ = get_user_model().objects.get_or_create(username="bench", is_superuser=True, is_staff=True)
    agent = Agent.objects.filter(pk="bench").first()
    if agent is None:
        model = {"provider": "demo", "name": "echo", "delay": 0}
        agent = Agent(id="bench", name="Bench", instructions="", model=model)
        agent.save()
    return user, agent


def create_dataset(name: str, count: int) -> Any:
    from evals_app.datasets.changes import add_items
    from evals_app.models import Dataset

    dataset = Dataset.objects.create(pk=name, name=name, scorer_keys=["exact"])
    for start in range(0, count, 5000):
        numbers = range(start, min(start + 5000, count))
        add_items(dataset, [{"input": f"Question {n}", "ground_truth": ANSWER.format(n)} for n in numbers])
    dataset.refresh_from_db()
    return dataset


def start_experiment(dataset: Any, user: Any, agent: Any, **options: Any) -> Any:
    from evals_app.experiments.creation import save_experiment
    from evals_app.experiments.options import parse_experiment

    body = {"targetType": "agent", "targetId": agent.pk, "maxConcurrency": CONCURRENCY, **options}
    return save_experiment(dataset, parse_experiment(body), user)


def run_experiment(dataset: Any, user: Any, agent: Any, **options: Any) -> Any:
    from evals_app.experiments.running.foreground import create_command_job, run_to_end

    experiment = start_experiment(dataset, user, agent, **options)
    run_to_end(experiment, create_command_job(experiment))
    experiment.refresh_from_db()
    return experiment


def create_judges() -> list[str]:
    """Return the keys of judges whose model answers after a delay."""
    from pydantic_ai.messages import ModelResponse, TextPart
    from pydantic_ai.models.function import FunctionModel

    from agents_app.registry import Entry, Kind, registry
    from evals_app.scorers.changes import create_scorer
    from runs_app.providers import cached_providers

    async def answer(messages: Any, info: Any) -> ModelResponse:
        await asyncio.sleep(JUDGE_DELAY)
        return ModelResponse([TextPart(json.dumps({"reason": "Good.", "pass": True, "score": 0.75}))])

    registry.add(Entry(Kind.MODEL_PROVIDER, "judge", "Judge", target=lambda name, choice: FunctionModel(answer)))
    cached_providers.invalidate()
    keys = [f"judge-{number}" for number in range(JUDGES)]
    for key in keys:
        model = {"provider": "judge", "name": "one"}
        snapshot = {"name": key, "type": "llm-judge", "model": model, "instructions": "Be strict."}
        create_scorer(snapshot, owner_id="", author="bench", id=key)
    return keys


def store_results(experiment: Any, count: int) -> None:
    """Store the results of the first items of an experiment, as its worker does."""
    from evals_app.models import ExperimentResult, ItemVersion

    items = ItemVersion.objects.at_version(experiment.dataset_version).filter(dataset=experiment.dataset_id)
    rows = items.order_by("item_id")
    for begin in range(0, count, 500):
        batch = rows[begin : min(begin + 500, count)]
        ExperimentResult.objects.bulk_create([build_result(experiment, item, 0, 0.0) for item in batch])


def store_experiment(dataset: Any, agent: Any, user: Any, shift: float) -> Any:
    """Store an experiment that has ended, as a worker leaves it."""
    from evals_app.experiments.ending import finish_experiment
    from evals_app.models import Experiment, ExperimentResult, ItemVersion

    version = agent.active_version
    row = Experiment.objects.create(
        dataset=dataset,
        dataset_version=dataset.version,
        target_type="agent",
        target_id=agent.pk,
        version_id=version.pk,
        version_number=version.version_number,
        snapshot_hash=version.snapshot_hash,
        total_items=dataset.item_count,
        created_by=user,
    )
    items = ItemVersion.objects.at_version(dataset.version).filter(dataset=dataset)
    results = [build_result(row, item, number, shift) for number, item in enumerate(items)]
    ExperimentResult.objects.bulk_create(results, batch_size=500)
    finish_experiment(row, Experiment.Status.COMPLETED)
    return row


def build_result(experiment: Any, item: Any, number: int, shift: float) -> Any:
    from evals_app.experiments.scoring import score_entry
    from evals_app.models import ExperimentResult

    return ExperimentResult(
        experiment=experiment,
        item_id=item.item_id,
        item_version=item,
        state="done",
        output=f"{item.ground_truth} {shift}",
        duration_ms=1000 + number % 200,
        tokens=100,
        scores=[score_entry("exact", "", (number % 7) / 10 + shift), score_entry("other", "", (number % 5) / 5)],
    )
