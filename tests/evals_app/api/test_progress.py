"""The stream of the progress of an experiment."""

import json

import pytest
from django.test import Client

from evals_app.api import progress
from evals_app.models import Experiment
from runs_app.events import stream_access
from runs_app.events.streams import stream_slots
from tests.api_client import Caller
from tests.evals_app.compare.test_comparisons import ended
from tests.evals_app.experiment_runs import make_dataset
from tests.factories import api_key, member

pytestmark = pytest.mark.django_db


def events(blocks):
    return [json.loads(block.removeprefix(b"data: ")) for block in blocks if block.startswith(b"data: {")]


def test_each_change_is_an_event_until_the_end(monkeypatch):
    experiment = ended(make_dataset("One", "Two"), [1.0, 1.0])
    Experiment.objects.update(status="running", total_items=2)
    experiment.refresh_from_db()
    stream = progress.ProgressStream(experiment, progress.StreamSlot(member("viewer")))
    monkeypatch.setattr(progress, "PROGRESS_INTERVAL", 0)

    first = events([next(stream.blocks)])
    Experiment.objects.update(succeeded_count=1)
    second = events([next(stream.blocks)])
    Experiment.objects.update(status="cancelled", stop_reason="Cancelled.")
    rest = [*stream]

    assert [event["succeededCount"] for event in first + second] == [0, 1]
    last = events(rest)[0]
    assert (last["type"], last["status"], last["cancelled"]) == ("finished", "failed", True)
    assert rest[-1] == b"data: [DONE]\n\n"
    assert stream_slots.count_by_user.total() == 0


def test_a_failed_experiment_says_why():
    failed = Experiment(status="failed", error="The account is not active.")

    assert events([progress.progress_block(failed)])[0]["stopReason"] == "The account is not active."


def test_the_route_streams_to_readers_only():
    experiment = ended(make_dataset("One", owner_id="support"), [1.0])
    path = f"/api/experiments/{experiment.pk}/stream"
    key = api_key(member("viewer", "support"))

    head = Client().head(path, headers={"Authorization": f"Bearer {key}"})
    answer = Client().get(path, headers={"Authorization": f"Bearer {key}", "Accept": "text/event-stream"})

    assert (head["Cache-Control"], head.streaming) == ("no-cache, no-transform", False)
    assert answer["Content-Type"].startswith("text/event-stream")
    assert events(answer.streaming_content)[0]["status"] == "completed"
    assert Caller(api_key(member("viewer", "elsewhere"))).get(path).status_code == 404


def test_a_reader_who_leaves_the_team_gets_no_further_event(monkeypatch):
    experiment = ended(make_dataset("One", owner_id="support"), [1.0])
    Experiment.objects.update(status="running")
    experiment.refresh_from_db()
    reader = member("viewer", "support")
    monkeypatch.setattr(progress, "PROGRESS_INTERVAL", 0)
    monkeypatch.setattr(stream_access, "ACCESS_CHECK_INTERVAL", 0)
    stream = progress.ProgressStream(experiment, progress.StreamSlot(reader))
    next(stream.blocks)

    reader.memberships.all().delete()
    Experiment.objects.update(succeeded_count=1)

    assert [*stream] == []
    assert stream_slots.count_by_user.total() == 0
