"""The command `seed_demo_runs`."""

from io import StringIO

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.urls import reverse

from agents_app.models import Agent
from jobs_app.models import Job
from jobs_app.runner import run_claimed
from memory_app.models import Message, Thread
from memory_app.recall.indexing import INDEX_MESSAGES
from runs_app.models import AgentRun, PendingCall
from runs_app.usage.figures import UsageFigures
from runs_app.usage.report import build_report
from tests.runs import start_run, wait_for_end

pytestmark = pytest.mark.usefixtures("idle_engine")


def seed():
    output = StringIO()
    call_command("seed_demo", stderr=output)
    call_command("seed_demo_runs", stderr=output)
    return output.getvalue()


def test_demo_runs_use_a_tool_and_a_sub_agent():
    output = seed()

    runs = AgentRun.objects.filter(parent=None, agent="storyteller")
    assert "Created 4 runs of storyteller, " in output
    assert set(runs.values_list("status", "is_demo")) == {("succeeded", True)}
    assert set(runs.values_list("requested_by_name", flat=True)) == {"ada", "maya", "tom"}
    assert AgentRun.objects.get(parent__in=runs).agent_key == "proofreader"
    called = [event.data["payload"]["toolName"] for run in runs for event in run.events.filter(type="tool-call")]
    assert sorted(called) == ["agent-proofreader", "word-count"]


def test_an_agent_was_used_for_weeks_in_several_versions():
    seed()
    agent = Agent.objects.get(pk="support-triage")

    report = build_report(agent, get_user_model().objects.get(username="ada"), 30)

    assert {6, 7, 8, 9} <= {*report.versions}
    assert len({day for day, _ in report.usage}) >= 25
    total = UsageFigures()
    for figures in report.totals.values():
        total.add(figures)
    assert total.errors
    assert total.cost
    assert total.scores
    assert len(report.moves) >= 3


def test_calls_wait_for_people_and_others_were_decided():
    seed()
    waiting = PendingCall.objects.waiting()
    tools = {call.tool: call.agent_key for call in waiting.exclude(kind="child")}

    manager = get_user_model().objects.get(username="maya")
    assert tools == {"issue-refund": "refund-desk", "arrange-delivery": "delivery-planner"}
    assert PendingCall.objects.decidable_by(manager).count() == 3
    assert waiting.get(kind="child").agent_key == "service-desk"
    decided = PendingCall.objects.exclude(state="open").order_by("created_at")
    assert [call.state for call in decided] == ["resumed", "declined", "approved", "approved"]
    assert {call.run.status for call in decided} == {"succeeded"}
    outputs = " ".join(call.run.output for call in decided)
    assert "delivered on Friday, with a note for the driver: Ring twice" in outputs
    assert "Refunded 40.00 for order A-1009" in outputs
    assert "This order was refunded in May." in outputs


def test_seeding_again_creates_no_runs():
    seed()
    before = AgentRun.objects.count()

    assert seed() == ""
    assert AgentRun.objects.count() == before


def test_without_demo_agents_no_runs_are_created():
    call_command("seed_demo_runs")

    assert not AgentRun.objects.exists()


def test_an_assistant_remembers_a_conversation_of_three_weeks():
    seed()

    trip, meeting = Thread.objects.filter(agent="travel-assistant").order_by("key")
    times = trip.messages.order_by("number").values_list("created_at", flat=True)
    assert (times[len(times) - 1] - times[0]).days >= 19
    assert [(row.first, row.last) for row in trip.observations.all()] == [(1, 6), (7, 12)]
    assert "shellfish" in trip.resource.working_memory
    assert {*meeting.messages.exclude(author=None).values_list("author_name", flat=True)} == {"tom", "maya"}
    assert [participant.user.username for participant in meeting.participants.all()] == ["maya"]


def test_its_recall_can_be_tried_at_once(client):
    """On the page of the conversation, and by asking the assistant in a new one."""
    seed()
    for job in Job.objects.filter(kind=INDEX_MESSAGES):
        run_claimed(str(job.pk))
    tom = get_user_model().objects.get(username="tom")
    client.force_login(tom)
    question = "Which food makes him ill?"

    recalled = client.get(reverse("threads:view", args=["lisbon"]), {"recall": question}).context["recalled"]
    run = start_run(Agent.objects.get(pk="travel-assistant"), tom, question, thread="new")

    assert "I am allergic to shellfish, so please no seafood restaurants." in [row["text"] for row in recalled]
    assert recalled[0]["url"].startswith("/threads/lisbon")
    hits = wait_for_end(run).remembered["recall"]
    allergy = Message.objects.get(text__startswith="I am allergic to shellfish")
    assert allergy.pk in {hit["message"] for hit in hits}
    assert run.remembered["workingMemory"]["revision"] == 1
