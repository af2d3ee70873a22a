"""Conflicts of the editor with concurrent saves and activations."""

import re
from typing import Any

import pytest
from django.urls import reverse

from agents_app.editing.change_context import change
from agents_app.models import Agent
from tests.page_client import editor_form

pytestmark = pytest.mark.django_db


def address(agent):
    return reverse("agents:edit", args=[agent.pk])


def head(agent) -> Any:
    return Agent.objects.with_versions().get(pk=agent.pk).head_version


def overwrite(agent, publish):
    row = Agent.objects.get(pk=agent.pk)
    return f"{row.head_version_id} {row.active_version_id} {publish}"


def edit(agent, **fields):
    """Edit the agent as another user."""
    Agent.objects.get(pk=agent.pk).edit(fields)


def test_a_save_on_an_older_head_is_refused_and_keeps_the_input(editor, agent):
    mine = editor_form(agent, publish="no", instructions="Mine")
    edit(agent, description="Theirs")

    answer = editor.post(address(agent), mine)

    assert answer.status_code == 409
    assert head(agent).version_number == 2
    html = answer.content.decode()
    assert "saved v2 in the meantime" in html
    assert answer.context["form"]["instructions"].value() == "Mine"
    assert answer.context["opened"]["head"] == mine["head"].__str__()
    assert "changed-elsewhere" in answer.headers["HX-Trigger"]  # as when the editor shows v2


def test_overwriting_replaces_only_changed_fields(editor, agent):
    mine = editor_form(agent, instructions="Mine")
    edit(agent, description="Theirs", instructions="Also theirs")

    editor.post(address(agent), {**mine, "keep_on": overwrite(agent, "no")})

    agent.refresh_from_db()
    assert (agent.description, agent.instructions) == ("Theirs", "Mine")
    assert head(agent).changed_fields == ["instructions"]


def test_overwriting_does_not_replace_a_third_save(editor, agent):
    mine = editor_form(agent, instructions="Mine")
    edit(agent, description="Theirs")
    seen = overwrite(agent, "no")
    edit(agent, description="Theirs again")

    assert editor.post(address(agent), {**mine, "keep_on": seen}).status_code == 409


def test_a_new_version_with_the_same_snapshot_is_no_conflict(editor, agent):
    mine = editor_form(agent, publish="no", instructions="Mine")
    with change(name="Summer"):
        agent.versions.snapshot(Agent.objects.get(pk=agent.pk))

    assert editor.post(address(agent), mine).status_code == 302
    assert head(agent).version_number == 3


def test_a_conflict_shows_the_base_of_both_sides(editor, agent):
    mine = editor_form(agent, publish="no", instructions="Mine")
    with change(publish=False):
        edit(agent, description="Theirs")

    html = editor.post(address(agent), mine).content.decode()

    facts = " ".join(re.sub(r"<[^>]+>", " ", html.partition('id="facts"')[2].partition("</section>")[0]).split())
    assert "Based on v1 Latest v2 , based on v1 Live v1" in facts
    assert "Discard draft" not in html, "it is theirs, and this is not the moment"


def test_publishing_is_refused_when_the_live_version_changed(publisher, agent):
    with change(publish=False):
        edit(agent, name="Porter")
    mine = editor_form(agent, publish="yes", instructions="Mine")
    with change(publish=True):  # the published edit is based on live and the draft is kept
        edit(agent, description="Live moved")

    answer = publisher.post(address(agent), mine)

    assert answer.status_code == 409
    assert "Not published: v3 was published in the meantime" in answer.content.decode()
    publisher.post(address(agent), {**mine, "keep_on": overwrite(agent, "yes")})
    agent = Agent.objects.with_versions().get(pk=agent.pk)
    assert agent.active_version.version_number == 4
    assert agent.resolved()["name"] == "Porter"


def test_a_draft_may_be_saved_when_the_live_version_changed(editor, agent):
    with change(publish=False):
        edit(agent, name="Porter")
    mine = editor_form(agent, publish="no", instructions="Mine")
    with change(publish=True):
        edit(agent, description="Live moved")

    assert editor.post(address(agent), mine).status_code == 302
    assert "Another version was published since the draft was started" in editor.get(address(agent)).content.decode()


def test_a_recreated_agent_is_a_conflict(editor, agent):
    mine = editor_form(agent, publish="no", instructions="Mine")
    where, pk, model = address(agent), agent.pk, agent.model
    agent.delete()
    Agent(id=pk, name="Another", instructions="", model=model).save()

    assert editor.post(where, mine).status_code == 409


def test_a_form_without_its_base_version_is_a_conflict(editor, agent):
    mine = {**editor_form(agent, publish="no", instructions="Mine"), "head": "", "live": ""}

    assert editor.post(address(agent), mine).status_code == 409


def test_htmx_gets_only_the_parts_around_the_fields(editor, agent):
    mine = editor_form(agent, publish="no", instructions="Mine")

    answer = editor.post(address(agent), mine, headers={"HX-Request": "true"})

    html = answer.content.decode()
    assert '"base": 2' in answer["HX-Trigger"]
    assert "Draft v2 saved" in answer["HX-Trigger"]
    assert 'id="id_instructions"' not in html
    assert f'name="head" value="{head(agent).pk}"' in html
    assert "ahead by 1" in html


def test_an_error_is_shown_at_its_field(editor, agent):
    mine = editor_form(agent, publish="no", metadata='{\n  "a": }', temperature="warm", name="")

    for headers in ({}, {"HX-Request": "true"}):
        answer = editor.post(address(agent), mine, headers=headers)

        html = answer.content.decode()
        assert answer.status_code == 422
        assert "The JSON cannot be read at line 2, column 8" in html
        assert "This must be a number, such as 0.7." in html
        assert head(agent).version_number == 1


@pytest.mark.parametrize(
    ("changed", "place", "sentence"),
    [
        ({"model_rest": '{"temperature": 1}', "temperature": "0.5"}, "model_rest", "in its own field instead"),
        ({"model_rest": "[]"}, "model_rest", "must be an object"),
        ({"provider": " "}, "provider", "may not be blank"),
        ({"agents": ["agent-none", ""]}, None, ""),
        ({"input_processors": '["x"]'}, "input_processors", "must be an object"),
        ({"default_options": '{"a": 1e400}'}, "default_options", ""),
        ({"metadata": '{"a": 1, "a": 2}'}, "metadata", ""),
        ({"scorers": ["x"], "scorers-x-type": "ratio", "scorers-x-amount": "2"}, "scorers", "less than or equal to 1"),
        ({"scorers": ["x"], "scorers-x-type": "count", "scorers-x-amount": "many"}, "scorers", "must be a number"),
        ({"instructions": "a\0b"}, "instructions", "Null"),
    ],
)
def test_every_error_has_its_field(editor, agent, changed, place, sentence):
    answer = editor.post(address(agent), editor_form(agent, publish="no", **changed))

    if place is None:
        assert answer.status_code == 302
        return
    assert answer.status_code == 422
    assert [field.name for field in answer.context["form"].fields_with_errors] == [place]
    assert sentence in str(answer.context["form"].errors[place])


def test_an_agent_cannot_be_its_own_sub_agent(editor, agent):
    answer = editor.post(address(agent), editor_form(agent, publish="no", agents=[agent.pk]))

    assert answer.status_code == 422
    assert "its own sub-agent" in answer.content.decode()
