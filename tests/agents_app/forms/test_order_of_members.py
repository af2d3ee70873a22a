"""The members of objects have one order in the editor, whatever the order of the database."""

import re

import pytest

from agents_app.forms.objects.field import ObjectInputs
from agents_app.forms.objects.members import format_json
from agents_app.forms.variables_field import VariableInputs


def test_rows_and_json_have_members_by_name():
    value = {"zz": 1, "aaa": {"yy": 1, "x": [{"dd": 1, "c": 2}]}}

    inputs = ObjectInputs.describe((), value)

    assert [row.name for row in inputs.rows] == ["aaa", "zz"]
    assert [*re.findall(r"\w+(?=\":)", format_json(value))] == ["aaa", "x", "c", "dd", "yy", "zz"]


def test_properties_of_a_json_schema_keep_the_order_of_an_answer():
    text = format_json({"type": "object", "properties": {"score": {"type": "number", "maximum": 1}, "name": {}}})

    assert text.index('"score"') < text.index('"name"') < text.index('"type": "object"')
    assert text.index('"maximum"') < text.index('"type": "number"')


@pytest.mark.parametrize("names", [("name", "id", "zip", "age"), ("age", "id", "name", "zip")])
def test_required_variables_come_first_and_keep_the_schema(names):
    schema = {"properties": {name: {} for name in names}, "required": ["name", "id"]}

    inputs = VariableInputs.describe(schema)

    assert [row.name for row in inputs.rows] == ["name", "id", "age", "zip"]
    assert inputs.compose() == schema
