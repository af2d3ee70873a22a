"""The creation of experiments."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, cast
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from access_app.caller import Caller
from access_app.permissions import require_role
from access_app.role import Role
from agentcms.errors import ApiError, Conflict
from agentcms.ids import uuid7
from agentcms.plural import pluralize
from agentcms.wire.json_types import JSONObject
from agents_app.configuration.schema import ConfigError, Issue
from evals_app.experiments import targets
from evals_app.experiments.direct.targets import find_callee, version_state_of
from evals_app.experiments.jobs import enqueue_experiment
from evals_app.experiments.memory import shares_thread
from evals_app.experiments.scoring import live_scorer_versions, missing_scorers
from evals_app.models import Dataset, DatasetItem, Experiment, ItemVersion
from evals_app.models.item import ItemVersionQuerySet
from jobs_app.limits import JOB_RETRY_AFTER, lock_jobs_of
from memory_app.realms import served_owner

if TYPE_CHECKING:
    from django.contrib.auth.models import User

GROUPING = {
    "experiment_set_id": "experimentSetId",
    "comparison_id": "comparisonId",
    "variant_id": "variantId",
    "trial_index": "trialIndex",
}


def create_experiment(dataset: Dataset, options: JSONObject, user: Caller) -> Experiment:
    """Create an experiment, and start it unless `start` is false. Raise ApiError, ConfigError and RoleRequired.

    A second call with the same `id` returns the same experiment, and starts nothing.
    """
    if (same := _find_same(dataset, options)) is not None:
        return same
    try:
        with transaction.atomic():
            experiment = save_experiment(dataset, options, user)
            if not experiment.is_external:
                reject_many_experiments(user)
                enqueue_experiment(experiment)
    except IntegrityError:
        # A repeated call at the same moment was faster, so its row has the ID.
        if (same := _find_same(dataset, options)) is None:  # the dataset was deleted meanwhile
            raise
        return same
    return experiment


def reject_many_experiments(user: Caller) -> None:
    """Raise ApiError if a user has too many unfinished experiments, with the new one."""
    # Of two calls at the same moment, the second waits and counts the experiment of the first.
    lock_jobs_of(user)
    limit = settings.EXPERIMENTS_PER_USER
    if Experiment.objects.unfinished().filter(created_by=user.pk, is_external=False).count() > limit:
        message = (
            f"You have reached the limit of {pluralize(limit, 'unfinished experiment')}. "
            "Wait until one ends, or cancel one."
        )
        raise ApiError(429, message, "too_many_experiments", headers={"Retry-After": str(JOB_RETRY_AFTER)})


def save_experiment(dataset: Dataset, options: JSONObject, user: Caller) -> Experiment:
    """Create an experiment that nothing has started. Raise ApiError, ConfigError and RoleRequired."""
    version = options.get("version")
    version = dataset.version if version is None else version
    if version > dataset.version:
        raise ConfigError([Issue("version", f"The dataset has {pluralize(dataset.version, 'version')}.")])
    items = ItemVersion.objects.at_version(version).filter(dataset=dataset)
    items = items.filter(item__in=DatasetItem.objects.not_purged_before(timezone.now()))
    reject_unknown_scorers(options, dataset, items)
    count = items.count()
    if not count:
        message = f"Dataset '{dataset.pk}' has no items at version {version}. Add an item first."
        raise ApiError(409, message, "EXPERIMENT_NO_ITEMS")
    experiment = build_experiment(dataset, options, user, version)
    used = used_scorers(experiment, items)
    experiment.is_external = options.get("start") is False
    if not experiment.is_external:
        reject_unused_scorers(experiment, used)
    experiment.scorer_versions = live_scorer_versions(used)
    experiment.total_items = count * experiment.repeats
    # An ID that was sent may be taken. That must be an IntegrityError, and no change of the row that has it.
    experiment.save(force_insert=True)
    return experiment


def used_scorers(experiment: Experiment, items: ItemVersionQuerySet) -> set[str]:
    """Return the scorers that an experiment uses: its own, else those of the dataset and of its items."""
    if experiment.scorer_keys is not None:
        return {*experiment.scorer_keys}
    rows = items.filter(scorer_keys__isnull=False).order_by().values_list("scorer_keys", flat=True).distinct()
    return {*experiment.dataset.scorer_keys, *(key for keys in rows for key in keys or ())}


def reject_unused_scorers(experiment: Experiment, used: Collection[str]) -> None:
    """Raise ConfigError for bars and gate scorers that would score no answer: the verdict could never be good."""
    names = {"bars": [*experiment.bars], "gateScorers": experiment.gate_scorers or []}
    # The scorers of the dataset and of its items do not count if the experiment names some.
    place = "its scorers" if experiment.scorer_keys is not None else "its scorers, or to those of the dataset"
    issues = [
        Issue(field, f"'{key}' is not among the scorers of the experiment. Add it to {place}.")
        for field, keys in names.items()
        for key in keys
        if key not in used
    ]
    if issues:
        raise ConfigError(issues)


def _find_same(dataset: Dataset, options: JSONObject) -> Experiment | None:
    """Return the experiment with the ID that was sent, or None. Raise Conflict if it is another one."""
    same = Experiment.objects.filter(pk=options["id"]).first() if options.get("id") else None
    if same is None:
        return None
    sent = (dataset.pk, options.get("target_id") or "", options.get("start") is False)
    if sent != (same.dataset_id, same.target_id, same.is_external):
        raise Conflict("The ID of the experiment is taken. Send another one.", "already_exists")
    return same


def build_experiment(dataset: Dataset, options: JSONObject, user: Caller, version: int) -> Experiment:
    """Return an experiment that is not saved. Raise ApiError for a target that the user may not run."""
    memory = {name: value for name, value in (options.get("memory") or {}).items() if value is not None}
    experiment = Experiment(
        pk=UUID(options["id"]) if options.get("id") else uuid7(),
        dataset=dataset,
        dataset_version=version,
        **{name: options.get(name) or "" for name in ("name", "description")},
        **{name: options.get(name) or {} for name in ("metadata", "request_context", "budget", "bars")},
        scorer_keys=options.get("scorer_ids"),
        dataset_scorer_keys=dataset.scorer_keys,
        # A thread has one active run at a time.
        concurrency=1 if shares_thread(memory) else options.get("max_concurrency") or 4,
        repeats=options.get("repeats") or 1,
        seed=options.get("seed"),
        memory=memory,
        gate_scorers=options.get("gate_scorers"),
        provenance=options.get("provenance"),
        created_by=cast("User", user),
        created_by_name=cast("User", user).get_username(),
        realm_owner=served_owner(user),
        **{name: (options.get("grouping") or {}).get(wire) for name, wire in GROUPING.items()},
    )
    if options.get("target_id"):
        set_target(experiment, options, user)
    return experiment


def set_target(experiment: Experiment, options: JSONObject, user: Caller) -> None:
    """Set the target of a new experiment with its version and snapshot."""
    version = options.get("agent_version") or ""
    if options["target_type"] != Experiment.Target.AGENT:
        set_callee(experiment, options["target_type"], options["target_id"], version, user)
        return
    target = targets.find_agent_target(user, options["target_id"], version)
    require_role(user, Role.EDITOR, target.agent.owner_id)
    experiment.target_type, experiment.target_id = options["target_type"], target.agent.id
    experiment.target_owner_id, experiment.target_state = target.agent.owner_id, target.state
    experiment.version_id, experiment.version_number = target.agent.version_id, target.agent.version_number
    experiment.snapshot_hash, experiment.sub_agent_versions = target.snapshot_hash, target.sub_agents


def set_callee(experiment: Experiment, kind: str, key: str, version: str, user: Caller) -> None:
    """Set a workflow or a scorer as the target. Users who may edit the dataset may call them."""
    owner_id = experiment.dataset.owner_id
    require_role(user, Role.EDITOR, owner_id)
    callee = find_callee(kind, key, owner_id, version)
    experiment.target_type, experiment.target_id, experiment.target_owner_id = kind, callee.key, owner_id
    experiment.target_state = version_state_of(version)
    for name, value in callee.columns.items():
        setattr(experiment, name, value)


def reject_unknown_scorers(options: JSONObject, dataset: Dataset, items: ItemVersionQuerySet) -> None:
    """Raise ApiError, which names the first unknown scorer of the experiment, or of the dataset if items use it."""
    named = options.get("scorer_ids")
    missing = missing_scorers(dataset.scorer_keys if named is None else named, dataset.owner_id)
    if not missing:
        return
    message = f"Scorer with id {missing[0]} not found"
    if named is None:
        if not options.get("target_id") or not items.filter(scorer_keys__isnull=True).exists():
            return
        message += f". Dataset '{dataset.pk}' names it: change its scorers, or name others for the experiment"
    raise ApiError(404, message, "EXPERIMENT_SCORER_NOT_FOUND")
