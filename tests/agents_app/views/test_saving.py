"""Saving in the editor and its effect on live, head and draft."""

import re
from typing import Any

import pytest
from cachetools import TTLCache
from django.contrib.messages import get_messages
from django.test import Client
from django.urls import reverse

from agentcms.cache import SizeLimitedCache
from agents_app.editing.change_context import change
from agents_app.models import Agent
from evals_app.scorers.cached_scorers import scorer_table
from knowledge_app.tool.cached_bases import base_table
from runs_app.providers.cached_providers import provider_table
from tests.page_client import editor_form
from tools_app.acp.cached_agents import acp_table
from tools_app.mcp.cached_servers import server_table
from tools_app.mcp.definitions import MAX_TOOLS

pytestmark = pytest.mark.django_db


def numbers(agent: Agent) -> tuple[int, int, int]:
    """Return the numbers of live and head and the number of versions."""
    agent = Agent.objects.with_versions().get(pk=agent.pk)
    live: Any = agent.active_version
    head: Any = agent.head_version
    return live.version_number, head.version_number, agent.versions.count()


def send(client: Client, agent: Agent, publish: str, **changed: Any) -> Any:
    return client.post(reverse("agents:edit", args=[agent.pk]), editor_form(agent, publish=publish, **changed))


def draft(agent: Agent, **fields: Any) -> None:
    with change(publish=False):
        Agent.objects.get(pk=agent.pk).edit(fields)


NEW = {"id": "porter", "name": "Porter", "owner_id": "", "provider": "demo", "model_name": "echo"}


def test_creating_publishes_version_1(editor):
    editor.post(reverse("agents:create"), {**NEW, "message": "For the door"})

    agent = Agent.objects.get(pk="porter")
    version = agent.versions.get()
    assert numbers(agent) == (1, 1, 1)
    assert (version.source, version.change_message) == ("page", "For the door")
    assert version.author_name == version.author.username


def test_an_agent_of_a_team_with_thousands_of_tools_is_saved(editor, agent):
    displayed = {f"mcp-hash-office_{number}": "0" * 64 for number in range(4 * MAX_TOOLS)}

    answer = editor.post(reverse("agents:edit", args=[agent.pk]), editor_form(agent, name="Porter") | displayed)

    assert answer.status_code == 302
    assert agent.versions.get(version_number=2).snapshot["name"] == "Porter"


def test_a_new_agent_cannot_be_its_own_sub_agent(editor):
    answer = editor.post(reverse("agents:create"), {**NEW, "agents": ["porter"]})

    assert answer.status_code == 422
    assert "An agent cannot be its own sub-agent." in str(answer.context["form"].errors["agents"])
    assert not Agent.objects.exists()


def test_saving_a_draft_keeps_the_live_version(editor, agent):
    answer = send(editor, agent, "no", name="Doorman")

    assert answer.status_code == 302
    assert numbers(agent) == (1, 2, 2)


def test_publishing_makes_the_saved_version_live(publisher, agent):
    send(publisher, agent, "yes", name="Doorman")

    assert numbers(agent) == (2, 2, 2)


def test_saving_on_a_draft_extends_it(editor, agent):
    draft(agent, name="Porter")

    send(editor, agent, "no", description="At the door.")

    agent.refresh_from_db()
    assert numbers(agent) == (1, 3, 3)
    assert (agent.name, agent.description) == ("Porter", "At the door.")


def test_publishing_on_a_draft_publishes_the_draft_too(publisher, agent):
    draft(agent, name="Porter")

    send(publisher, agent, "yes", description="At the door.")

    agent = Agent.objects.with_versions().get(pk=agent.pk)
    assert numbers(agent) == (3, 3, 3)
    assert agent.resolved()["name"] == "Porter"
    assert agent.active_version.based_on == 2


def test_publishing_an_unchanged_draft_creates_no_version(publisher, agent):
    draft(agent, name="Porter")

    send(publisher, agent, "yes")

    assert numbers(agent) == (2, 2, 2)


@pytest.mark.parametrize("publish", ["no", "yes"])
def test_saving_without_changes_creates_no_version(publisher, agent, publish):
    answer = send(publisher, agent, publish)

    assert numbers(agent) == (1, 1, 1)
    assert "No changes" in publisher.get(answer.url).content.decode()


def test_a_roll_back_is_not_undone_by_the_next_small_edit(publisher, agent):
    with change(publish=True):
        agent.edit({"name": "Porter"})
    agent.versions.get(version_number=1).activate()

    send(publisher, agent, "yes", description="At the door.")

    agent.refresh_from_db()
    assert (agent.name, agent.description) == ("Concierge", "At the door.")
    assert numbers(agent) == (3, 3, 3)


def test_an_editor_cannot_publish(editor, agent):
    answer = send(editor, agent, "yes", name="Doorman")

    assert answer.status_code == 403
    assert numbers(agent) == (1, 1, 1)


def test_a_viewer_cannot_save(viewer, agent):
    assert send(viewer, agent, "no", name="Doorman").status_code == 403


def test_a_version_records_author_source_and_message(editor, agent):
    send(editor, agent, "no", name="Doorman", message="A better name", version_name="Summer")

    version = agent.versions.first()
    assert (version.source, version.change_message, version.name) == ("page", "A better name", "Summer")
    assert version.author_name == version.author.username
    assert version.changed_fields == ["name"]


def test_every_field_comes_through_the_form(editor, agent):
    changed = {
        "instructions": "One\n\n  two  \n",
        "provider": "anthropic",
        "model_name": "claude-sonnet-4-5",
        "temperature": "0.70",
        "model_rest": '{"seed": 7}',
        "tools": ["word-count", "calculator"],
        "integration_tools": ["text_case_upper"],
        "workflows": ["triage-ticket"],
        "agents": ["proofreader"],
        "memory_kind": "registered",
        "memory": "last-messages",
        "scorers": ["cites-source", "answer-length"],
        "scorers-cites-source-type": "count",
        "scorers-cites-source-amount": "3",
        "input_processors": '[{"key": "mask-email"}]',
        "default_options": '{"maxSteps": 8}',
        "metadata": '{"a": [1, null, true]}',
    }

    send(editor, agent, "no", **changed)

    agent.refresh_from_db()
    assert agent.instructions == "One\n\n  two  \n"
    assert agent.model == {"provider": "anthropic", "name": "claude-sonnet-4-5", "temperature": 0.7, "seed": 7}
    assert agent.tools == ["word-count", "calculator"]
    assert agent.scorers == {"cites-source": {"sampling": {"type": "count", "count": 3}}, "answer-length": {}}
    assert agent.metadata == {"a": [1, None, True]}
    assert len(agent.versions.first().changed_fields) == 11


def test_values_without_a_form_field_are_preserved(editor, agent):
    agent.edit(
        {
            "model": {"provider": "demo", "name": "echo", "temperature": "hot", "topP": 1.0, "maxTokens": 10},
            "scorers": {"gone": {"sampling": {"type": "ratio", "rate": 0.5, "by": "me"}, "why": "x"}},
            "tools": ["word-count", "not-there", "calculator"],
            "memory": "forgotten",
        }
    )
    before = agent.snapshot_text

    send(editor, agent, "no", name="Doorman")

    agent.refresh_from_db()
    assert agent.versions.first().changed_fields == ["name"]
    agent.name = "Concierge"
    assert agent.snapshot_text == before


def test_the_editor_takes_a_fixed_number_of_queries(editor, agent, django_assert_num_queries, monkeypatch):
    draft(agent, name="Porter")
    send(editor, agent, "no", description="Warm up.")

    # The caches of what staff add would expire after a second.
    for cached in (provider_table, server_table, base_table, scorer_table, acp_table):
        monkeypatch.setattr(cached, "_cache", SizeLimitedCache(TTLCache(1, 60)))
    with django_assert_num_queries(13):  # one for the live version, which the examples follow, one for the bell
        editor.get(reverse("agents:edit", args=[agent.pk]))
    with django_assert_num_queries(16):
        send(editor, agent, "no", description="At the door.")


def test_the_button_of_the_create_page_says_that_it_publishes(editor):
    html = editor.get(reverse("agents:create")).content.decode()

    assert "Create and publish v1</button>" in html
    remarks = html.partition('id="create-remarks"')[2].partition("</script>")[0]
    assert 'data-remark="instructions">' in remarks, "the instructions are empty"
    assert 'data-remark="model" hidden>' in remarks


def test_the_create_page_says_that_the_model_cannot_answer(editor):
    sent = {**NEW, "name": "", "provider": "openai", "model_name": "gpt", "instructions": "Greet."}

    html = editor.post(reverse("agents:create"), sent).content.decode()

    assert 'data-remark="instructions" hidden>' in html
    assert "This agent cannot answer: <span data-remark-text>OpenAI has no API key." in html


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"instructions": "Greet."}, "Porter was created, and v1 is live."),
        ({}, "Porter was created, and v1 is live. The instructions are empty."),
        (
            {"instructions": "Greet.", "provider": "nobody"},
            'Porter was created, and v1 is live. It cannot answer: Unknown model provider "nobody".',
        ),
    ],
)
def test_the_message_of_a_new_agent_says_what_limits_it(editor, changed, message):
    answer = editor.post(reverse("agents:create"), {**NEW, **changed})

    assert [str(text) for text in get_messages(answer.wsgi_request)] == [message]


def test_sections_without_content_are_one_line(editor, agent):
    agent.edit({"tools": ["calculator"], "metadata": {"team": "hotel"}})
    html = editor.get(reverse("agents:edit", args=[agent.pk])).content.decode()

    for section in ("tools", "metadata"):
        assert f'<details class="section field-section" open id="{section}">' in html
    for section in ("workflows", "sub-agents", "memory", "scorers", "processors", "options"):
        assert f'<details class="section field-section section-unset" id="{section}">' in html
    summary = html.partition('id="workflows">')[2].partition("</summary>")[0]
    assert re.sub("<[^>]+>", "", summary).strip() == "Workflows: none · Add"


def test_a_section_with_an_error_is_open(editor, agent):
    html = send(editor, agent, "no", metadata='{"a": ').content.decode()

    assert '<details class="section field-section" open id="metadata">' in html
    assert 'section-unset" id="options">' in html


def test_the_editor_is_opened_again_with_unsaved_changes(editor, agent):
    answer = send(editor, agent, "no", name="Doorman", edit="again")

    assert answer.status_code == 200
    assert answer.context["form"]["name"].value() == "Doorman"
    assert numbers(agent) == (1, 1, 1)
