"""Stored scorers, scores and traces in the API, and who may see them."""

import pytest
from cachetools import TTLCache
from django.utils import timezone

from agentcms.cache import SizeLimitedCache
from agents_app.editing.change_context import change
from agents_app.models import Agent
from evals_app.api.scores.usable_scorers import agents_with_scorers
from evals_app.scorers.cached_scorers import scorer_table
from runs_app.models import Score
from tests.api_client import Caller
from tests.evals_app.compare.test_comparisons import ended
from tests.evals_app.experiment_runs import make_dataset
from tests.factories import AgentFactory, api_key, member
from tests.runs_app.factories import RunFactory

pytestmark = pytest.mark.django_db

SCORERS = "/api/stored/scorers"
POLITE = {"name": "Polite", "type": "check", "presetConfig": {"check": "includes", "value": "day"}}
CHUNKS = [
    ("tool-call", {"toolCallId": "1", "toolName": "refund", "args": {"order": "A1"}}),
    ("tool-result", {"toolCallId": "1", "toolName": "refund", "result": "Done"}),
]


@pytest.fixture(autouse=True)
def fresh_table(monkeypatch):
    monkeypatch.setattr(scorer_table, "_cache", SizeLimitedCache(TTLCache(1, 0.0)))


@pytest.fixture
def publisher():
    return Caller(api_key(member("publisher", "support")))


@pytest.fixture
def stranger():
    return Caller(api_key(member("publisher", "other")))


@pytest.fixture
def run():
    agent = AgentFactory(id="clerk", owner_id="support", scorers={"polite": {}})
    return RunFactory(agent=agent, chunks=CHUNKS)


def create(caller, **fields):
    response = caller.post(SCORERS, {**POLITE, **fields})
    assert response.status_code == 201, response.body
    return response.body


def test_a_scorer_is_created_changed_and_deleted(publisher):
    created = create(publisher)
    changed = publisher.patch(f"{SCORERS}/polite", {"description": "Greets.", "changeMessage": "Why"}).body

    assert (created["id"], created["status"], created["ownerId"]) == ("polite", "published", "support")
    assert (changed["description"], changed["versionNumber"], changed["type"]) == ("Greets.", 2, "check")
    assert [row["id"] for row in publisher.get(SCORERS).body["scorerDefinitions"]] == ["polite"]
    assert publisher.delete(f"{SCORERS}/polite").body["success"] is True
    assert publisher.get(f"{SCORERS}/polite").status_code == 404


@pytest.mark.parametrize("field", ["versionNumber", "createdAt"])
def test_versions_are_listed_in_the_order_that_the_request_names(publisher, field):
    create(publisher)
    publisher.patch(f"{SCORERS}/polite", {"name": "Kind"})
    path = f"{SCORERS}/polite/versions?orderBy[field]={field}&orderBy[direction]"

    listed = {
        direction: [row["versionNumber"] for row in publisher.get(f"{path}={direction}").body["versions"]]
        for direction in ("ASC", "DESC")
    }

    assert listed == {"ASC": [1, 2], "DESC": [2, 1]}
    refused = publisher.get(f"{SCORERS}/polite/versions?orderBy[field]=name")
    assert refused.body["issues"][0]["field"] == "orderBy.field"


def test_versions_are_compared_published_restored_and_deleted(publisher):
    create(publisher)
    publisher.patch(f"{SCORERS}/polite", {"name": "Kind"})
    second, first = publisher.get(f"{SCORERS}/polite/versions").body["versions"]
    versions = f"{SCORERS}/polite/versions"

    diff = publisher.get(f"{versions}/compare?from={first['id']}&to={second['id']}").body["diffs"]
    assert diff == [{"field": "name", "previousValue": "Polite", "currentValue": "Kind"}]
    assert publisher.post(f"{versions}/{first['id']}/activate", {}).body["activeVersionId"] == first["id"]
    assert publisher.get(f"{SCORERS}/polite").body["name"] == "Polite"
    assert publisher.post(f"{versions}/{first['id']}/restore", {}).body["versionNumber"] == 3
    assert publisher.delete(f"{versions}/{second['id']}").status_code == 200
    assert publisher.get(f"{versions}/{second['id']}").status_code == 404


@pytest.mark.parametrize(
    ("options", "is_accepted"),
    [({"passThreshold": 1}, True), ({"passThreshold": 1.5}, False), ({"passThreshold": -0.1}, False)]
    + [({"passThreshold": 4, "scoreRange": {"min": 1, "max": limit}}, limit > 4) for limit in (5, 3)],
)
def test_a_threshold_that_no_score_or_every_score_passes_is_refused(publisher, options, is_accepted):
    judge = {
        "name": "Judge",
        "type": "llm-judge",
        "model": {"provider": "demo", "name": "echo"},
        "instructions": "Look.",
    }

    answer = publisher.post(SCORERS, {**judge, **options})

    assert answer.status_code == (201 if is_accepted else 400), answer.body
    if not is_accepted:
        assert [issue["field"] for issue in answer.body["issues"]] == ["passThreshold"]


def test_the_draft_is_compared_with_the_live_version(publisher):
    create(publisher)
    publisher.patch(f"{SCORERS}/polite", {"name": "Warm", "publish": False})
    compare = f"{SCORERS}/polite/versions/compare"

    draft, unnamed = publisher.get(f"{compare}?from=live&to=head"), publisher.get(f"{compare}?from=live")

    assert draft.body["diffs"] == [{"field": "name", "previousValue": "Polite", "currentValue": "Warm"}]
    assert (unnamed.status_code, unnamed.body["issues"][0]["field"]) == (400, "to")


def test_a_draft_is_deleted_and_its_number_not_used_again(publisher):
    create(publisher)
    for name in ("Warm", "Warmer"):
        publisher.patch(f"{SCORERS}/polite", {"name": name, "publish": False})

    live, draft = (publisher.delete(f"{SCORERS}/polite/versions/{number}") for number in (1, 3))

    assert (live.status_code, live.body["code"], draft.status_code) == (400, "active_version", 200)
    assert publisher.get(f"{SCORERS}/polite?status=draft").body["name"] == "Polite"
    publisher.patch(f"{SCORERS}/polite", {"description": "New", "publish": False})
    versions = publisher.get(f"{SCORERS}/polite/versions").body["versions"]
    assert [version["versionNumber"] for version in versions] == [4, 2, 1]
    assert versions[0]["changedFields"] == ["description"]


def test_a_comparison_tells_true_from_1(publisher):
    schema = {"type": "object", "properties": {"score": {"const": 1}}}
    create(publisher, presetConfig={"check": "json-schema", "schema": schema})
    changed = {"type": "object", "properties": {"score": {"const": True}}}
    publisher.patch(f"{SCORERS}/polite", {"presetConfig": {"check": "json-schema", "schema": changed}})

    diffs = publisher.get(f"{SCORERS}/polite/versions/compare?from=1&to=2").body["diffs"]

    assert [diff["field"] for diff in diffs] == ["presetConfig"]


def test_a_draft_needs_no_publisher(publisher):
    create(publisher)
    editor = Caller(api_key(member("editor", "support")))

    assert editor.patch(f"{SCORERS}/polite", {"name": "Draft"}).status_code == 403
    assert editor.patch(f"{SCORERS}/polite", {"name": "Draft", "publish": False}).body["name"] == "Draft"
    assert editor.get(f"{SCORERS}/polite").body["name"] == "Polite"


def test_a_maximum_that_is_null_is_the_default_one(publisher):
    judge = {"type": "llm-judge", "model": {"provider": "demo", "name": "echo"}, "instructions": "Be strict."}

    create(publisher, **judge, presetConfig={}, scoreRange={"min": 0.5, "max": None})
    refused = publisher.post(SCORERS, {**POLITE, **judge, "presetConfig": {}, "scoreRange": {"min": 1, "max": None}})

    assert (refused.status_code, refused.body["issues"][0]["field"]) == (400, "scoreRange")


def test_faults_name_their_field(publisher):
    answer = publisher.post(SCORERS, {"name": "Judge", "type": "llm-judge"})

    assert answer.status_code == 400
    assert {issue["field"] for issue in answer.body["issues"]} >= {"model.provider", "instructions"}


def test_usable_scorers_name_their_agents(publisher, run):
    create(publisher)

    entries = publisher.get("/api/scores/scorers").body
    assert entries["polite"]["agentIds"] == ["clerk"]
    assert entries["answer-length"]["source"] == "code"
    assert publisher.get("/api/scores/scorers/polite").body["scorer"]["config"]["name"] == "Polite"


def test_agents_without_scorers_are_not_read_for_the_list_of_scorers(run):
    AgentFactory(id="plain", owner_id="support")

    assert [agent.pk for agent in agents_with_scorers(member("viewer", "support"))] == ["clerk"]


def test_a_usable_scorer_names_its_own_agents_as_they_are_live(publisher, run):
    create(publisher)
    AgentFactory(id="other", owner_id="support", scorers={"exact": {}})
    drafted = AgentFactory(id="drafted", owner_id="support")
    with change(publish=False):
        drafted.edit({"scorers": {"polite": {}}})
        Agent.objects.get(pk="clerk").edit({"scorers": {}})

    assert publisher.get("/api/scores/scorers/polite").body["agentIds"] == ["clerk"]


def test_people_score_an_answer(publisher, run):
    create(publisher)
    sent = {"score": {"runId": str(run.pk), "scorerId": "polite", "score": 0.5, "reason": "Too short."}}
    score = publisher.post("/api/scores", sent).body["score"]

    assert (score["score"], score["source"], score["entityId"]) == (0.5, "PERSON", "clerk")
    assert score["createdBy"]
    routes = (f"run/{run.pk}", "scorer/polite", "entity/AGENT/clerk")
    for path in (*(f"/api/scores/{route}" for route in routes), "/api/observability/scores"):
        assert [row["id"] for row in publisher.get(path).body["scores"]] == [score["id"]]


def test_people_score_a_trace(publisher, run):
    score = {"traceId": str(run.pk), "scorerId": "polite", "score": 0.5, "metadata": {"page": 3}}

    answer = publisher.post("/api/observability/scores", {"score": score})

    assert (answer.status_code, answer.body["success"]) == (201, True)
    (stored,) = publisher.get("/api/observability/scores").body["scores"]
    assert (stored["runId"], stored["score"], stored["source"]) == (str(run.pk), 0.5, "PERSON")
    assert Score.objects.get().details == {"page": 3}


@pytest.mark.parametrize("state", [{"open": True}, {"suspended": True}])
def test_programs_score_a_run_while_it_goes_on(publisher, state):
    """As on other servers of this protocol. The last event of a stream may arrive before the run is finished."""
    run = RunFactory(agent=AgentFactory(owner_id="support"), **state)
    score = {"scorerId": "polite", "score": 0.5}

    answers = [
        publisher.post("/api/scores", {"score": {**score, "runId": str(run.pk)}}),
        publisher.post("/api/observability/scores", {"score": {**score, "traceId": str(run.pk)}}),
    ]

    assert [answer.status_code for answer in answers] == [201, 201]
    assert Score.objects.filter(run=run).count() == 2


@pytest.mark.parametrize("name", ["traceId", "scorerId", "score"])
def test_a_score_of_a_trace_names_what_is_missing(publisher, run, name):
    score = {"traceId": str(run.pk), "scorerId": "polite", "score": 0.5}
    del score[name]

    answer = publisher.post("/api/observability/scores", {"score": score})

    assert (answer.status_code, [issue["field"] for issue in answer.body["issues"]]) == (400, [f"score.{name}"])
    assert not Score.objects.exists()


def test_a_run_is_a_trace(publisher, run):
    path = f"/api/observability/traces/{run.pk}"
    root, call = publisher.get(path).body["spans"]

    assert (root["spanId"], root["spanType"], root["parentSpanId"]) == (str(run.pk), "agent_run", None)
    assert (call["entityName"], call["input"], call["output"]) == ("refund", {"order": "A1"}, "Done")
    assert publisher.get(f"{path}/spans/{call['spanId']}").body["span"]["name"] == "tool: 'refund'"
    assert publisher.get(f"{path}/trajectory").body["steps"][0]["name"] == "refund"
    assert "input" not in publisher.get(f"{path}/light").body["spans"][0]
    assert [span["traceId"] for span in publisher.get("/api/observability/traces").body["spans"]] == [str(run.pk)]
    assert "output" not in publisher.get("/api/observability/traces/light").body["spans"][0]


def test_the_scores_of_an_experiment_are_those_of_a_run_with_its_id(publisher, stranger):
    experiment = ended(make_dataset("One", "Two", "Three", owner_id="support"), [0.5, 0.75, None])
    unscored = {"scorerId": "polite", "scorerName": "Polite", "score": None, "error": "No connection."}
    for result in sorted(experiment.results.filter(error__isnull=True), key=lambda result: result.output):
        result.completed_at = timezone.now()
        result.scores = [unscored, *result.scores, {"scorerId": "own", "score": 0, "version": 2}]
        result.save()
    path = f"/api/scores/run/{experiment.pk}"

    listed = publisher.get(path).body
    pages = [publisher.get(f"{path}?perPage=3&page={page}").body for page in (0, 1, 2)]

    assert [(row["scorerId"], row["score"]) for row in listed["scores"]] == [
        ("exact", 0.75),
        ("own", 0),
        ("exact", 0.5),
        ("own", 0),
    ]
    first = listed["scores"][0]
    assert (first["runId"], first["source"], first["output"]) == (str(experiment.pk), "TEST", "answer 0.75")
    assert (first["input"], first["scorer"]["name"], listed["scores"][1]["scorerVersion"]) == ("Two", "Exact", 2)
    assert [row for page in pages for row in page["scores"]] == listed["scores"]
    assert pages[0]["pagination"] == {"total": 4, "page": 0, "perPage": 3, "hasMore": True}
    assert stranger.get(path).status_code == 404


def test_later_routes_are_not_supported(publisher):
    answer = publisher.get("/api/observability/metrics/names")

    assert (answer.status_code, answer.body["code"]) == (501, "not_implemented")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("get", "/api/stored/scorers/polite"),
        ("patch", "/api/stored/scorers/polite"),
        ("delete", "/api/stored/scorers/polite"),
        ("get", "/api/stored/scorers/polite/versions"),
        ("post", "/api/stored/scorers/polite/versions"),
        ("get", "/api/stored/scorers/polite/versions/compare?from=1&to=1"),
        ("get", "/api/stored/scorers/polite/versions/1"),
        ("delete", "/api/stored/scorers/polite/versions/1"),
        ("post", "/api/stored/scorers/polite/versions/1/activate"),
        ("post", "/api/stored/scorers/polite/versions/1/restore"),
        ("get", "/api/scores/scorers/polite"),
        ("get", "/api/scores/scorer/polite"),
        ("get", "/api/scores/entity/AGENT/clerk"),
        ("get", "/api/scores/run/{run}"),
        ("post", "/api/scores"),
        ("post", "/api/observability/scores"),
        ("get", "/api/observability/traces/{run}"),
        ("get", "/api/observability/traces/{run}/light"),
        ("get", "/api/observability/traces/{run}/trajectory"),
        ("get", "/api/observability/traces/{run}/spans/{run}"),
    ],
)
def test_a_stranger_gets_404(publisher, stranger, run, method, path):
    create(publisher)
    score = {"runId": str(run.pk), "traceId": str(run.pk), "scorerId": "x", "score": 1}
    body = {"score": score} if path.endswith("/scores") else {"name": "Mine"}

    answer = stranger.call(method.upper(), path.replace("{run}", str(run.pk)), None if method == "get" else body)

    assert answer.status_code == 404, answer.body


def test_lists_leave_out_what_a_stranger_may_not_see(publisher, stranger, run):
    create(publisher)
    Score.objects.create(run=run, scorer="polite", score=1)

    assert stranger.get(SCORERS).body["scorerDefinitions"] == []
    assert "polite" not in stranger.get("/api/scores/scorers").body
    assert stranger.get("/api/observability/scores").body["scores"] == []
    assert stranger.get("/api/observability/traces").body["spans"] == []
