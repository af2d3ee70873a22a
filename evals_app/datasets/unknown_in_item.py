"""Names in items of datasets that nothing reads."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from agentcms.wire.json_types import JSONMapping
from agentcms.wire.names import join_path
from agentcms.wire.unknown_names import MAX_UNKNOWN_NAMES, UnknownName, find_unknown_below, find_unknown_names
from evals_app.datasets.schema import ItemBody
from evals_app.scorers.expectations import STEP_NAMES, TRAJECTORY_NAMES, TREE_NAMES

TRAJECTORY = "expectedTrajectory"


def unknown_in_item(body: JSONMapping, path: str = "") -> list[UnknownName]:
    """Return the first names in the mocks, the source and the trajectory of an item that nothing reads."""
    place = join_path(path, TRAJECTORY)
    in_trajectory = islice(unknown_in_trajectory(body.get(TRAJECTORY), place), MAX_UNKNOWN_NAMES)
    return [*find_unknown_below(ItemBody, body, path), *in_trajectory]


def unknown_in_trajectory(value: object, path: str, known: frozenset[str] = TRAJECTORY_NAMES) -> Iterator[UnknownName]:
    """Yield the names in an expected trajectory that nothing reads, also in those of sub-agents."""
    if isinstance(value, dict):
        yield from find_unknown_names(value, known, path)
        value, path = value.get("steps"), f"{path}.steps"
    for number, step in enumerate(value if isinstance(value, list) else ()):
        if isinstance(step, dict):
            place = f"{path}[{number}]"
            yield from find_unknown_names(step, STEP_NAMES, place)
            yield from unknown_in_trajectory(step.get("children"), f"{place}.children", TREE_NAMES)
