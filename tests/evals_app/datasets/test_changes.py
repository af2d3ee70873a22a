"""Changes of items by a dataset that was read before its settings changed."""

import pytest

from agents_app.configuration.schema import ConfigError
from evals_app.datasets.changes import add_items, change_item
from evals_app.datasets.settings import change_settings
from tests.evals_app.experiment_runs import make_dataset

pytestmark = pytest.mark.django_db


def test_items_must_fit_a_schema_that_was_set_after_the_dataset_was_read():
    dataset = make_dataset()
    (version,) = add_items(dataset, [{"input": "text"}])
    change_settings(dataset.pk, {"input_schema": {"type": "string"}})

    with pytest.raises(ConfigError):
        add_items(dataset, [{"input": 1}])
    with pytest.raises(ConfigError):
        change_item(dataset, version.item_id, {"input": 1})


def test_items_are_checked_again_where_true_replaces_1_in_a_schema():
    dataset = make_dataset()
    change_settings(dataset.pk, {"input_schema": {"const": 1}})
    add_items(dataset, [{"input": 1}])

    with pytest.raises(ConfigError):
        change_settings(dataset.pk, {"input_schema": {"const": True}})
