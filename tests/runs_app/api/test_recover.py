"""Recovery of durable runs whose process has died, by request."""

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from runs_app.engine import reaper
from runs_app.models import AgentRun
from tests.api_client import Caller
from tests.factories import AgentFactory, api_key, member
from tests.runs import DEMO, start_run, wait_for_end
from tests.runs_app.factories import RunFactory

pytestmark = pytest.mark.usefixtures("idle_engine")


class RecordingRunner:
    """A runner that records what it is asked to dispatch."""

    def __init__(self):
        self.dispatched = []

    def dispatch(self, run_id):
        self.dispatched.append(run_id)
        AgentRun.objects.filter(pk=run_id).update(status="failed", finished_at=timezone.now())
        return True


@pytest.fixture
def runner(monkeypatch):
    runner = RecordingRunner()
    monkeypatch.setattr(reaper, "get_runner", lambda: runner)
    return runner


@pytest.fixture
def user():
    return member("editor")


@pytest.fixture
def agent():
    return AgentFactory(id="concierge", model=DEMO)


def recover(user, run, role="", agent_id="concierge"):
    caller = Caller(api_key(user, role))
    return caller.client.post(
        f"/api/agents/{agent_id}/recover", {"runId": str(run.pk)}, content_type="application/json"
    )


def read(answer):
    assert answer.status_code == 200, answer.content
    return b"".join(answer.streaming_content).decode()


def test_a_finished_run_is_read_from_its_first_event(user, agent, runner):
    run = wait_for_end(start_run(agent, user))

    blocks = read(recover(user, run)).split("\n\n")

    chunks = [json.loads(block.removeprefix("data: ")) for block in blocks if block.startswith("data: {")]
    assert [chunk["type"] for chunk in chunks] == [data["type"] for data in run.events.values_list("data", flat=True)]
    assert runner.dispatched == []


def test_a_queued_run_is_dispatched(user, agent, runner):
    run = RunFactory(agent=agent, requested_by=user, status="queued", is_durable=True, finished_at=None)

    read(recover(user, run))

    assert runner.dispatched == [run.pk]


def test_a_run_whose_process_died_is_queued_and_dispatched(user, agent, runner):
    expired = {"lease_until": timezone.now() - timedelta(seconds=1), "holder": "there:1:x", "is_durable": True}
    run, other = (RunFactory(agent=agent, requested_by=user, open=True, **expired) for _ in range(2))

    read(recover(user, run))

    assert runner.dispatched == [run.pk]
    run.refresh_from_db()
    other.refresh_from_db()
    assert (run.attempts, other.attempts) == (1, 0)


def test_a_run_that_a_process_executes_is_left_alone(user, agent, runner):
    alive = {"lease_until": timezone.now() + timedelta(seconds=60), "holder": "there:1:x", "is_durable": True}
    run = RunFactory(agent=agent, requested_by=user, open=True, **alive)

    reaper.recover_run(run)

    assert runner.dispatched == []


def test_only_readers_with_the_role_recover(user, agent, runner):
    run = RunFactory(agent=agent, requested_by=user, status="queued", is_durable=True, finished_at=None)

    for stranger in (member("editor"), member("manager", "elsewhere")):
        assert recover(stranger, run).status_code == 404
    assert recover(user, run, agent_id="other").status_code == 404
    assert recover(user, run, role="viewer").status_code == 403
    assert runner.dispatched == []


def test_stream_until_idle_answers_as_stream_does(user, agent):
    caller = Caller(api_key(user))
    answer = caller.client.post(
        "/api/agents/concierge/stream-until-idle", {"messages": "Hello"}, content_type="application/json"
    )

    assert read(answer).endswith("data: [DONE]\n\n")
    assert AgentRun.objects.get().status == "succeeded"
