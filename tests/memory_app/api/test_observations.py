"""The routes of observational memory."""

import time
from datetime import datetime
from types import SimpleNamespace

import pytest
from django.db.models.signals import post_init

from jobs_app.models import Job
from jobs_app.runner import enqueue
from memory_app.api import observations
from memory_app.models import Observation
from memory_app.observational.jobs import OBSERVE_THREAD
from memory_app.observational.limits import THREAD_REQUIRED_MESSAGE
from runs_app.events.streams import StreamSlot
from tests.api_client import Caller
from tests.factories import AgentFactory, api_key, member
from tests.memory_app.conftest import add_thread

pytestmark = pytest.mark.django_db

ROUTE = "/api/memory/observational-memory"
MEMORY = {"options": {}, "observationalMemory": {"model": "demo/echo", "observation": {"messageTokens": 400}}}


@pytest.fixture
def user():
    return member("editor")


@pytest.fixture
def caller(user):
    return Caller(api_key(user))


@pytest.fixture
def thread(user):
    agent = AgentFactory(id="concierge", memory=MEMORY)
    texts = [("user", "x" * 40), ("assistant", "y" * 40), ("user", "z" * 40)]
    return add_thread(user, "t", "alice", texts, agent=agent, agent_key=agent.pk)


def observed(thread, first, last, text, **columns):
    return Observation.objects.create(
        thread=thread, first=first, last=last, text=text, tokens=5, message_tokens=10, **columns
    )


def test_a_record_has_the_observations_and_those_before_a_reflection(caller, thread):
    observed(thread, 1, 1, "old", is_active=True)
    observed(thread, 1, 1, "new", is_active=True, generation=1)
    observed(thread, 2, 2, "waiting", generation=1)

    body = caller.get(f"{ROUTE}?agentId=concierge&threadId=t&resourceId=alice").body

    record = body["record"]
    assert (record["activeObservations"], record["bufferedObservations"]) == ("new", "waiting")
    assert (record["originType"], record["generationCount"], record["pendingMessageTokens"]) == ("reflection", 1, 20)
    assert (record["resourceId"], record["threadId"], record["scope"]) == ("alice", "t", "thread")
    assert record["config"]["messageTokens"] == 400
    assert record["bufferedObservationChunks"][0]["observations"] == "waiting"
    assert [item["activeObservations"] for item in body["history"]] == ["old"]
    assert caller.get(f"{ROUTE}?threadId=t&offset=1").body["history"] == []
    assert caller.get(f"{ROUTE}?threadId=t&to=2001-01-01T00:00:00Z").body["history"] == []


@pytest.fixture
def loaded():
    """The generations of the observations that are loaded, in order."""
    generations = []

    def note(instance, **_):
        generations.append(instance.generation)

    post_init.connect(note, sender=Observation)
    yield generations
    post_init.disconnect(note, sender=Observation)


def test_a_page_of_the_history_loads_no_other_generations(caller, thread, loaded):
    for number in range(4):
        at = datetime.fromisoformat(f"2026-01-0{number + 1}T00:00:00Z")
        observed(thread, 1, 2, "first", is_active=True, generation=number, created_at=at)
        observed(thread, 3, 3, "more", is_active=True, generation=number)

    def numbers(query):
        loaded.clear()
        history = caller.get(f"{ROUTE}?threadId=t&{query}").body["history"]
        return [record["generationCount"] for record in history], sorted({*loaded} - {3})

    assert numbers("limit=1&offset=1") == ([1], [1])
    assert numbers("to=2026-01-02T00:00:00Z") == ([1, 0], [0, 1])
    assert numbers("from=2026-01-03T00:00:00Z") == ([2], [2])


def test_without_observations_the_record_is_null(caller, thread):
    assert caller.get(f"{ROUTE}?threadId=t").body == {"record": None, "history": []}


def test_who_left_the_team_does_not_read_the_models_of_its_agent(caller, user, thread):
    observed(thread, 1, 2, "Likes lamps.")
    assert caller.get(f"{ROUTE}?threadId=t").body["record"]["config"]["observationModel"] == "demo/echo"
    user.memberships.update(owner_id="sales")

    records = [
        caller.get(f"{ROUTE}?threadId=t").body["record"],
        caller.post(f"{ROUTE}/buffer-status", {"threadId": "t"}).body["record"],
    ]

    assert [record["config"] for record in records] == [{}, {}]


@pytest.mark.parametrize("query", ["", "?threadId=undefined"])
def test_a_thread_is_required(caller, thread, query):
    answers = [caller.get(f"{ROUTE}{query}"), caller.post(f"{ROUTE}/buffer-status", {"agentId": "concierge"})]

    assert {(answer.status_code, answer.body["code"]) for answer in answers} == {(400, "thread_required")}
    assert answers[0].body["error"] == THREAD_REQUIRED_MESSAGE


def test_invalid_parameters_are_named(caller, thread):
    answer = caller.get(f"{ROUTE}?threadId=t&limit=0&from=yesterday")

    assert answer.status_code == 400
    assert {issue["field"] for issue in answer.body["issues"]} == {"limit", "from"}


def test_the_status_has_figures_of_a_thread(caller, thread):
    observed(thread, 1, 1, "one", is_active=True)

    state = caller.get("/api/memory/status?agentId=concierge&threadId=t").body["observationalMemory"]

    assert (state["enabled"], state["hasRecord"], state["isObserving"]) == (True, True, False)
    assert (state["tokenCount"], state["observationTokenCount"]) == (20, 5)
    config = caller.get("/api/memory/config?agentId=concierge").body["config"]["observationalMemory"]
    assert (config["observationModel"], config["observationTokens"]) == ("demo/echo", 40000)


def test_the_buffer_status_waits_for_the_job_of_the_thread(caller, thread, monkeypatch):
    job = enqueue(OBSERVE_THREAD, {"thread": thread.pk, "run": None})
    waits = []

    def finish(seconds):
        waits.append(seconds)
        observed(thread, 1, 2, "done")
        Job.objects.filter(pk=job.pk).update(state=Job.State.DONE)

    # Not the function of the module itself, with which other threads wait too.
    monkeypatch.setattr(observations, "time", SimpleNamespace(monotonic=time.monotonic, sleep=finish))

    answer = caller.post(f"{ROUTE}/buffer-status", {"agentId": "concierge", "threadId": "t", "resourceId": "alice"})

    assert answer.body["record"]["bufferedObservations"] == "done"
    assert waits == [0.5]


def test_the_buffer_status_waits_for_a_limited_time(caller, thread, monkeypatch):
    enqueue(OBSERVE_THREAD, {"thread": thread.pk, "run": None})  # no worker takes it
    now, limit = [0.0], observations.WAIT_SECONDS
    monkeypatch.setattr(observations, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=lambda s: pass_time(s)))

    def pass_time(seconds):
        now[0] += seconds

    answer = caller.post(f"{ROUTE}/buffer-status", {"agentId": "concierge", "threadId": "t", "resourceId": "alice"})

    assert (answer.status_code, answer.body["record"]) == (200, None)
    assert (limit, now) == (30, [30])


def test_a_stranger_finds_nothing(thread):
    stranger = Caller(api_key(member("editor")))

    assert stranger.get(f"{ROUTE}?threadId=t").status_code == 404
    assert stranger.post(f"{ROUTE}/buffer-status", {"threadId": "t"}).status_code == 404


def test_the_buffer_status_has_the_limits_of_streams(caller, user, thread, settings):
    settings.RUN_STREAMS_PER_USER = 1

    with StreamSlot(user):
        answer = caller.post(f"{ROUTE}/buffer-status", {"threadId": "t", "resourceId": "alice"})

    assert (answer.status_code, answer.body["code"]) == (429, "too_many_streams")


def test_names_that_buffer_status_does_not_read_are_reported(caller, thread):
    sent = {"threadId": "t", "agentId": "concierge", "treadId": "t"}

    answer, strict = (caller.post(f"{ROUTE}/buffer-status{query}", sent) for query in ("", "?strict=true"))

    assert [warning["field"] for warning in answer.body["warnings"]] == ["treadId"]
    assert (strict.status_code, [issue["field"] for issue in strict.body["issues"]]) == (400, ["treadId"])
