import pytest

from agentcms.wire.names import to_python, to_wire

NAMES = {
    "id": "id",
    "version_number": "versionNumber",
    "active_version_id": "activeVersionId",
    "integration_tools": "integrationTools",
    "per_page": "perPage",
}


@pytest.mark.parametrize(("python", "wire"), NAMES.items())
def test_a_wire_name_round_trips(python, wire):
    assert to_wire(python) == wire
    assert to_python(wire) == python
    assert to_wire(wire) == wire
    assert to_python(python) == python
