"""The background tasks of an agent in the editor."""

import pytest
from django.urls import reverse

from agents_app.models import Agent
from tests.factories import AgentFactory, member
from tests.form_submission import form_data

pytestmark = pytest.mark.django_db


@pytest.fixture
def publisher(client):
    client.force_login(member("publisher"))
    return client


def save(client, agent, changes):
    url = reverse("agents:edit", args=[agent.pk])
    data = form_data(client.get(url).content.decode())
    for name, value in changes.items():
        data.setlist(name, [value])
    data["publish"] = "yes"
    return client.post(url, dict(data.lists()))


def test_each_tool_has_a_choice_with_figures(publisher):
    agent = AgentFactory(tools=["calculator", "current-time"])

    first = save(
        publisher,
        agent,
        {
            "background-use-calculator": "awaited",
            "background-timeout-calculator": "600",
            "background-retries-calculator": "2",
            "background-use-current-time": "never",
        },
    )
    chosen = Agent.objects.get().background_tasks
    save(publisher, agent, {})
    unchanged = Agent.objects.get().background_tasks
    save(publisher, agent, {"background_tasks": "all"})
    every_tool = Agent.objects.get().background_tasks
    save(publisher, agent, {"background_tasks": "disabled"})
    disabled = Agent.objects.get().background_tasks

    assert first.status_code == 302
    assert chosen == {
        "tools": {
            "calculator": {"enabled": True, "disposition": "awaited", "timeoutMs": 600_000, "maxRetries": 2},
            "current-time": False,
        }
    }
    assert unchanged == chosen
    assert every_tool == {"tools": "all"}
    assert disabled == {"disabled": True, "tools": "all"}


def test_members_without_an_input_stay_and_no_choice_is_no_value(publisher):
    choice = {"enabled": True, "ordered": True, "reason": "slow"}
    config = {"tools": {"calculator": choice, "gone": {"timeoutMs": 5000}}, "note": 1}
    agent = AgentFactory(tools=["calculator"], background_tasks=config)

    save(publisher, agent, {"background-timeout-calculator": "1.5"})
    stored = Agent.objects.get().background_tasks
    save(publisher, AgentFactory(id="plain", tools=["calculator"]), {})

    assert stored["tools"]["calculator"] == {**choice, "timeoutMs": 1500}
    assert stored["tools"]["gone"] == {"timeoutMs": 5000}
    assert stored["note"] == 1
    assert Agent.objects.get(pk="plain").background_tasks is None


def test_a_timeout_keeps_its_digits_when_another_input_changes(publisher):
    choice = {"enabled": True, "timeoutMs": 1_234_567, "maxRetries": 1}
    agent = AgentFactory(tools=["calculator"], background_tasks={"tools": {"calculator": choice}})

    save(publisher, agent, {"background-retries-calculator": "2"})

    assert Agent.objects.get().background_tasks == {"tools": {"calculator": {**choice, "maxRetries": 2}}}


def test_a_figure_that_is_no_number_is_named(publisher):
    agent = AgentFactory(tools=["calculator"])

    answer = save(publisher, agent, {"background-use-calculator": "deferred", "background-retries-calculator": "many"})

    assert answer.status_code == 422
    assert "The retries of calculator are not a whole number." in answer.content.decode()
    assert Agent.objects.get().background_tasks is None


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ([], "backgroundTasks"),
        ({"disabled": "yes"}, "backgroundTasks.disabled"),
        ({"tools": {"a": {"timeoutMs": 0}}}, "backgroundTasks.tools"),
        ({"tools": {"a": {"disposition": "later"}}}, "backgroundTasks.tools"),
        ({"tools": "some"}, "backgroundTasks.tools"),
    ],
)
def test_the_api_refuses_other_values_with_their_path(publisher, value, path):
    agent = AgentFactory()

    answer = publisher.patch(
        f"/api/stored/agents/{agent.pk}", {"backgroundTasks": value}, content_type="application/json"
    )

    assert answer.status_code == 400
    assert answer.json()["issues"][0]["field"].startswith(path)
    assert Agent.objects.get().background_tasks is None
