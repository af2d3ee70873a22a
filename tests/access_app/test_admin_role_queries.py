"""The number of queries about the roles of staff on pages of the admin."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.factories import MembershipFactory, UserFactory

pytestmark = pytest.mark.django_db

QUESTION = 'SELECT 1 AS "a" FROM "access_app_membership" WHERE ("access_app_membership"."role" IN'


@pytest.mark.parametrize("page", ["index", "agents_app_agent_changelist", "access_app_membership_changelist"])
def test_each_role_of_staff_is_asked_for_once(client, page):
    staff = UserFactory(is_staff=True)
    MembershipFactory(user=staff, owner_id="support", role="manager")
    client.force_login(staff)

    with CaptureQueriesContext(connection) as queries:
        client.get(reverse(f"admin:{page}"))

    role_queries = [query["sql"] for query in queries if query["sql"].startswith(QUESTION)]
    assert role_queries
    assert len(role_queries) == len(set(role_queries))
