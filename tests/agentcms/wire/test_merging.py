import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcms.api.pagination import page_json, page_payload
from agentcms.wire.canonical import canonical, merge_json_objects
from tests.agentcms.wire.test_canonical import TEXTS, VALUES

OBJECTS = st.dictionaries(TEXTS, VALUES, max_size=3)


@given(OBJECTS, OBJECTS, OBJECTS)
def test_objects_are_merged_into_one(before, snapshot, after):
    before = {f"1{key}": value for key, value in before.items()}
    after = {f"2{key}": value for key, value in after.items()}
    snapshot = {f"3{key}": value for key, value in snapshot.items()}

    text = merge_json_objects(canonical(before), canonical(snapshot), canonical(after))

    assert canonical(json.loads(text)) == canonical({**before, **snapshot, **after})


@pytest.mark.parametrize("empty", [("{}",), ("{}", "{}", "{}"), ()])
def test_merging_nothing_gives_an_empty_object(empty):
    assert merge_json_objects(*empty) == "{}"


@pytest.mark.parametrize(("page", "more"), [(0, True), (1, False), (7, False)])
def test_a_page_of_texts_equals_the_page_of_values(page, more):
    rows = [{"id": "a"}, {"id": "b"}]

    text = page_json("agents", map(canonical, rows), 4, page, 2)

    assert json.loads(text) == page_payload("agents", rows, 4, page, 2)
    assert json.loads(text)["hasMore"] is more
