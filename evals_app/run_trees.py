"""The events and the sub-agents of a run, of which calls and traces are made."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from uuid import UUID

from runs_app.models import AgentRun, RunEvent

MAX_TREE_DEPTH = 5  # of sub-agents


@dataclass
class RunTreeRows:
    """The events and the sub-agents of runs, by the ID of the run."""

    events: defaultdict[UUID, list[RunEvent]] = field(default_factory=lambda: defaultdict(list))
    # By the ID of the call that started them.
    children: defaultdict[UUID, dict[str, AgentRun]] = field(default_factory=lambda: defaultdict(dict))


def read_run_tree(run_id: UUID, event_types: Collection[str]) -> RunTreeRows:
    """Read the events of these types of a run and of its sub-agents, by two queries for each level."""
    tree, level = RunTreeRows(), [run_id]
    for depth in range(MAX_TREE_DEPTH + 1):
        for event in RunEvent.objects.filter(run__in=level, data__type__in=event_types).order_by("run_id", "number"):
            tree.events[event.run_id].append(event)
        if depth < MAX_TREE_DEPTH:
            for child in AgentRun.objects.filter(parent__in=level).defer("stored_configuration", "conversation"):
                if child.parent_id is not None:  # for the type checker
                    tree.children[child.parent_id][child.parent_call_id] = child
        level = [child.pk for key in level for child in tree.children[key].values()]
        if not level:
            break
    return tree
