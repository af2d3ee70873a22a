"""Changes of working memory: revisions, limits, and two at once."""

import json

import pytest

from agents_app.configuration.memory.options import WorkingMemoryOptions
from memory_app.models import Resource
from memory_app.working import values
from memory_app.working.values import Origin
from tests.concurrently import run_concurrently

ORIGIN = Origin()
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "likes": {"type": "array"}},
    "additionalProperties": {"type": "object"},
}

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def resource():
    return Resource.objects.create(realm="u1", key="alice")


def stored(resource):
    resource.refresh_from_db()
    return resource.working_memory, resource.working_revision


def test_a_text_is_replaced_only_at_the_expected_revision(resource):
    first = values.replace_text(resource, "One", ORIGIN, 0)
    late = values.replace_text(resource, "Two", ORIGIN, 0)

    assert (first.is_written, late.is_written, late.has_moved) == (True, False, True)
    assert late.memory == ("One", 1) == stored(resource)


@pytest.mark.parametrize("text", [None, "", "  \n"])
def test_a_blank_text_clears(resource, text):
    values.replace_text(resource, "One", ORIGIN)

    values.replace_text(resource, text, ORIGIN)

    assert stored(resource) == (None, 2)


def test_an_update_of_the_wrong_type_is_refused_with_its_path(resource):
    values.merge_object(resource, {"name": "Ann"}, SCHEMA, ORIGIN)

    outcome = values.merge_object(resource, {"age": "nine", "x": {"y": 1}}, SCHEMA, ORIGIN)

    assert [issue.field for issue in outcome.issues] == ["workingMemory.age"]
    assert (json.loads(stored(resource)[0]), stored(resource)[1]) == ({"name": "Ann"}, 1)


def test_two_updates_at_once_are_both_merged(resource):
    updates = [{"name": "Ann"}, {"age": 9}, {"likes": ["tea"]}, {"pet": {"kind": "cat"}}]

    run_concurrently(
        [lambda update=update: values.merge_object(resource, update, SCHEMA, ORIGIN) for update in updates]
    )

    text, revision = stored(resource)
    assert json.loads(text) == {"name": "Ann", "age": 9, "likes": ["tea"], "pet": {"kind": "cat"}}
    assert revision == 4


def test_of_two_texts_at_once_one_is_told_the_other(resource):
    outcomes = run_concurrently(
        [lambda text=text: values.replace_text(resource, text, ORIGIN, 0) for text in ("One", "Two")]
    )

    written = [outcome for outcome in outcomes if outcome.is_written]
    assert len(written) == 1
    assert {outcome.memory for outcome in outcomes} == {written[0].memory}


def test_the_last_twenty_revisions_are_stored_and_can_be_restored(resource):
    for number in range(25):
        values.replace_text(resource, f"Text {number}", ORIGIN)

    assert [row.revision for row in values.revisions_of(resource)] == [*range(25, 5, -1)]
    values.restore_revision(resource, 20, ORIGIN)
    assert stored(resource) == ("Text 19", 26)


def test_a_text_above_the_limit_is_refused(resource, settings):
    settings.WORKING_MEMORY_MAX_KB = 1

    outcome = values.replace_text(resource, "é" * 513, ORIGIN)

    assert outcome.issues[0].message == "This must not exceed 1 KB. Leave out what is no longer needed."
    assert stored(resource) == (None, 0)


def test_the_same_text_makes_no_revision(resource):
    values.replace_text(resource, "One", ORIGIN)
    values.replace_text(resource, "One", ORIGIN)

    assert stored(resource) == ("One", 1)


@pytest.mark.parametrize("text", ["[1]", "{", '{"age": "nine"}'])
def test_a_person_writes_only_objects_that_fit_the_schema(resource, text):
    options = WorkingMemoryOptions.model_validate({"schema": SCHEMA})

    assert values.write_text(resource, text, options, ORIGIN).issues
    assert stored(resource) == (None, 0)


def test_a_text_that_is_nested_too_deeply_counts_as_an_empty_object():
    assert values.parse_object("[" * 30_000) == {}
