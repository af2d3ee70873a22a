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


def test_an_own_save_in_another_tab_is_no_save_of_another_user(editor, agent):
    mine = editor_form(agent, publish="no", instructions="Mine")
    editor.post(address(agent), editor_form(agent, publish="no", description="In the other tab"))

    html = editor.post(address(agent), mine).content.decode()

    assert "Not saved: you saved v2 in the meantime, in another tab or with the API" in html


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


def test_a_draft_without_changes_is_no_conflict(editor, agent):
    unchanged = editor_form(agent, publish="no")
    edit(agent, description="Theirs")

    answer = editor.post(address(agent), unchanged, headers={"HX-Request": "true"})

    assert answer.status_code == 200
    assert '"message": "No changes"' in answer["HX-Trigger"]
    # The fields still show v1. A change of them is one of v1, and no change back from v2.
    assert answer.context["opened"]["head"] == str(unchanged["head"])
    assert '"base"' not in answer["HX-Trigger"]
    assert editor.post(address(agent), {**unchanged, "name": "Mine"}).status_code == 409
    assert head(agent).version_number == 2


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
    html = answer.content.decode()
    assert "Not published: v3 was published in the meantime" in html
    assert "Published since you opened the editor: v1 to v3" in html
    assert "Live moved" in html
    assert "From v3 to what you publish" in html
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
        ({"scorers": ["x"], "scorers-x-type": "count", "scorers-x-amount": "many"}, "scorers", "Enter a number"),
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


def test_a_conflict_shows_both_differences(editor, agent):
    mine = editor_form(agent, publish="no", instructions="Greet guests warmly.\nAnswer briefly.")
    edit(agent, instructions="Greet guests.\nAnswer in one sentence.")

    html = editor.post(address(agent), mine).content.decode()

    assert "Changed on both sides: Instructions." in html
    assert "in one sentence" in html
    assert "warmly" in html
    assert "Your changes touch theirs in Instructions, so they cannot be merged." in html
    assert "Merge both" not in html


@pytest.fixture
def apart(agent):
    """Return the form of an agent whose first line was changed, while another user changed the last."""
    Agent.objects.get(pk=agent.pk).edit({"instructions": "Greet guests.\nAnswer briefly.\nSay goodbye."})
    mine = editor_form(agent, publish="no", instructions="Greet all guests.\nAnswer briefly.\nSay goodbye.")
    edit(agent, instructions="Greet guests.\nAnswer briefly.\nSay a warm goodbye.", description="Theirs")
    return mine


BOTH = "Greet all guests.\nAnswer briefly.\nSay a warm goodbye."


def test_changes_that_do_not_touch_are_merged_after_a_review(editor, agent, apart):
    assert "Merge both" in editor.post(address(agent), apart).content.decode()

    page = editor.post(reverse("versions:review", args=[agent.pk]), {**apart, "merge": "yes"})
    html = page.content.decode()
    assert "Both changes, compared with v3" in html
    assert "This is not saved yet" in html
    assert head(agent).version_number == 3

    posted = {**dict(page.context["posted_fields"]), "keep_on": page.context["keep_on"], "merge": "yes"}
    answer = editor.post(address(agent), {**posted, "publish": "no", "message": "Both"})

    assert answer.status_code == 302
    version = head(agent)
    assert (version.version_number, version.change_message) == (4, "Both")
    assert version.snapshot["instructions"] == BOTH
    assert version.snapshot["description"] == "Theirs"
    assert version.changed_fields == ["instructions"]


def test_a_merge_is_refused_if_somebody_saved_after_its_review(editor, agent, apart):
    seen = overwrite(agent, "no")
    edit(agent, instructions="Greet nobody.\nAnswer briefly.\nSay a warm goodbye.")

    answer = editor.post(address(agent), {**apart, "merge": "yes", "keep_on": seen})

    assert answer.status_code == 409
    assert "Your changes touch theirs" in answer.content.decode()


def test_changes_that_touch_are_not_merged(editor, agent):
    mine = editor_form(agent, publish="no", name="Mine")
    edit(agent, name="Theirs")

    review = editor.post(reverse("versions:review", args=[agent.pk]), {**mine, "merge": "yes"})
    answer = editor.post(address(agent), {**mine, "merge": "yes", "keep_on": overwrite(agent, "no")})

    assert "The changes touch, so they cannot be merged: Name" in " ".join(review.content.decode().split()).replace(
        "</strong>", ""
    )
    assert 'name="publish"' not in review.content.decode()
    assert answer.status_code == 409
    assert head(agent).snapshot["name"] == "Theirs"


def test_a_merged_save_loads_the_page_again(editor, agent, apart):
    sent = {**apart, "merge": "yes", "keep_on": overwrite(agent, "no")}

    answer = editor.post(address(agent), sent, headers={"HX-Request": "true"})

    assert '"reload": true' in answer["HX-Trigger"]
    assert "Draft v4 saved" in editor.get(address(agent)).content.decode()


def test_a_merge_that_is_not_valid_is_reported_before_versions_of_others_are_asked_about(publisher, editor, agent):
    Agent.objects.get(pk=agent.pk).edit({"memory": {"options": {"workingMemory": {"enabled": True}}}})
    mine = editor_form(agent, **{"memory-options.workingMemory.template": "# Guest"})
    theirs = editor_form(agent, publish="no", **{"memory-options.workingMemory.schema": '{"type": "object"}'})
    editor.post(address(agent), theirs)

    answer = publisher.post(address(agent), {**mine, "merge": "yes", "keep_on": overwrite(agent, "yes")})

    assert answer.status_code == 422
    assert "Give a template or a schema, not both." in answer.content.decode()
    assert Agent.objects.with_versions().get(pk=agent.pk).active_version.version_number == 2
