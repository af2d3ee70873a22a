"""Rows that cannot exist, selected in lists of the admin."""

import pytest
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.messages import get_messages
from django.urls import reverse

from access_app.admin_base.lists import INVALID_SELECTION_MESSAGE
from tests.factories import UserFactory, api_key

pytestmark = pytest.mark.django_db

LISTS = {
    "access_app_apikey": "revoke",
    "access_app_membership": "delete_selected",
    "auth_user": "delete_selected",
    "jobs_app_job": "retry",
    "tools_app_mcpserver": "disable",
    "tools_app_acpworkspace": "delete_selected",
}


@pytest.mark.parametrize(("name", "action"), LISTS.items(), ids=LISTS)
@pytest.mark.parametrize("key", ["\0", "x", ""], ids=["nul", "word", "blank"])
def test_an_action_on_a_row_that_cannot_exist_is_refused_in_words(client, name, action, key):
    user = UserFactory(is_staff=True, is_superuser=True)
    api_key(user)
    client.force_login(user)

    answer = client.post(
        reverse(f"admin:{name}_changelist"), {"action": action, ACTION_CHECKBOX_NAME: [key], "index": "0"}
    )

    assert answer.status_code == 302
    assert [str(message) for message in get_messages(answer.wsgi_request)] == [INVALID_SELECTION_MESSAGE]
