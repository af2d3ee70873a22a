"""The memory of experiments: one thread for all items, one for each, or that of the item."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from access_app.caller import Caller
from agentcms.errors import ApiError, NotFound
from agentcms.wire.json_types import JSONMapping, JSONObject
from evals_app.models import Experiment, ExperimentResult
from memory_app.history.threads import get_own_thread
from memory_app.models import Thread
from memory_app.observational.limits import THREAD_REQUIRED_MESSAGE, requires_thread
from memory_app.realms import memory_caller
from runs_app.memory import thread_deletion

PER_ITEM = "per-item"
RESOURCE_NAMES = ("mastra__resourceId", "resourceId")  # of a request context


class ThreadRequired(Exception):
    """The memory of the agent needs a thread, and the item has none."""


class ItemThread(NamedTuple):
    """The thread and the resource of a run. Blank: none. `is_new` says that the experiment makes the thread."""

    thread: str = ""
    resource: str = ""
    is_new: bool = False


def thread_for(
    experiment: Experiment, result: ExperimentResult, configuration: JSONMapping, user: Caller
) -> ItemThread:
    """Return the thread of the run of an item. Raise ThreadRequired, and NotFound for the thread of an item."""
    if configuration.get("memory") is None:
        return ItemThread()
    named = result.item_version.metadata or {}
    # A blank one, such as an empty cell of an imported file, names none.
    if isinstance(named.get("threadId"), str) and named["threadId"]:
        return own_thread(named, user)
    options = experiment.memory
    resource = options.get("resource") or resource_in(experiment.request_context) or f"experiment-{experiment.pk}"
    if options.get("thread") and options["thread"] != PER_ITEM:
        # Two experiments with the same name of a thread must not read each other's messages.
        return ItemThread(f"{options['thread']}-{experiment.pk}", resource, True)
    if options or resource_in(experiment.request_context):
        # Another thread for each retry: that of a lost run has its messages already.
        return ItemThread(f"{own_thread_prefix(result)}{result.retry_count}", resource, True)
    if requires_thread(configuration["memory"]):
        raise ThreadRequired(THREAD_REQUIRED_MESSAGE)
    return ItemThread()


def own_thread(named: JSONMapping, user: Caller) -> ItemThread:
    """Return the thread that the metadata of an item name. It must exist and belong to the user."""
    key = named["threadId"]
    resource = named.get("resourceId")
    try:
        thread = get_own_thread(memory_caller(user), key, resource if isinstance(resource, str) else "")
    except ApiError:
        raise NotFound(f"Thread with id {key} not found") from None
    return ItemThread(thread.key, thread.resource_key)


def resource_in(request_context: JSONMapping) -> str:
    """Return the resource that a request context names, or a blank text."""
    return next((request_context[name] for name in RESOURCE_NAMES if isinstance(request_context.get(name), str)), "")


def shares_thread(memory: JSONObject) -> bool:
    """Return whether all items of an experiment use one thread. They run one after the other then."""
    return bool(memory.get("thread")) and memory["thread"] != PER_ITEM


def mark_thread(experiment: Experiment, thread_id: int | None) -> None:
    """Mark a thread that an experiment made. Lists of people do not show it."""
    if thread_id is not None:
        Thread.objects.filter(pk=thread_id).update(experiment_id=experiment.pk)


def own_thread_prefix(result: ExperimentResult) -> str:
    """Return how the keys of the threads begin that an experiment makes for one result."""
    return f"experiment-{result.experiment_id}-{result.item_id}-{result.attempt}-"


def delete_threads_of_result(result: ExperimentResult) -> None:
    """Delete the threads that an experiment made for one result, so that its item starts over."""
    threads = Thread.objects.filter(experiment_id=result.experiment_id, key__startswith=own_thread_prefix(result))
    thread_deletion.delete_threads([*threads.values_list("pk", flat=True)])


def delete_threads_of_results(experiment: Experiment, results: Iterable[ExperimentResult]) -> None:
    """Delete the threads that an experiment made for these results, with one query for all of them."""
    prefixes = {own_thread_prefix(result) for result in results}
    threads = Thread.objects.filter(experiment_id=experiment.pk).values_list("pk", "key")
    # What follows the last `-` is the number of the retry.
    thread_deletion.delete_threads([pk for pk, key in threads if f"{key.rpartition('-')[0]}-" in prefixes])


def delete_threads_of_experiment(experiment: Experiment) -> None:
    """Delete the threads that an experiment made."""
    thread_deletion.delete_threads([*Thread.objects.filter(experiment_id=experiment.pk).values_list("pk", flat=True)])
