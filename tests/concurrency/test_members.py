"""Adding the same member to a team at the same time."""

from functools import partial

import pytest
from django.urls import reverse

from access_app.forms.members import MemberForm
from access_app.models import Membership
from access_app.role import Role
from tests.concurrently import run_concurrently
from tests.factories import MembershipFactory, UserFactory
from tests.page_client import browser, member

pytestmark = pytest.mark.django_db(transaction=True)


def add_ann(client):
    answer = client.post(f"{reverse('account:team')}?owner=support", {"username": "ann", "role": "editor"})
    return answer.status_code


def test_of_equal_requests_one_adds_the_member_and_the_others_say_so():
    UserFactory(username="ann")
    manager = member(Role.MANAGER, "support", username="mo")

    answers = run_concurrently([partial(add_ann, browser(manager)) for _ in range(4)])

    assert sorted(answers) == [302, 422, 422, 422]
    assert Membership.objects.filter(user__username="ann", owner_id="support").count() == 1


def test_a_member_who_was_added_after_the_check_is_an_error_of_the_field():
    ann = UserFactory(username="ann")
    form = MemberForm({"username": "ann", "role": "editor"}, owner_id="support")
    assert form.is_valid()
    MembershipFactory(user=ann, owner_id="support", role="viewer")

    assert form.add_member(member(Role.MANAGER, "support")) is None

    assert form.errors == {"username": ["This user is already a member. Change the role in the list."]}
    assert Membership.objects.get(user=ann, owner_id="support").role == "viewer"
