"""Arguments of calls that a model made up."""

from memory_app.history.wire_messages import _arguments


def test_arguments_that_are_nested_too_deeply_stay_a_text():
    assert _arguments("[" * 100_000) == "[" * 100_000
    assert _arguments('{"a": 1}') == {"a": 1}
