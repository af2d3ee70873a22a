"""The same edit through each interface."""

import pytest
from django.urls import reverse

from agents_app.editing.change_context import Source, change
from agents_app.models import Agent
from tests.agents_app.admin.test_admin_saving import admin_form
from tests.api_client import Caller, agent_path
from tests.factories import AgentFactory, UserFactory, api_key
from tests.page_client import browser, editor_form

pytestmark = pytest.mark.django_db

EDIT = {"name": "Porter", "tools": ["calculator"]}
WHY = "A better name"


def by_save(agent, ann):
    agent.name, agent.tools = EDIT.values()
    with change(actor=ann, message=WHY):
        agent.save()


def by_page(agent, ann):
    sent = editor_form(agent, publish="yes", message=WHY, **EDIT)
    browser(ann).post(reverse("agents:edit", args=[agent.pk]), sent)


def by_api(agent, ann):
    Caller(api_key(ann)).patch(agent_path(agent.pk), {**EDIT, "changeMessage": WHY})


def by_admin(agent, ann):
    sent = admin_form(agent, change_message=WHY, **EDITS["admin"])
    browser(ann).post(reverse("admin:agents_app_agent_change", args=[agent.pk]), sent)


def by_import(agent, ann):
    with change(actor=ann, source=Source.IMPORT, message=WHY):
        agent.edit(EDIT)


# The lists of an agent are read-only in the admin.
EDITS = {"admin": {"name": EDIT["name"]}}
SOURCES = {"code": by_save, "page": by_page, "api": by_api, "admin": by_admin, "import": by_import}


@pytest.mark.parametrize("source", SOURCES)
def test_an_edit_creates_one_version_with_author_source_and_message(source):
    ann = UserFactory(username="ann", is_staff=True, is_superuser=True)
    agent = AgentFactory()

    SOURCES[source](agent, ann)

    made, first = agent.versions.all()
    assert (made.author, made.author_name, made.source, made.change_message) == (ann, "ann", source, WHY)
    edit = EDITS.get(source, EDIT)
    assert (made.version_number, made.based_on, made.changed_fields) == (2, 1, [*edit])
    assert made.snapshot == {**first.snapshot, **edit}
    row = Agent.objects.with_versions().get(pk=agent.pk)
    assert row.active_version == row.head_version == made
    assert [move.to_version_number for move in agent.activations.all()] == [2, 1]
