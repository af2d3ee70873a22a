"""Fields that take values of several types: a refusal names all of them."""

import pytest

from agents_app.configuration.schema import ConfigError, validate_partial

RULES = {"operator": "AND", "conditions": [{"field": "tier", "operator": "exists"}]}
MEMORY = "This must be the key of a memory, an object of options, or null."
OTHER_MEMORY = "This must be the key of a memory, or an object of options."
TOOLS, TOOL = 'This must be "all", or an object of tools.', "This must be true, false or an object."


@pytest.mark.parametrize("value", [[], 1, 0.5])
@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("memory", lambda value: {"memory": value}, MEMORY),
        (
            "conditional.memory[0].value",
            lambda value: {"conditional": {"memory": [{"value": value, "rules": RULES}]}},
            OTHER_MEMORY,
        ),
        ("backgroundTasks.tools", lambda value: {"backgroundTasks": {"tools": value}}, TOOLS),
        ("backgroundTasks.tools.add", lambda value: {"backgroundTasks": {"tools": {"add": value}}}, TOOL),
    ],
)
def test_another_type_is_refused_with_those_that_a_field_takes(path, body, message, value):
    with pytest.raises(ConfigError) as refused:
        validate_partial(body(value))

    assert refused.value.issues == [(path, message)]
