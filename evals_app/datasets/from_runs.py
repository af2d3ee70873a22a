"""Items made of runs: the input, the answer as ground truth, and the calls of tools as mocks and expected steps."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple
from uuid import UUID

from django.db import transaction

from access_app.caller import Caller
from agentcms.wire.canonical import json_equal
from agentcms.wire.json_types import JSONObject
from evals_app.datasets.changes import add_items, lock_dataset
from evals_app.models import Dataset, ItemVersion
from runs_app.models import AgentRun, RunEvent

MAX_MOCKS = 200  # of an item
CALL_EVENTS = ("tool-call", "tool-result")


class AddedRuns(NamedTuple):
    """The items of runs in a dataset, and how many of them were not there before."""

    versions: list[ItemVersion]
    added_count: int


@transaction.atomic
def add_items_of_runs(dataset: Dataset, items: Sequence[JSONObject]) -> AddedRuns:
    """Add items of runs as one version. One that the dataset has already is not added again, as by a second click.

    An item that was edited since counts too: its first content was replaced on purpose.

    Raise ConfigError, Conflict and ApiError, as adding items does.
    """
    lock_dataset(dataset.pk)  # before the look at its items, or two requests at the same time would both add one
    present = [*map(EqualItems(dataset, items).find, items)]
    missing = [item for item, version in zip(items, present, strict=True) if version is None]
    added = iter(add_items(dataset, missing) if missing else [])
    return AddedRuns([version or next(added) for version in present], len(missing))


class EqualItems:
    """The items of a dataset that were made of the same runs as other items."""

    def __init__(self, dataset: Dataset, items: Sequence[JSONObject]) -> None:
        runs = [item["source"]["referenceId"] for item in items]
        self.versions = [*ItemVersion.objects.filter(dataset=dataset, source__referenceId__in=runs)]
        current = ItemVersion.objects.current().filter(item__in={version.item_id for version in self.versions})
        self.current = {version.item_id: version for version in current.select_related("item")}
        self.empty = ItemVersion().content

    def find(self, item: JSONObject) -> ItemVersion | None:
        """Return the item that has or had the same content, or None. An external ID replaces the item that has it."""
        if item.get("external_id"):
            return None
        content = {**self.empty, **item}
        # An item that still has the content comes before one that was edited since.
        versions = sorted(self.versions, key=lambda version: version.to_version is not None)
        equal = (version for version in versions if json_equal(version.content, content))
        return next((self.current[version.item_id] for version in equal if version.item_id in self.current), None)


def item_of_run(run: AgentRun, user: Caller, *, with_mocks: bool = False, with_steps: bool = False) -> JSONObject:
    """Return the columns of an item for a run, which must come `with_roles`.

    Its calls become mocks or the expected trajectory. Former members of the team get the question
    and the answer alone.
    """
    columns: JSONObject = {
        "input": input_of(run),
        "ground_truth": run.output or None,
        "source": {"type": "trace", "referenceId": str(run.pk)},
    }
    if not run.details_visible_to(user):
        return columns
    if run.request_context:
        columns["request_context"] = dict(run.request_context)
    mocks = mocks_of(run) if with_mocks or with_steps else []
    if with_mocks and mocks:
        columns["tool_mocks"] = mocks
    if with_steps and mocks:
        steps = [{"name": mock["toolName"], "stepType": "tool_call"} for mock in mocks]
        columns["expected_trajectory"] = {"steps": steps, "ordering": "relaxed"}
    return columns


def input_of(run: AgentRun) -> object:
    """Return the messages of a run: the text alone if there is only one."""
    messages = run.input["messages"]
    parts = messages[-1]["content"]
    if len(messages) == 1 and all(part["type"] == "text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return {"messages": messages}


def mocks_of(run: AgentRun) -> list[JSONObject]:
    """Return a mock for each call of a tool that has a result."""
    rows = run.events.filter(data__type__in=CALL_EVENTS).order_by("number")
    calls: dict[str, JSONObject] = {}
    mocks: list[JSONObject] = []
    for data in rows.values_list("data", flat=True):
        payload = data.get("payload") or {}
        key = str(payload.get("toolCallId"))
        if data["type"] == "tool-call":
            calls[key] = payload
        elif call := calls.get(key):
            output = payload.get("result")
            mocks.append({"toolName": str(call.get("toolName")), "args": call.get("args") or {}, "output": output})
    return mocks[:MAX_MOCKS]


def names_of_answered_calls(run_ids: Collection[UUID]) -> dict[UUID, list[str]]:
    """Return the names of the tools of the mocks of runs, in their order, by one query for all runs."""
    events = RunEvent.objects.filter(run__in=run_ids, data__type__in=CALL_EVENTS).order_by("number")
    # The database takes these out of the events: arguments and results may be large.
    rows = events.values_list("run_id", "data__type", "data__payload__toolCallId", "data__payload__toolName")
    tools: dict[tuple[UUID, str], str] = {}
    answered: dict[UUID, list[str]] = {}
    for run_id, kind, call_id, tool in rows:
        key = (run_id, str(call_id))
        if kind == "tool-call":
            tools[key] = str(tool)
        elif key in tools:
            answered.setdefault(run_id, []).append(tools[key])
    return {run_id: names[:MAX_MOCKS] for run_id, names in answered.items()}
