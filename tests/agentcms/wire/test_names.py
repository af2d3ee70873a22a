import pytest

from agentcms.wire.names import join_paths, to_python, to_wire

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


@pytest.mark.parametrize(("inner", "path"), [("b", "a.b"), ("b[0].c", "a.b[0].c"), ("[0].c", "a[0].c"), ("", "a")])
def test_the_path_of_what_is_inside_a_member_begins_with_its_path(inner, path):
    assert join_paths("a", inner) == path
