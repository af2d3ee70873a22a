"""Fields for lists of keys and tags: what they show gives the same list back."""

import pytest

from evals_app.forms.datasets import DatasetForm
from evals_app.forms.experiments import ReviewForm
from evals_app.forms.key_lists import split_keys
from evals_app.models import Dataset

TAGS = ["tone", "short, but good", 'says "no"', '"', " blank ", '"x', "a,b"]


def dataset_form(data=None, tags=()):
    return DatasetForm(data, Dataset(tags=[*tags]))


def review_form(data=None, tags=()):
    return ReviewForm(data, initial={"tags": tags})


FORMS = [dataset_form, review_form]


@pytest.mark.parametrize("form", FORMS)
def test_tags_that_are_not_changed_stay_as_they_are(form):
    text = form(tags=TAGS)["tags"].value()

    saved = form({"name": "Support", "tags": text})

    assert saved.is_valid()
    assert saved.cleaned_data["tags"] == TAGS


def test_commas_separate_keys_and_quotes_that_do_not_end_are_plain_text():
    assert split_keys(' one,, two , "three, four" ,"five,six') == ["one", "two", "three, four", '"five', "six"]
    assert split_keys("") == []


@pytest.mark.parametrize("form", FORMS)
def test_a_null_character_is_refused(form):
    assert form({"name": "Support", "tags": "to\0ne"}).errors["tags"] == ["Null characters are not allowed."]
