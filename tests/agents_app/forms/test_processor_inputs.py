"""The inputs of the arguments of a processor in the editor's form."""

from typing import Literal

from pydantic import TypeAdapter

from agents_app.forms.processors_field import argument_members
from agents_app.registry import Entry, Kind


def shorten(text: str, quote: Literal['"', "'"] = '"', limit: int | None = None, words: list[str] | None = None):
    """Have an argument of each kind."""


def test_an_argument_has_the_input_of_its_type():
    entry = Entry(Kind.PROCESSOR, "shorten", "Shorten", schema=TypeAdapter(shorten).json_schema())

    quote, limit, words = argument_members(entry)

    assert [(member.name, member.kind) for member in (limit, words)] == [("limit", "number"), ("words", "lines")]
    assert quote.format('"') == quote.choices[0][0]
    assert quote.parse(quote.choices[0][0]) == '"'
    assert quote.help == 'Default: "'


def test_a_processor_without_arguments_has_no_inputs():
    entry = Entry(Kind.PROCESSOR, "trim", "Trim", schema={"type": "object"})

    assert argument_members(entry) == []
