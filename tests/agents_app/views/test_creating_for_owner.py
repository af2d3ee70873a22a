"""Creating agents for owners without the required role."""

import pytest
from django.urls import reverse

from agents_app.models import Agent
from tests.factories import member

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("owner_id", ["", "south"])
def test_an_editor_cannot_create_for_another_owner(client, owner_id):
    client.force_login(member("editor", "north"))
    form = {"name": "Intruder", "id": "intruder", "owner_id": owner_id, "model_provider": "demo", "model_name": "echo"}

    answer = client.post(reverse("agents:create"), form)

    assert answer.status_code == 422
    assert not Agent.objects.exists()
    assert "owner_id" in answer.context["form"].errors
