"""Creating agents for owners without the required role."""

import re

import pytest
from django.urls import reverse

from access_app.role import Role
from agents_app.models import Agent
from knowledge_app.models import KnowledgeBase
from tests.factories import MembershipFactory, member
from tools_app.mcp.definitions import Definition, Listing
from tools_app.mcp.listing import store_listing
from tools_app.models import McpServer

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("owner_id", ["", "south"])
def test_an_editor_cannot_create_for_another_owner(client, owner_id):
    client.force_login(member("editor", "north"))
    form = {"name": "Intruder", "id": "intruder", "owner_id": owner_id, "model_provider": "demo", "model_name": "echo"}

    answer = client.post(reverse("agents:create"), form)

    assert answer.status_code == 422
    assert not Agent.objects.exists()
    assert "owner_id" in answer.context["form"].errors


@pytest.mark.parametrize("path", ["/new-agent", "/new-agent/fields"])
def test_the_form_shows_only_the_tools_of_teams_for_which_the_user_may_create(client, path):
    for owner_id in ("north", "south"):
        server = McpServer.objects.create(
            key=f"office-{owner_id}",
            title=f"Office of {owner_id}",
            owner_id=owner_id,
            url="https://mcp.example.org/mcp",
        )
        store_listing(server.pk, Listing({"add": Definition("add", f"Tool of {owner_id}", {})}, []))
    client.force_login(member("editor", "north"))

    for owner_id in ("north", "south"):
        html = client.post(path, {"owner_id": owner_id}).content.decode()
        assert "Tool of north" in html
        assert "Tool of south" not in html


@pytest.mark.parametrize("path", ["/new-agent", "/new-scorer"])
def test_whoever_may_edit_nowhere_is_told_that_any_team_would_do(client, path):
    client.force_login(member("viewer", "support"))

    refused = client.get(path)

    assert refused.status_code == 403
    assert "This needs the Editor role in a team." in refused.content.decode()


def test_another_team_renders_the_sections_of_what_it_may_use(client):
    user = member("editor", "north")
    MembershipFactory(user=user, owner_id="south", role=Role.EDITOR)
    for owner_id in ("north", "south"):
        KnowledgeBase.objects.create(key=f"base-{owner_id}", name=f"Base of {owner_id}", owner_id=owner_id)
    client.force_login(user)

    select = re.findall(r'<select name="owner_id"[^>]*>', client.get(reverse("agents:create")).content.decode())[0]
    url, sections = (re.findall(rf'{name}="([^"]+)"', select)[0] for name in ("hx-post", "hx-select-oob"))
    html = client.post(url, {"owner_id": "south"}).content.decode()

    assert "Base of south" in html
    assert "Base of north" not in html
    assert all(f' id="{section.removeprefix("#")}"' in html for section in sections.split(", "))
