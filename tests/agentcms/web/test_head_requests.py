"""HEAD requests of pages."""

import pytest
from django.urls import reverse

from access_app.models import ApiKey
from tests.factories import AgentFactory, UserFactory
from tests.page_client import browser
from tests.routes import all_routes

pytestmark = pytest.mark.django_db


def test_head_equals_get_without_body_on_every_page():
    person = UserFactory(is_superuser=True)
    client, agent = browser(person), AgentFactory()
    key, _ = ApiKey.objects.issue(person)
    ids = {"agent_id": agent.pk, "version_id": agent.head_version_id, "number": 1, "key_id": key.pk}
    pages = 0

    for route in all_routes():
        if route.path.startswith(("admin/", "api/")) or "(" in route.path:
            continue
        path = route.address({name: name for name in route.parameters} | ids)
        got, head = client.get(path), client.head(path)
        assert head.status_code == got.status_code, path
        assert head.content == b"" or got.status_code != 200, path
        pages += got.status_code == 200

    assert pages > 15


@pytest.mark.parametrize("page", ["account:keys", "account:team", "agents:create"])
def test_head_of_a_form_page_is_allowed(page):
    assert browser(UserFactory(is_superuser=True)).head(reverse(page)).status_code == 200
