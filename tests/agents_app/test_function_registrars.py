"""Functions that code registers by key, such as stop conditions, steps of pipelines and rerankers."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from evals_app.scorers.kinds import pipelines
from knowledge_app.search import rerank
from runs_app import stop_conditions

REGISTRARS = pytest.mark.parametrize(
    ("register", "functions", "noun"),
    [
        (pipelines.pipeline_step, pipelines.pipeline_steps, "step"),
        (rerank.reranker, rerank._rerankers, "reranker"),
        (stop_conditions.stop_condition, stop_conditions._conditions, "stop condition"),
    ],
    ids=["step", "reranker", "stop condition"],
)


def first(*arguments):
    return None


def second(*arguments):
    return None


@REGISTRARS
def test_a_key_belongs_to_one_function(monkeypatch, register, functions, noun):
    monkeypatch.setitem(functions, "taken", first)

    assert register("taken")(first) is first
    with pytest.raises(ImproperlyConfigured) as error:
        register("taken")(second)
    assert str(error.value) == f"The {noun} 'taken' is registered twice. Give one of them another key."
    assert functions["taken"] is first


@REGISTRARS
def test_a_decorator_without_parentheses_is_an_error(register, functions, noun):
    with pytest.raises(TypeError, match="The decorator of first needs parentheses"):
        register(first)
