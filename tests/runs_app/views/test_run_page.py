"""The page of a run."""

from datetime import timedelta
from html import unescape

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from access_app.models import Membership
from access_app.role import Role
from agents_app.models import Agent
from agents_app.registry import Kind, registry
from evals_app.scorers.changes import create_scorer
from memory_app.models import Thread
from runs_app.models import AgentRun, Score
from tests.api_client import Caller
from tests.factories import AgentFactory, api_key, member
from tests.page_client import browser
from tests.runs import DEMO
from tests.runs_app.factories import RunFactory
from tests.runs_app.views.conftest import page_text

CALL = ("tool-call", {"toolCallId": "a", "toolName": "word-count", "args": {"text": "one two"}})
RESULT = ("tool-result", {"toolCallId": "a", "toolName": "word-count", "result": 2})


def page(client, run, name="view"):
    return client.get(reverse(f"runs:{name}", args=[run.pk]))


def test_it_shows_input_answer_and_usage(editor, ann, agent):
    run = RunFactory(agent=agent, requested_by=ann, prompt="Who are you?", output="The porter.")

    text = page_text(page(editor, run))

    assert "Run of Concierge" in text
    assert "Who are you?" in text
    assert "The porter." in text
    assert "Input tokens 12 Output tokens 3" in text
    assert "Duration 2.3 s" in text


@pytest.mark.parametrize(
    "address", ["/runs/{child}", "/runs/{run}", "/agents/{agent}/try?runs={run}", "/api/runs/{run}"]
)
def test_no_page_reads_the_messages_that_only_the_next_segment_needs(editor, ann, agent, address):
    run = RunFactory(agent=agent, requested_by=ann, conversation={"messages": []})
    child = RunFactory(agent=agent, requested_by=ann, parent=run, root_id=run.pk, conversation={"messages": []})

    with CaptureQueriesContext(connection) as queries:
        response = editor.get(address.format(run=run.pk, child=child.pk, agent=agent.pk))

    assert response.status_code == 200
    assert [query["sql"] for query in queries if '"conversation"' in query["sql"]] == []


def test_it_labels_the_demo_model(editor, ann, agent):
    assert "The built-in demo model answered." in page_text(page(editor, RunFactory(agent=agent, requested_by=ann)))


def test_the_answer_is_escaped(editor, ann, agent):
    evil = "<script>alert(1)</script>"
    called = [
        ("tool-call", {"toolCallId": "a", "toolName": evil, "args": {evil: evil}}),
        ("text-delta", {"text": evil}),
    ]
    run = RunFactory(
        agent=agent, requested_by=ann, prompt=evil, output=evil, error=evil, status="failed", chunks=called
    )

    assert evil not in page(editor, run).content.decode()
    assert evil not in page(editor, run, "answer").content.decode()


def test_a_result_that_looks_like_a_search_needs_no_document(editor, ann, agent):
    row = {"document": "Install.md", "documentId": "Install.md", "place": "Ports", "score": 1, "text": "Eighty."}
    result = {**RESULT[1], "result": {"knowledgeBase": "handbook", "results": [row]}}
    run = RunFactory(agent=agent, requested_by=ann, chunks=[CALL, ("tool-result", result)])

    assert "Found Install.md , Ports : score 1.00 Eighty." in page_text(page(editor, run))


def test_calls_are_folded_and_have_time_bars(editor, ann, agent):
    run = RunFactory(agent=agent, requested_by=ann, chunks=[("step-start", {}), CALL, RESULT, ("step-finish", {})])

    answer = page(editor, run)

    assert '<details class="call" data-call="a" data-state="done">' in answer.content.decode()
    assert "2.5 s in total Waiting 0.2 s Preparing 0.1 s Model, step 1 0.1 s Word count 0.1 s" in page_text(answer)


def test_a_sub_agent_call_links_to_its_run(editor, ann, agent):
    call = ("tool-call", {"toolCallId": "a", "toolName": "agent-porter", "args": {}})
    run = RunFactory(agent=agent, requested_by=ann, chunks=[call])
    child = RunFactory(agent=agent, requested_by=ann, parent=run, parent_call_id="a", agent_key="porter")

    html = page(editor, run).content.decode()

    assert html.count(reverse("runs:view", args=[child.pk])) == 2
    assert reverse("runs:view", args=[run.pk]) in page(editor, child).content.decode()


def test_usage_includes_nested_sub_runs(editor, ann, agent):
    run = RunFactory(agent=agent, requested_by=ann, is_demo=False, cost="0.02")
    child = RunFactory(agent=agent, requested_by=ann, parent=run, is_demo=False, cost="0.03")
    grandchild = RunFactory(agent=agent, requested_by=ann, parent=child)

    assert "With sub-agents 45 tokens, $0.05" in page_text(page(editor, run))
    assert "With sub-agents 30 tokens, $0.03" in page_text(page(editor, child))
    assert "With sub-agents" not in page_text(page(editor, grandchild))


def test_no_cost_is_shown_where_a_price_is_unknown(editor, ann, agent):
    run = RunFactory(agent=agent, requested_by=ann, is_demo=False, cost="0.02")
    RunFactory(agent=agent, requested_by=ann, parent=run, is_demo=False, cost=None)

    text = page_text(page(editor, run))

    assert "With sub-agents 30 tokens" in text
    assert "30 tokens, $" not in text


def test_a_failed_run_shows_its_error(editor, ann, agent):
    run = RunFactory(agent=agent, requested_by=ann, status="failed", error="The model is asked too much.", chunks=[])

    assert "No answer. The model is asked too much." in page_text(page(editor, run))


def test_a_cancelled_run_is_labelled(editor, ann, agent):
    assert "Stopped." in page_text(page(editor, RunFactory(agent=agent, requested_by=ann, status="cancelled")))


def test_scores_have_the_names_of_their_scorers(editor, ann, agent):
    run = RunFactory(agent=agent, requested_by=ann)
    snapshot = {"name": "Tone of voice", "type": "check", "presetConfig": {"check": "includes", "value": "please"}}
    create_scorer(snapshot, owner_id=agent.owner_id, author="ann", id="polite-v2")
    Score.objects.create(run=run, scorer="answer-length", score=1)
    Score.objects.create(run=run, scorer="polite-v2", score=0.5, scorer_version=3)

    text = page_text(page(editor, run))

    assert f"{registry.get(Kind.SCORER, 'answer-length').title} 1.00" in text
    assert "Tone of voice v3 0.50" in text


def test_warnings_and_scores_are_shown(editor, ann, agent):
    warning = {"field": "tools", "key": "gone", "message": "No tool is registered as 'gone'."}
    run = RunFactory(agent=agent, requested_by=ann, warnings=[warning])
    Score.objects.create(run=run, scorer="tone", score=0.75)
    Score.objects.create(run=run, scorer="length", error="The scorer failed.")
    Score.objects.create(run=run, scorer="equality")  # of an answer without a ground truth

    answer = page(editor, run)
    text = page_text(answer)

    assert "No tool is registered as &#x27;gone&#x27;. The agent ran without it." in text
    assert "length The scorer failed." in text
    assert "tone 0.75" in text
    assert "equality not scorable" in text
    # Scorers have ranges of their own, and of some a low score is good: a bar from 0 to 1 would say something else.
    assert "<meter" not in answer.content.decode()


def test_an_unfinished_run_can_be_reloaded_and_cancelled(editor, ann, agent):
    run = RunFactory(agent=agent, requested_by=ann, open=True, chunks=[("text-delta", {"text": "Good"})])

    response = page(editor, run)

    assert "Still running. Refresh to see more." in page_text(response)
    editor.post(reverse("runs:stop", args=[run.pk]))
    assert AgentRun.objects.get(pk=run.pk).cancel_requested_at is not None


def test_the_configuration_of_the_run_is_shown_after_a_change(editor, ann, agent):
    run = RunFactory(agent=agent, requested_by=ann)
    agent.edit({"instructions": "Say nothing."})

    text = page_text(page(editor, run))

    assert "Greet guests warmly." in text
    assert "Say nothing." not in text


def test_a_deleted_version_has_no_link(editor, ann, agent):
    run = RunFactory(agent=agent, requested_by=ann, version_number=9, version_id=None)

    response = page(editor, run)

    assert "v9 deleted" in page_text(response)
    assert f"columns=live&amp;runs={run.pk}" in response.content.decode()


def test_a_long_conversation_shows_the_runs_around_this_one(editor, ann, agent):
    thread = Thread.objects.create(user=ann, agent_key=agent.pk, key="long", resource_key="ann")
    now = timezone.now()
    runs = [
        RunFactory(agent=agent, requested_by=ann, thread=thread, chunks=[], created_at=now + timedelta(seconds=number))
        for number in range(30)
    ]

    def indexes_on_page(number):
        return [runs.index(other) for other in page(editor, runs[number]).context["thread_runs"]]

    assert [indexes_on_page(0), indexes_on_page(15), indexes_on_page(29)] == [
        [*range(20)],
        [*range(6, 26)],
        [*range(10, 30)],
    ]


def test_the_other_runs_of_a_conversation_are_linked(editor, ann, agent):
    thread = Thread.objects.create(key="t", user=ann, agent=agent, agent_key=agent.pk)
    first, second = (RunFactory(agent=agent, requested_by=ann, thread=thread) for _ in range(2))

    html = page(editor, second).content.decode()

    assert "<h2>Conversation</h2>" in html
    assert reverse("runs:view", args=[first.pk]) in html


def test_only_its_user_and_publishers_can_read_a_run(ann, agent):
    run = RunFactory(agent=agent, requested_by=ann)
    readers = {role: page(browser(member(role)), run).status_code for role in Role.values}

    assert page(browser(ann), run).status_code == 200
    assert readers == {"viewer": 404, "editor": 404, "publisher": 200, "manager": 200}


def test_a_user_who_lost_access_reads_the_run_without_links(ann, agent):
    run = RunFactory(agent=agent, requested_by=ann)
    ann.memberships.all().delete()

    response = page(browser(ann), run)

    assert response.status_code == 200
    assert reverse("agents:edit", args=[agent.pk]) not in response.content.decode()
    assert "Answer briefly." not in response.content.decode()  # of the instructions


def test_deleting_the_agent_deletes_its_runs(editor, ann, agent):
    run = RunFactory(agent=agent, requested_by=ann)
    Agent.objects.get(pk=agent.pk).delete()

    assert page(editor, run).status_code == 404


BY_TIER = {
    "model": [
        {
            "value": {"provider": "demo", "name": "storyteller", "delay": 0},
            "rules": {"operator": "AND", "conditions": [{"field": "tier", "operator": "equals", "value": "pro"}]},
        }
    ]
}


def test_it_shows_facts_claims_and_the_variants_that_they_chose(idle_engine):
    AgentFactory(
        id="tiered", owner_id="support", model=DEMO, conditional=BY_TIER, instructions="For {{name || 'all'}}."
    )
    user = member(Role.EDITOR, "support")
    key = Caller(api_key(user, context={"tier": "pro"}))

    answer = key.post(
        "/api/agents/tiered/generate", {"messages": "Hello", "requestContext": {"name": "<b>Ann</b>", "tier": "basic"}}
    )

    run = AgentRun.objects.get(pk=answer.body["runId"])
    whole = unescape(page_text(page(browser(user), run)))
    Membership.objects.filter(user=user).delete()
    outside = page_text(page(browser(user), run))
    facts, _, rest = whole.partition("Facts about the caller")[2].partition("Variants")
    variants, _, claims = rest.partition("Variables")
    assert "tier pro" in facts
    assert f"userId u{user.pk}" in facts
    assert "Model Variant 1" in variants
    assert "which was not available" not in whole
    assert "name <b>Ann</b> tier basic" in claims
    assert "For <b>Ann</b>." in claims
    assert not any(word in outside for word in ("Facts about the caller", "Variants"))
