"""Expected trajectories that were stored before they were checked."""

from importlib import import_module

import pytest
from django.apps import apps

from evals_app.datasets.schema import parse_item
from evals_app.exchange.writing import item_to_body
from evals_app.models import ItemVersion
from evals_app.scorers.expectations import expectation_issues
from tests.evals_app.experiment_runs import make_dataset

migration = import_module("evals_app.migrations.0013_move_invalid_trajectories")

VALID = [
    {},
    {"steps": ["search", {"name": "answer"}], "ordering": "relaxed", "more": 1},
    {"steps": None, "maxSteps": 3, "maxTotalTokens": 10**9, "maxTotalDurationMs": 1.5, "maxRetriesPerTool": 0},
    {
        "noRedundantCalls": True,
        "allowRepeatedSteps": False,
        "blacklistedTools": ["a"],
        "blacklistedSequences": [["a"]],
    },
]
INVALID = [
    {"steps": "search"},
    {"steps": [1]},
    {"ordering": "any"},
    {"ordering": []},
    {"maxSteps": True},
    {"maxSteps": 100_001},
    {"maxSteps": 1.5},
    {"maxTotalTokens": -1},
    {"maxTotalDurationMs": "1"},
    {"maxTotalDurationMs": True},
    {"maxRetriesPerTool": -1},
    {"noRedundantCalls": 1},
    {"allowRepeatedSteps": "yes"},
    {"blacklistedTools": ["a"] * 201},
    {"blacklistedTools": [1]},
    {"blacklistedSequences": ["a"]},
]


@pytest.mark.parametrize("value", [*VALID, *INVALID])
def test_the_migration_has_the_rules_of_items(value):
    assert migration.is_valid(value) == (value in VALID) == (not expectation_issues(value, "expectedTrajectory"))


@pytest.mark.django_db
def test_an_invalid_trajectory_moves_into_the_metadata_so_that_its_item_can_be_imported():
    values = [*VALID, *INVALID]
    make_dataset(*[{"input": "Hi", "metadata": {"n": number}} for number in range(len(values))])
    rows = [*ItemVersion.objects.order_by("metadata__n")]
    for row, value in zip(rows, values, strict=True):
        ItemVersion.objects.filter(pk=row.pk).update(expected_trajectory=value)

    migration.move(apps, None)
    migration.move(apps, None)  # again, after it was broken off

    for number, (row, value) in enumerate(zip(rows, values, strict=True)):
        row.refresh_from_db()
        metadata = {"n": number} if value in VALID else {"n": number, "invalidExpectedTrajectory": value}
        assert (row.expected_trajectory, row.metadata) == (value if value in VALID else None, metadata)
        assert parse_item(item_to_body(row))["metadata"] == metadata
