"""The shape of a gate in the API."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from django.db.models import Q, QuerySet
from pydantic import BaseModel, Field

from agentcms.wire.json_types import JSONObject
from agents_app.configuration.schema import (
    WIRE_CONFIG,
    ConfigError,
    Issue,
    as_partial,
    collecting_issues,
    validate_fields,
)
from agents_app.models import Agent
from agents_app.models.querysets import usable_owners
from evals_app.experiments.scoring import missing_scorers
from evals_app.models import Dataset, ReleaseGate

GATE_COLUMNS = {"min": "minimum", "max": "maximum", "dataset_id": "dataset_id"}


class GateBody(BaseModel):
    """A release gate."""

    model_config = WIRE_CONFIG

    dataset_id: Annotated[str, Field(max_length=64)]
    dataset_version: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    scorer: Annotated[str, Field(min_length=1, max_length=256)]
    statistic: Literal["mean", "pass_rate", "min", "difference_to_live"] | None = None
    min: Annotated[float, Field(ge=-1e6, le=1e6)] | None = None
    max: Annotated[float, Field(ge=-1e6, le=1e6)] | None = None
    max_failed: Annotated[int, Field(ge=0, le=20_000)] | None = None
    max_age_days: Annotated[int, Field(ge=1, le=36_500)] | None = None
    mode: Literal["enforce", "warn"] | None = None
    all_agents: bool | None = None


def apply_gate(
    gate: ReleaseGate, body: JSONObject, agent: Agent, *, is_new: bool, datasets: QuerySet[Dataset]
) -> None:
    """Set the fields of a body on a gate of an agent, or of all agents of its team. Raise ConfigError.

    `datasets` are those that the user may see.
    """
    issues: list[Issue] = []
    fields = valid_fields(GateBody if is_new else as_partial(GateBody), body, issues)
    has_bounds = not {"min", "max"} & {issue.field for issue in issues}
    gate.owner_id = agent.owner_id  # the agent may have moved to another team since the gate was made
    if (all_agents := fields.pop("all_agents", None)) is not None:
        gate.agent = None if all_agents else agent
    # Before the fields are set: they compare with what the gate has so far.
    issues += scorer_issues(gate, fields.get("scorer", gate.scorer))
    issues += dataset_issues(gate, fields, datasets)
    defaults = {"statistic": "mean", "max_failed": 0, "mode": "enforce"}
    for name, value in fields.items():
        setattr(gate, GATE_COLUMNS.get(name, name), defaults.get(name) if value is None else value)
    if has_bounds:
        issues += bound_issues(gate)
    if issues:
        raise ConfigError(issues)


def valid_fields(model: type[BaseModel], body: JSONObject, issues: list[Issue]) -> JSONObject:
    """Return the valid fields of a body, and add the issues of the others: the valid ones may have more of them."""
    with collecting_issues(issues):
        return validate_fields(model, body)
    left_out = {re.split(r"[.\[]", issue.field)[0] for issue in issues}
    return validate_fields(as_partial(model), {name: body[name] for name in body.keys() - left_out})


def bound_issues(gate: ReleaseGate) -> list[Issue]:
    """Return an issue if a gate has no bounds, or bounds that no version could meet."""
    if gate.minimum is None and gate.maximum is None:
        return [Issue("min", "Set a minimum, a maximum or both.")]
    if gate.minimum is not None and gate.maximum is not None and gate.minimum > gate.maximum:
        return [Issue("max", "This is below the minimum, so no version could meet the gate. Set it higher.")]
    return []


def scorer_issues(gate: ReleaseGate, scorer: str) -> list[Issue]:
    """Return an issue if a gate is to get a scorer that does not exist: no experiment could ever meet it.

    A gate keeps a scorer that was deleted meanwhile, so that its other fields can be changed.
    """
    if scorer == gate.scorer or not missing_scorers([scorer], gate.owner_id):
        return []
    return [Issue("scorer", f"Scorer with id {scorer} not found.")]


def usable_datasets(datasets: QuerySet[Dataset], owner_id: str, stored_id: str) -> QuerySet[Dataset]:
    """Filter to the datasets that a gate of an owner may get, and the one that it has."""
    # Like scorers: a gate tells its members the name of the dataset, and nobody can delete the dataset.
    return datasets.filter(Q(owner_id__in=usable_owners(owner_id)) | Q(pk=stored_id))


def dataset_issues(gate: ReleaseGate, fields: JSONObject, datasets: QuerySet[Dataset]) -> list[Issue]:
    """Return an issue if a gate is to get a dataset that is not among these, or a version that it has not reached."""
    before = (gate.dataset_id, gate.dataset_version)
    dataset_id, version = after = (fields.get("dataset_id", before[0]), fields.get("dataset_version", before[1]))
    if dataset_id is None:  # a new gate whose body names none, which is an issue already
        return []
    dataset = usable_datasets(datasets, gate.owner_id, before[0]).filter(pk=dataset_id).first()
    if dataset is None:
        return [Issue("datasetId", f"Dataset with id {dataset_id} not found.")]
    # No experiment could meet the gate before the dataset has changed so often. One that was stored so stays.
    if version is None or version <= dataset.version or before == after:
        return []
    return [
        Issue(
            "datasetVersion", f"The newest version of the dataset is {dataset.version}. Name that or an earlier one."
        )
    ]
