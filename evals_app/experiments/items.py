"""The start of items of an experiment as runs, and what their runs answered."""

from __future__ import annotations

import json

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone

from access_app.caller import Caller
from agentcms.errors import ApiError, Unavailable
from agentcms.wire.json_types import JSONObject
from agents_app.configuration.variables import is_reserved
from agents_app.editing.archive_guard import AgentArchived
from agents_app.models import Agent
from evals_app.datasets.changes import reject_purged
from evals_app.experiments.memory import ThreadRequired, mark_thread, thread_for
from evals_app.experiments.results import store_result
from evals_app.experiments.scoring import missing_scorers, scorer_keys
from evals_app.experiments.spending import add_earlier_spending, run_tree, spent_by_runs
from evals_app.models import Experiment, ExperimentResult, ItemVersion
from runs_app.engine.start.memory import ThreadActive
from runs_app.engine.start.run import ExperimentItem, start_run
from runs_app.resolution import ResolvedAgent
from runs_app.runs_of_resources import digest_of_run

SCORER_NOT_FOUND = "EXPERIMENT_ITEM_SCORER_NOT_FOUND"


class MustWait(Exception):
    """The item cannot start now, because its thread is in use or this server stops."""


def messages_of(value: object) -> object:
    """Return the messages for the input of an item: a text, messages, or any other JSON value as its text."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and "messages" in value:
        return value["messages"]
    if isinstance(value, dict) and "role" in value:
        return [value]
    if isinstance(value, list) and all(isinstance(item, dict) and ("role" in item) for item in value) and value:
        return value
    if isinstance(value, dict) and isinstance(value.get("prompt"), str):
        return value["prompt"]
    return json.dumps(value, ensure_ascii=False)


def start_item(
    experiment: Experiment,
    version: ItemVersion,
    agent: ResolvedAgent,
    user: Caller,
    *,
    attempt: int = 0,
    earlier: ExperimentResult | None = None,
    request_context: JSONObject | None = None,
) -> ExperimentResult | None:
    """Start the run of an item with the row of its result, or store why it cannot run.

    `earlier` is the result of a run whose process died. Return None if another process was first. Raise MustWait.
    """
    result = prepare_start(earlier or ExperimentResult(attempt=attempt), experiment, version)
    try:
        with transaction.atomic():  # a row without its run is taken for one whose process died
            if earlier is None:
                result.save(force_insert=True)
            else:
                count_lost_run(earlier)
            _start(result, agent, user, request_context or {})
    except IntegrityError:
        return None
    except (ThreadActive, Unavailable) as error:
        raise MustWait from error
    except (ApiError, ValidationError, PermissionDenied, ThreadRequired, Agent.DoesNotExist, AgentArchived) as error:
        return save_failure(result, error, earlier is None)
    return result


def prepare_start(result: ExperimentResult, experiment: Experiment, version: ItemVersion) -> ExperimentResult:
    """Set what the start of an item reads of its result, and count a further attempt. Return the result."""
    result.experiment, result.item_version, result.item_id = experiment, version, version.item_id
    result.retry_count += not result._state.adding  # a row that is stored already had an attempt before
    return result


def count_lost_run(result: ExperimentResult) -> None:
    """Count what the run of a result has spent, which its next run replaces."""
    if result.run is not None:
        add_earlier_spending(result.experiment_id, spent_by_runs(run_tree(result.run)))


def _start(result: ExperimentResult, agent: ResolvedAgent, user: Caller, request_context: JSONObject) -> None:
    experiment, version = result.experiment, result.item_version
    require_runnable(experiment, version)
    thread = thread_for(experiment, result, agent.configuration, user)
    context = {**experiment.request_context, **request_context, **(version.request_context or {})}
    options = {"toolMocks": version.tool_mocks or [], "unmockedToolPolicy": version.unmocked_tool_policy}
    run = start_run(
        agent,
        user=user,
        messages=messages_of(version.input),
        thread=thread.thread,
        resource=thread.resource if thread.thread else "",
        # `thread_for` has read the reserved names, such as that of the resource. A run refuses them.
        request_context={key: value for key, value in context.items() if not is_reserved(key)},
        options=seed_options(experiment, result.attempt),
        experiment=ExperimentItem(experiment.pk, options),
    )
    if thread.is_new:
        mark_thread(experiment, run.thread_id)
    result.run, result.run_key, result.started_at = run, run.pk, timezone.now()
    result.resource_digest = digest_of_run(run)
    result.save(update_fields=["run", "run_key", "resource_digest", "started_at", "retry_count"])


def require_runnable(experiment: Experiment, version: ItemVersion) -> None:
    """Raise ApiError for a purged item, and for the first unknown scorer of an item."""
    reject_purged(version.item)
    if missing := missing_scorers(scorer_keys(experiment, version), experiment.dataset.owner_id):
        raise ApiError(404, f"Scorer with id {missing[0]} not found", SCORER_NOT_FOUND)


def seed_options(experiment: Experiment, attempt: int) -> JSONObject:
    """Return the options of a run. Each attempt at an item has its own seed, or the answers would be the same."""
    return {} if experiment.seed is None else {"seed": experiment.seed + attempt}


def save_failure(result: ExperimentResult, error: Exception, is_new: bool) -> ExperimentResult | None:
    """Store the result of an item that cannot run. Return None if another process was first.

    An item that ran before keeps what that has cost.
    """
    result.error, result.duration_ms, result.completed_at = error_body(error), 0, timezone.now()
    if not is_new:
        if result.run is not None:
            result.tokens, result.cost = spent_by_runs(run_tree(result.run))
        is_stored = store_result(result, result.retry_count - 1)  # the new number was not stored
    else:
        result.state = ExperimentResult.State.DONE
        is_stored = insert_result(result)
    result.state = ExperimentResult.State.DONE
    return result if is_stored else None


def insert_result(result: ExperimentResult) -> bool:
    """Insert the row of a result. Return False if another process was first."""
    try:
        with transaction.atomic():
            result.save(force_insert=True)
    except IntegrityError:
        return False
    return True


def error_body(error: Exception) -> JSONObject:
    """Return an error as a result stores it: a message, and a code if it has one."""
    if isinstance(error, ApiError):
        return {"message": error.error, "code": error.code}
    if isinstance(error, ValidationError):
        return {"message": " ".join(error.messages), "code": "invalid_item"}
    if isinstance(error, ThreadRequired):
        return {"message": str(error)}
    if isinstance(error, Agent.DoesNotExist):
        return {"message": "The agent was deleted.", "code": "EXPERIMENT_TARGET_NOT_FOUND"}
    return {"message": str(error), "code": "forbidden"}
