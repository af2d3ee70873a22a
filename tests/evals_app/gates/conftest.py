"""An agent with a release gate."""

import pytest

from agents_app.editing.change_context import change
from evals_app.models import ReleaseGate
from tests.evals_app.experiment_runs import make_dataset
from tests.factories import AgentFactory


@pytest.fixture
def agent():
    """Return an agent whose draft, version 2, misses a gate: no experiment has tested it."""
    row = AgentFactory(id="concierge", instructions="One")
    make_dataset("One")
    ReleaseGate.objects.create(agent=row, dataset_id="support", scorer="exact", minimum=0.8)
    with change(publish=False):
        row.edit({"instructions": "Two"})
    return row
