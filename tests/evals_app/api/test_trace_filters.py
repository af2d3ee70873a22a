"""The filters and orders of traces and their scores, as the published client sends them."""

import json
from datetime import timedelta
from urllib.parse import urlencode
from uuid import uuid4

import pytest
from django.utils import timezone

from agentcms.wire.timestamps import format_timestamp
from memory_app.models import Resource, Thread
from runs_app.models import AgentRun, Score
from tests.api_client import Caller
from tests.factories import AgentFactory, api_key, member
from tests.runs_app.factories import RunFactory

pytestmark = pytest.mark.django_db

TRACES = "/api/observability/traces"
SCORES = "/api/observability/scores"
HOUR = timedelta(hours=1)


@pytest.fixture
def publisher():
    return Caller(api_key(member("publisher", "support")))


@pytest.fixture
def runs():
    """Return a run that failed, and one of a conversation that began and ended an hour later."""
    agent = AgentFactory(id="clerk", owner_id="support")
    began = timezone.now() - 3 * HOUR
    resource = Resource.objects.create(realm="osupport", key="ann")
    thread = Thread.objects.create(realm="osupport", key="trip", resource=resource, resource_key="ann")
    more = {"thread": thread, "resource": resource, "experiment_id": uuid4()}
    rows = [RunFactory(agent=agent, status="failed"), RunFactory(agent=agent, **more)]
    for hours, run in enumerate(rows):
        times = dict.fromkeys(("created_at", "started_at", "finished_at"), began + hours * HOUR)
        AgentRun.objects.filter(pk=run.pk).update(**times)
        run.refresh_from_db()
        score = Score.objects.create(run=run, scorer=f"scorer-{hours}", score=0.5 - hours / 10)
        Score.objects.filter(pk=score.pk).update(created_at=run.created_at)
    return rows


def listed(caller, path, **parameters):
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in parameters.items()}
    body = caller.get(f"{path}?{urlencode(texts)}").body
    assert not body.get("warnings"), body
    return [row["runId"] for row in body["spans" if path.startswith(TRACES) else "scores"]]


def range_around(run, **more):
    return {"start": format_timestamp(run.created_at), "end": format_timestamp(run.created_at), **more}


@pytest.mark.parametrize("path", [TRACES, f"{TRACES}/light", SCORES])
def test_traces_and_scores_are_those_of_the_runs_that_the_filters_name(publisher, runs, path):
    failed, spoken = (str(run.pk) for run in runs)

    assert listed(publisher, path) == [spoken, failed]
    for filters in (
        {"traceId": spoken},
        {"runId": spoken, "entityType": "agent", "entityName": "clerk"},
        {"threadId": "trip", "resourceId": "ann"},
        {"experimentId": str(runs[1].experiment_id)},
    ):
        assert listed(publisher, path, **filters) == [spoken]
    for filters in ({"traceId": str(uuid4())}, {"traceId": "no-uuid"}, {"entityType": "tool"}, {"threadId": "other"}):
        assert listed(publisher, path, **filters) == []


def test_traces_have_the_state_type_and_times_that_are_asked_for(publisher, runs):
    failed, spoken = (str(run.pk) for run in runs)

    assert listed(publisher, TRACES, status="error") == [failed]
    assert listed(publisher, TRACES, status="success", spanType="agent_run") == [spoken]
    assert listed(publisher, TRACES, spanType="tool_call") == []
    for name in ("startedAt", "endedAt", "dateRange"):
        assert listed(publisher, TRACES, **{name: range_around(runs[0])}) == [failed]
        assert listed(publisher, TRACES, **{name: range_around(runs[0], startExclusive=True)}) == []
    assert listed(publisher, TRACES, field="endedAt", direction="ASC") == [failed, spoken]


def test_scores_have_the_scorer_source_and_time_that_are_asked_for(publisher, runs):
    failed, spoken = (str(run.pk) for run in runs)

    assert listed(publisher, SCORES, scorerId="scorer-0") == [failed]
    assert listed(publisher, SCORES, scorerId=["scorer-1", "other"]) == [spoken]
    assert listed(publisher, SCORES, scoreSource="LIVE", timestamp=range_around(runs[1])) == [spoken]
    assert listed(publisher, SCORES, source="PERSON") == []
    assert listed(publisher, SCORES, field="score", direction="ASC") == [spoken, failed]


def test_a_score_of_a_trace_has_the_names_of_the_observability_api(publisher, runs):
    score = publisher.get(f"{SCORES}?scorerId=scorer-0").body["scores"][0]

    assert (score["timestamp"], score["scoreId"]) == (score["createdAt"], score["id"])
    assert (score["entityType"], score["entityName"], score["scorerName"]) == ("agent", "clerk", "scorer-0")


@pytest.mark.parametrize(
    ("path", "name", "value", "field"),
    [
        (TRACES, "startedAt", '{"start": "yesterday"}', "startedAt.start"),
        (TRACES, "dateRange", "yesterday", "dateRange"),
        (TRACES, "field", "score", "field"),
        (SCORES, "scorerId", "[1]", "scorerId"),
        (SCORES, "direction", "up", "direction"),
    ],
)
def test_values_that_fit_no_filter_are_refused(publisher, path, name, value, field):
    answer = publisher.get(f"{path}?{urlencode({name: value})}")

    assert (answer.status_code, [issue["field"] for issue in answer.body["issues"]]) == (400, [field])
