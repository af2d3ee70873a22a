"""The knowledge bases of an agent in the editor's form."""

import pytest

from agents_app.forms.tools.knowledge import build_base_list, compose_knowledge

STORED = {"handbook": {"filter": {"audience": "staff"}, "topK": 3}}


def test_a_base_without_inputs_keeps_its_filter_and_number_of_passages():
    sent = {"knowledge": "shown", "knowledge-base": ["handbook"]}

    assert compose_knowledge(sent, STORED) == STORED


def test_a_base_without_keys_keeps_its_filter():
    sent = {"knowledge": "shown", "knowledge-base": ["handbook"], "knowledge-top-handbook": "5"}

    assert compose_knowledge(sent, STORED) == {"handbook": {"filter": {"audience": "staff"}, "topK": 5}}


def test_a_filter_that_nobody_changed_stays_as_it_is_written():
    sent = {"knowledge": "shown", "knowledge-base": ["handbook"], "knowledge-top-handbook": "3"}
    sent |= {
        "knowledge-key-handbook": ["audience", ""],
        "knowledge-operator-handbook": ["$eq", "$eq"],
        "knowledge-value-handbook": ["staff", ""],
    }

    assert compose_knowledge(sent, STORED) == STORED


def test_blank_inputs_remove_the_filter_and_the_number_of_passages():
    sent = {"knowledge": "shown", "knowledge-base": ["handbook"], "knowledge-top-handbook": ""}
    sent |= {f"knowledge-{part}-handbook": [""] for part in ("key", "operator", "value")}

    assert compose_knowledge(sent, STORED) == {"handbook": {}}


@pytest.mark.django_db
@pytest.mark.parametrize("score", [0, 1, -0.25, 0.4])
def test_a_minimum_score_stays_as_it_is_stored(score):
    stored = {"handbook": {"minScore": score}}
    (row,) = build_base_list(stored, "").rows
    sent = {"knowledge": "shown", "knowledge-base": ["handbook"], "knowledge-score-handbook": row.min_score}

    composed = compose_knowledge(sent, stored)

    assert repr(composed) == repr(stored)
    assert compose_knowledge({**sent, "knowledge-score-handbook": " "}, stored) == {"handbook": {}}


@pytest.mark.django_db
def test_a_value_of_several_lines_stays_as_it_is_stored():
    stored = {"handbook": {"filter": {"audience": "staff\nguests"}}}
    (row,) = build_base_list(stored, "").rows
    sent = {"knowledge": "shown", "knowledge-base": ["handbook"], "knowledge-top-handbook": row.top_k}
    for part in ("key", "operator", "value"):  # as a browser sends them, on one line
        values = [getattr(condition, part).replace("\n", "") for condition in row.conditions]
        sent |= {f"knowledge-{part}-handbook": values}

    assert compose_knowledge(sent, stored) == stored
