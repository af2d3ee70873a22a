"""Reading the reply to a question of a tool: the request to a model, and the demo model."""

import asyncio

import pytest
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

from runs_app.building.answer_reader import read_reply
from runs_app.providers.demo_reader import read_data


def test_the_model_that_reads_an_answer_gets_a_schema_without_references():
    """The library only replaces those to `$defs`."""
    seen = []

    async def answer(messages, info):
        seen.extend(tool.parameters_json_schema["properties"] for tool in info.output_tools if tool.name == "answer")
        yield {0: DeltaToolCall("no_answer", "{}")}

    schema = {
        "type": "object",
        "properties": {"size": {"$ref": "#/definitions/size"}},
        "definitions": {"size": {"enum": ["S", "L"]}},
    }
    model = FunctionModel(stream_function=answer)

    assert asyncio.run(read_reply(model, "shirts", "Which size?", schema, "Hello")) is None
    assert seen == [{"size": {"enum": ["S", "L"]}}]


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        ({"type": "boolean"}, "Yes, confirmed", True),
        ({"type": "boolean"}, "No.", False),
        ({"type": "boolean"}, "tell me a joke", None),
        ({"type": "integer"}, "Make it 12", 12),
        ({"type": "number"}, "a few", None),
        ({"enum": [1, 2]}, "number 2", 2),
        ({"type": "string"}, "Size M", "Size M"),
        ({"enum": 5}, "5", None),
    ],
)
@pytest.mark.parametrize("required", [["it"], []])
def test_the_demo_model_reads_values_of_each_type(schema, text, value, required):
    data = read_data({"type": "object", "properties": {"it": schema}, "required": required}, text)

    assert data == (None if value is None else {"it": value})
