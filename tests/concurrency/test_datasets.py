"""Concurrent changes of the items of one dataset, each writer with its own database connection."""

import pytest
from django.db import connection

from evals_app.datasets.changes import add_items, change_item, delete_items
from evals_app.models import Dataset, ItemVersion
from tests.concurrently import run_concurrently
from tests.conftest import DRILL

pytestmark = pytest.mark.django_db(transaction=True)

WRITERS, CHANGES = (8, 25) if DRILL else (4, 5)


def write(number):
    """Add one item and change it repeatedly."""
    (first,) = add_items(Dataset.objects.get(pk="busy"), [{"input": f"{number}/0"}])
    for step in range(1, CHANGES):
        change_item(Dataset.objects.get(pk="busy"), first.item_id, {"input": f"{number}/{step}"})
        connection.close()


def contents(version):
    rows = ItemVersion.objects.at_version(version).filter(dataset_id="busy")
    return sorted(rows.values_list("item_id", "input"))


def test_concurrent_changes_make_versions_without_a_gap():
    dataset = Dataset.objects.create(pk="busy", name="Busy")

    answers = run_concurrently([lambda number=number: write(number) for number in range(WRITERS)])

    dataset.refresh_from_db()
    numbers = list(dataset.versions.order_by("version").values_list("version", flat=True))
    assert answers == [None] * WRITERS
    assert numbers == list(range(1, WRITERS * CHANGES + 1))
    assert (dataset.version, dataset.item_count) == (WRITERS * CHANGES, WRITERS)
    assert sorted(row[1] for row in contents(dataset.version)) == [f"{n}/{CHANGES - 1}" for n in range(WRITERS)]


def test_a_version_from_the_middle_reads_later_as_it_was():
    dataset = Dataset.objects.create(pk="busy", name="Busy")
    run_concurrently([lambda number=number: write(number) for number in range(WRITERS // 2)])
    dataset.refresh_from_db()
    middle = dataset.version
    before, texts = contents(middle), {f"{number}/{CHANGES - 1}" for number in range(WRITERS // 2)}
    gone = before[0][0]

    run_concurrently([lambda number=number: write(number) for number in range(WRITERS // 2, WRITERS)])
    for item_id, _ in before:
        change_item(Dataset.objects.get(pk="busy"), item_id, {"input": "later"})
    delete_items(Dataset.objects.get(pk="busy"), [gone])

    assert middle == WRITERS * CHANGES // 2  # 100 of 200
    assert {text for _, text in before} == texts
    assert contents(middle) == before
    dataset.refresh_from_db()
    assert not {*texts} & {text for _, text in contents(dataset.version)}
    assert gone not in {item_id for item_id, _ in contents(dataset.version)}
