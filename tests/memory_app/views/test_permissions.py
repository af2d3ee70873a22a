"""Permissions of ACP agents for a conversation: listed on its page, and taken back."""

import pytest
from django.urls import reverse

from tests.factories import UserFactory
from tests.memory_app.conftest import add_thread
from tools_app.models import AcpAgent, AcpPermission

pytestmark = pytest.mark.django_db


def test_a_permission_is_listed_and_revoked_by_readers_of_the_thread_alone(client):
    user, stranger = UserFactory(), UserFactory()
    thread = add_thread(user)
    agent = AcpAgent.objects.create(key="coder", title="Coder", command_key="coder")
    values = {"agent": agent, "thread": thread, "mark": "m", "option_kind": "allow_always"}
    permission = AcpPermission.objects.create(title="Edit notes.txt", decided_by_name="ann", **values)
    page = reverse("threads:view", args=[thread.key])
    revoke = reverse("threads:revoke-permission", args=[thread.key, permission.pk])

    client.force_login(stranger)
    refused = client.post(revoke)
    client.force_login(user)
    text = client.get(page).content.decode()
    done = client.post(revoke)

    assert refused.status_code == 404
    assert "Edit notes.txt" in text
    assert "always allowed by" in text
    assert 'aria-label="Revoke Edit notes.txt of Coder"' in text  # one of several equal buttons
    assert done.status_code == 302
    assert not AcpPermission.objects.exists()
    assert revoke not in client.get(page).content.decode()
    assert client.post(revoke).status_code == 404
