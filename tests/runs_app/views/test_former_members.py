"""Pages of the own runs of users who left the team."""

import json

import pytest
from django.urls import reverse

from runs_app.models import Score
from tests.factories import AgentFactory, MembershipFactory, UserFactory, member
from tests.page_client import browser
from tests.runs_app.factories import PendingCallFactory, RunFactory
from tests.runs_app.views.conftest import page_text

PRIVATE = [
    "Follow the secret plan.",
    "Insider",
    "word-count",
    "Word count",
    "helper",
    "gpt-private",
    "no-tool",
    "tone",
]
CHUNKS = [
    ("step-start", {}),
    ("tool-call", {"toolCallId": "a", "toolName": "word-count", "args": {"text": "one two"}}),
    ("tool-result", {"toolCallId": "a", "toolName": "word-count", "result": 2}),
    ("reasoning-delta", {"id": "1", "text": "The plan says helper"}),
    ("text-delta", {"id": "1-0", "text": "It has two words."}),
]


@pytest.fixture
def asker(db):
    return member("editor", "support", is_staff=True)


@pytest.fixture
def run(asker):
    agent = AgentFactory(
        owner_id="support",
        name="Insider",
        instructions="Follow the secret plan.",
        model={"provider": "openai", "name": "gpt-private"},
    )
    run = RunFactory(
        agent=agent,
        requested_by=asker,
        prompt="How many words?",
        output="It has two words.",
        chunks=CHUNKS,
        warnings=[{"message": "no-tool is missing."}],
        is_demo=False,
    )
    Score.objects.create(run=run, scorer="tone", score=0.5)
    RunFactory(agent=AgentFactory(id="helper", owner_id="support"), parent=run, parent_call_id="a", requested_by=asker)
    return run


def leave(asker):
    asker.memberships.all().delete()
    return browser(asker)


@pytest.mark.parametrize("name", ["runs:view", "runs:answer", "admin:runs_app_agentrun_change"])
def test_a_former_member_sees_question_and_answer(run, asker, name):
    answer = leave(asker).get(reverse(name, args=[run.pk]))

    assert answer.status_code == 200
    text = answer.content.decode()
    assert [word for word in PRIVATE if word in text] == []
    assert "It has two words." in text
    assert ("How many words?" in text) == (name != "runs:answer")


def test_a_member_sees_the_agent_too(run, asker):
    text = page_text(browser(asker).get(reverse("runs:view", args=[run.pk])))

    assert [word for word in PRIVATE if word not in text] == []


def test_the_list_does_not_show_the_name_of_an_agent_of_another_team(run, asker):
    text = page_text(leave(asker).get(reverse("runs:list")))

    assert "How many words?" in text
    assert run.agent_key in text
    assert "Insider" not in text


def test_the_version_of_a_hidden_agent_does_not_look_deleted(run, asker):
    text = page_text(leave(asker).get(reverse("runs:view", args=[run.pk])))

    assert "v1" in text
    assert "deleted" not in text


def test_the_reason_of_a_failure_is_not_shown(run, asker):
    run.status, run.error = "failed", "gpt-private is not available."
    run.save()
    client = leave(asker)

    for name in ("runs:view", "runs:answer", "admin:runs_app_agentrun_change"):
        assert "gpt-private" not in client.get(reverse(name, args=[run.pk])).content.decode()
    assert "Ask a member of the team" in page_text(client.get(reverse("runs:view", args=[run.pk])))


def test_the_process_that_executes_a_run_is_not_shown(run, asker):
    run.status, run.holder = "running", "web-1.internal:77:ab12"
    run.save()
    page = reverse("admin:runs_app_agentrun_change", args=[run.pk])

    assert "web-1.internal" in browser(asker).get(page).content.decode()
    assert "web-1.internal" not in leave(asker).get(page).content.decode()


@pytest.mark.django_db(transaction=True)
def test_the_stream_of_the_page_shows_only_the_answer(run, asker):
    body = b"".join(leave(asker).get(reverse("runs:stream", args=[run.pk])).streaming_content).decode()

    assert "It has two words." in body
    assert "word-count" not in body
    assert "The plan says" not in body


def test_a_repeated_answer_leaves_the_texts_before_it(run, asker):
    """Another process has repeated the answer of the second step. Where steps begin is not shown."""
    texts = [("text-start", {"id": "1-0"}), ("text-delta", {"id": "1-0", "text": "Let me count."})]
    begun = [("text-start", {"id": "2-0"}), ("text-delta", {"id": "2-0", "text": "It has tw"})]
    whole = [("text-start", {"id": "2-0"}), ("text-delta", {"id": "2-0", "text": "It has two words."})]
    steps = [("step-start", {}), *texts, ("step-finish", {}), ("step-start", {}), *begun]
    chunks = [*steps, ("step-discarded", {"fromEvent": 6}), *whole]
    run = RunFactory(agent=run.agent, requested_by=asker, chunks=chunks)

    parts = leave(asker).get(reverse("runs:answer", args=[run.pk])).context["answer"].parts

    assert [part.text for part in parts] == ["Let me count.", "It has two words."]


def test_an_agent_that_was_handed_over_shows_its_new_team_no_details_of_old_runs(run, asker):
    run.agent.change_owner("newsroom")
    asker.memberships.all().delete()
    MembershipFactory(user=asker, owner_id="newsroom", role="editor")
    playground = f"{reverse('runs:playground', args=[run.agent_key])}?columns=live&runs={run.pk}"

    text = page_text(browser(asker).get(playground))

    assert "It has two words." in text
    assert "one two" not in text


def test_the_list_of_the_admin_does_not_find_what_is_hidden(run, asker):
    run.status, run.error = "failed", "gpt-private is not available."
    run.save()

    def count_runs(user, **query):
        answer = browser(user).get(reverse("admin:runs_app_agentrun_changelist"), query)
        return answer.context["cl"].result_count if answer.status_code == 200 else answer.status_code

    root = UserFactory(is_staff=True, is_superuser=True)
    assert (count_runs(asker, q="gpt-private"), count_runs(root, q="gpt-private")) == (1, 1)
    leave(asker)
    assert (count_runs(asker, q="gpt-private"), count_runs(asker, q=run.agent_key)) == (0, 1)
    assert (count_runs(asker, error__startswith="gpt"), count_runs(asker, warnings__icontains="no-tool")) == (400, 400)
    assert (count_runs(asker, status__exact="failed"), count_runs(asker, is_demo__exact="0")) == (1, 1)


@pytest.mark.django_db(transaction=True)
def test_the_stream_of_a_waiting_run_says_that_it_waits(asker):
    chunks = [("text-delta", {"id": "1", "text": "One moment."}), ("tool-call-approval", {}), ("suspended", {})]
    run = RunFactory(agent=AgentFactory(owner_id="support"), requested_by=asker, suspended=True, chunks=chunks)
    PendingCallFactory(run=run)

    body = b"".join(leave(asker).get(reverse("runs:stream", args=[run.pk])).streaming_content).decode()

    types = [json.loads(line[6:])["type"] for line in body.splitlines() if line.startswith("data: {")]
    assert types == ["text-delta", "suspended"]
    assert body.endswith("data: [DONE]\n\n")
