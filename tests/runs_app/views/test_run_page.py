"""The page of a run: what was asked, what came of it, where the time went, and what the agent was then."""

from django.urls import reverse

from access_app.role import Role
from agents_app.models import Agent
from runs_app.models import AgentRun, Score, Thread
from tests.factories import member
from tests.page_client import browser
from tests.runs_app.factories import RunFactory
from tests.runs_app.views.conftest import words

CALL = ("tool-call", {"toolCallId": "a", "toolName": "word-count", "args": {"text": "one two"}})
RESULT = ("tool-result", {"toolCallId": "a", "toolName": "word-count", "result": 2})


def page(client, run, name="view"):
    return client.get(reverse(f"runs:{name}", args=[run.pk]))


def test_it_shows_question_answer_and_what_it_took(editor, ann, agent):
    run = RunFactory(agent=agent, requested_by=ann, asked="Who are you?", output="The porter.")

    shown = words(page(editor, run))

    assert "Run of Concierge" in shown
    assert "Who are you?" in shown
    assert "The porter." in shown
    assert "Tokens in 12 Tokens out 3" in shown
    assert "Time 2.3 s" in shown


def test_it_says_that_the_demo_model_answered(editor, ann, agent):
    assert "The built-in demo model answered." in words(page(editor, RunFactory(agent=agent, requested_by=ann)))


def test_what_a_run_says_is_text(editor, ann, agent):
    evil = "<script>alert(1)</script>"
    called = [
        ("tool-call", {"toolCallId": "a", "toolName": evil, "args": {evil: evil}}),
        ("text-delta", {"text": evil}),
    ]
    run = RunFactory(
        agent=agent, requested_by=ann, asked=evil, output=evil, error=evil, status="failed", chunks=called
    )

    assert evil not in page(editor, run).content.decode()
    assert evil not in page(editor, run, "answer").content.decode()


def test_calls_are_folded_and_the_time_has_a_bar_for_each(editor, ann, agent):
    run = RunFactory(agent=agent, requested_by=ann, chunks=[("step-start", {}), CALL, RESULT, ("step-finish", {})])

    answer = page(editor, run)

    assert '<details class="call" data-call="a" data-state="done">' in answer.content.decode()
    assert "2.5 s in all Waiting 0.2 s Preparing 0.1 s Model, step 1 0.1 s Word count 0.1 s" in words(answer)


def test_a_call_of_a_sub_agent_leads_to_its_run(editor, ann, agent):
    call = ("tool-call", {"toolCallId": "a", "toolName": "agent-porter", "args": {}})
    run = RunFactory(agent=agent, requested_by=ann, chunks=[call])
    child = RunFactory(agent=agent, requested_by=ann, parent=run, parent_call_id="a", agent_key="porter")

    shown = page(editor, run).content.decode()

    assert shown.count(reverse("runs:view", args=[child.pk])) == 2
    assert reverse("runs:view", args=[run.pk]) in page(editor, child).content.decode()


def test_it_shows_what_it_took_with_its_sub_agents_however_deep(editor, ann, agent):
    run = RunFactory(agent=agent, requested_by=ann, is_demo=False, cost="0.02")
    child = RunFactory(agent=agent, requested_by=ann, parent=run, is_demo=False, cost="0.03")
    grandchild = RunFactory(agent=agent, requested_by=ann, parent=child)

    assert "With sub-agents 45 tokens, $0.05" in words(page(editor, run))
    assert "With sub-agents 30 tokens, $0.03" in words(page(editor, child))
    assert "With sub-agents" not in words(page(editor, grandchild))


def test_it_adds_up_no_cost_where_a_price_is_not_known(editor, ann, agent):
    run = RunFactory(agent=agent, requested_by=ann, is_demo=False, cost="0.02")
    RunFactory(agent=agent, requested_by=ann, parent=run, is_demo=False, cost=None)

    shown = words(page(editor, run))

    assert "With sub-agents 30 tokens" in shown
    assert "30 tokens, $" not in shown


def test_a_failure_says_why(editor, ann, agent):
    run = RunFactory(agent=agent, requested_by=ann, status="failed", error="The model is asked too much.", chunks=[])

    assert "No answer. The model is asked too much." in words(page(editor, run))


def test_a_run_that_was_stopped_says_so(editor, ann, agent):
    assert "Stopped." in words(page(editor, RunFactory(agent=agent, requested_by=ann, status="cancelled")))


def test_warnings_and_scores_are_shown(editor, ann, agent):
    warning = {"field": "tools", "key": "gone", "message": "No tool is registered as 'gone'."}
    run = RunFactory(agent=agent, requested_by=ann, warnings=[warning])
    Score.objects.create(run=run, scorer="tone", score=0.75)
    Score.objects.create(run=run, scorer="length", error="The scorer failed.")

    shown = words(page(editor, run))

    assert "No tool is registered as &#x27;gone&#x27;. It answered without it." in shown
    assert "length The scorer failed." in shown
    assert "tone 0.75" in shown


def test_an_open_run_says_how_to_see_more_and_can_be_stopped(editor, ann, agent):
    run = RunFactory(agent=agent, requested_by=ann, open=True, chunks=[("text-delta", {"text": "Good"})])

    shown = page(editor, run)

    assert "Still running. Refresh to see more." in words(shown)
    editor.post(reverse("runs:stop", args=[run.pk]))
    assert AgentRun.objects.get(pk=run.pk).cancel_requested_at is not None


def test_the_agent_as_it_was_stands_there_although_it_changed(editor, ann, agent):
    run = RunFactory(agent=agent, requested_by=ann)
    agent.edit({"instructions": "Say nothing."})

    shown = words(page(editor, run))

    assert "Greet guests warmly." in shown
    assert "Say nothing." not in shown


def test_a_version_that_is_gone_has_no_link(editor, ann, agent):
    run = RunFactory(agent=agent, requested_by=ann, version_number=9, version_id=None)

    shown = page(editor, run)

    assert "v9 not kept any more" in words(shown)
    assert f"columns=live&amp;runs={run.pk}" in shown.content.decode()


def test_the_other_runs_of_a_conversation_are_linked(editor, ann, agent):
    thread = Thread.objects.create(key="t", user=ann, agent=agent, agent_key=agent.pk)
    first, second = (RunFactory(agent=agent, requested_by=ann, thread=thread) for _ in range(2))

    shown = page(editor, second).content.decode()

    assert "The conversation" in shown
    assert reverse("runs:view", args=[first.pk]) in shown


def test_who_asked_and_publishers_may_read_it_and_nobody_else(ann, agent):
    run = RunFactory(agent=agent, requested_by=ann)
    readers = {role: page(browser(member(role)), run).status_code for role in Role.values}

    assert page(browser(ann), run).status_code == 200
    assert readers == {"viewer": 404, "editor": 404, "publisher": 200, "manager": 200}


def test_who_lost_the_agent_still_reads_their_run_without_links_to_it(ann, agent):
    run = RunFactory(agent=agent, requested_by=ann)
    ann.memberships.all().delete()

    shown = page(browser(ann), run)

    assert shown.status_code == 200
    assert reverse("agents:edit", args=[agent.pk]) not in shown.content.decode()
    assert "Answer briefly." not in shown.content.decode()  # of the instructions


def test_a_run_outlives_nothing_of_its_agent(editor, ann, agent):
    run = RunFactory(agent=agent, requested_by=ann)
    Agent.objects.get(pk=agent.pk).delete()

    assert page(editor, run).status_code == 404
