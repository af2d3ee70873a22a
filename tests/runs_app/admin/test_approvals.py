"""Approvals in Django admin."""

import pytest
from django.urls import reverse

from access_app.role import Role
from tests.factories import UserFactory
from tests.runs_app.factories import PendingCallFactory


@pytest.fixture
def staff(client, db):
    client.force_login(UserFactory(is_staff=True, is_superuser=True))
    return client


def test_roles_have_their_names(staff):
    call = PendingCallFactory(role=Role.PUBLISHER)
    PendingCallFactory(role=Role.EDITOR)
    url = reverse("admin:runs_app_pendingcall_changelist")

    filtered = staff.get(url, {"role": "publisher"})
    page = staff.get(reverse("admin:runs_app_pendingcall_change", args=[call.pk])).content.decode()

    assert [row.pk for row in filtered.context["cl"].result_list] == [call.pk]
    assert ">Publisher</a>" in filtered.content.decode()
    assert '<div class="readonly">Publisher</div>' in page


def test_a_call_of_the_shared_space_says_so(staff):
    call = PendingCallFactory(owner_id="")

    listed = staff.get(reverse("admin:runs_app_pendingcall_changelist")).content.decode()
    page = staff.get(reverse("admin:runs_app_pendingcall_change", args=[call.pk])).content.decode()

    assert '<td class="field-team">Shared</td>' in listed
    assert '<div class="readonly">Shared</div>' in page


def test_decisions_are_filtered_by_their_source(staff):
    url = reverse("admin:runs_app_pendingcall_changelist")
    PendingCallFactory(via="api")

    filtered = staff.get(url, {"via__exact": "page"})

    assert "By source of the decision" in filtered.content.decode()
    assert not filtered.context["cl"].result_list
