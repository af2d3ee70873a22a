"""The stream that stays open until the background tasks of a run have ended."""

import json

import pytest
from django.test import Client

from tests.factories import AgentFactory

pytestmark = pytest.mark.django_db(transaction=True)


def stream(tasks, route, **body):
    plan = [[["count", {"number": 1, "gate": body.pop("gate", "")}]], "I have started it."]
    agent = AgentFactory(
        model={"provider": "planned", "name": "plan", "plan": plan}, tools=["count"], background_tasks={"tools": "all"}
    )
    client = Client()
    client.force_login(tasks.user)
    answer = client.post(
        f"/api/agents/{agent.pk}/{route}", {"messages": "Count", **body}, content_type="application/json"
    )
    for block in b"".join(answer.streaming_content).decode().split("\n\n"):
        if block.startswith("data: {"):
            yield json.loads(block[6:])


@pytest.mark.parametrize(
    ("route", "body"),
    [("stream-until-idle", {}), ("stream", {"untilIdle": True}), ("stream", {"untilIdle": {}})],
    ids=["route", "member", "object"],
)
def test_the_stream_ends_after_the_result_of_the_task(tasks, route, body):
    kinds = [chunk["type"] for chunk in stream(tasks, route, **body)]

    assert kinds[0] == "start"
    assert kinds.count("background-task-started") == kinds.count("background-task-running") == 1
    assert kinds.count("background-task-completed") == 1
    assert kinds[-1] in ("background-task-completed", "finish")


def test_the_stream_of_a_run_ends_with_the_run(tasks):
    kinds = [chunk["type"] for chunk in stream(tasks, "stream", gate="g")]
    tasks.open("g")

    assert kinds[-1] == "finish"


def test_an_idle_stream_ends_after_its_time(tasks):
    kinds = [chunk["type"] for chunk in stream(tasks, "stream-until-idle", gate="g", maxIdleMs=200)]
    tasks.open("g")

    assert "background-task-completed" not in kinds
    assert "background-task-progress" in kinds
