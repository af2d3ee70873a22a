"""Sentences of templates with a number: "1 row has", not "1 rows have"."""

from typing import Any

import pytest
from django.template.loader import render_to_string

SENTENCES = [
    ("versions/_section.html", {"section": {"kind": "list", "omitted": 1}}, "1 more change is not shown."),
    ("versions/_section.html", {"section": {"kind": "list", "omitted": 2}}, "2 more changes are not shown."),
    ("components/_parts.html", {"parts": [{"is_long": True, "field": "instructions", "value": "x"}]}, "1 character<"),
    ("threads/_window.html", {"window": {"tokens": 1}}, "1 token (estimate), without a limit."),
]


@pytest.mark.parametrize(("template", "context", "sentence"), SENTENCES)
def test_a_number_agrees_with_its_noun(template: str, context: dict[str, Any], sentence: str):
    assert sentence in render_to_string(template, context)
