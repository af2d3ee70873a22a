"""The test sets of the ready-made judges: answers with the scores that people gave them, as datasets."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from django.db import transaction

from agentcms.db.locks import lock_name
from agentcms.wire.json_types import JSONObject
from evals_app.datasets.changes import add_items
from evals_app.datasets.creation import create_dataset
from evals_app.models import Dataset, Experiment, Scorer
from evals_app.scorers.presets import PRESETS

FOLDER = Path(__file__).parent.parent / "scorers" / "test_sets"
MARK = "judgeTests"  # in the metadata of a dataset: the type of the judge


@cache
def read_test_set(judge: str) -> tuple[JSONObject, ...]:
    """Return the items of the test set of a ready-made judge, as files for the import have them."""
    lines = (FOLDER / f"{judge}.jsonl").read_text(encoding="utf-8").splitlines()
    return tuple(json.loads(line) for line in lines)


def judge_of(scorer: Scorer) -> str:
    """Return the type of a ready-made judge, or a blank text for another scorer."""
    kind = (scorer.head.snapshot if scorer.head else {}).get("type", "")
    return kind if kind in PRESETS else ""


@transaction.atomic
def open_test_set(judge: str, owner_id: str) -> Dataset:
    """Return the dataset with the test set of a ready-made judge. The first call of a team creates it."""
    # Before the first call ends there is no row to lock, and a second one would create another set.
    lock_name(f"test set of {judge} for {owner_id}")
    row = Dataset.objects.filter(owner_id=owner_id, **{f"metadata__{MARK}": judge}).order_by("created_at").first()
    if row is not None:
        return row
    columns: JSONObject = {
        "name": f"Tests of {PRESETS[judge].title}",
        "description": "Answers with the scores that people expect of this judge. Add those of your own.",
        "owner_id": owner_id,
        "target_type": Experiment.Target.SCORER,
        "scorer_keys": ["agreement"],
        "metadata": {MARK: judge},
    }
    row = create_dataset(columns)
    add_items(row, [item_columns(item) for item in read_test_set(judge)])
    row.refresh_from_db()
    return row


def item_columns(item: JSONObject) -> JSONObject:
    return {"input": item["input"], "ground_truth": item["groundTruth"], "metadata": item["metadata"]}
