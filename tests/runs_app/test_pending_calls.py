"""Permissions to read and decide calls that wait for people."""

import uuid

import pytest

from access_app.models import ApiKey, Membership
from access_app.role import Role
from memory_app.models import Participant, Thread
from runs_app.models import PendingCall
from tests.factories import AgentFactory
from tests.runs_app.factories import PendingCallFactory, RunFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def people(django_user_model):
    """One user per role in the team "support", and a stranger."""
    users = {role: django_user_model.objects.create_user(str(role)) for role in Role}
    for role, user in users.items():
        Membership.objects.create(user=user, owner_id="support", role=role)
    return {**users, "stranger": django_user_model.objects.create_user("stranger")}


def wait(person, **values):
    values = {"kind": PendingCall.Kind.APPROVAL, "tool": "refund", "owner_id": "support", "segment": 0, **values}
    return PendingCall.objects.create(run_id=uuid.uuid4(), root_id=uuid.uuid4(), requested_by=person, **values)


def may_decide(people, call):
    return {key for key, user in people.items() if call in PendingCall.objects.decidable_by(user)}


def may_read(people, call):
    return {key for key, user in people.items() if call in PendingCall.objects.for_user(user)}


def test_editors_decide_calls_of_their_own_runs_and_publishers_those_of_the_team(people):
    call = wait(people[Role.EDITOR])

    assert may_decide(people, call) == {Role.EDITOR, Role.PUBLISHER, Role.MANAGER}
    assert may_read(people, call) == {Role.EDITOR, Role.PUBLISHER, Role.MANAGER}


def test_viewers_read_calls_of_their_own_runs_and_do_not_decide_them(people):
    call = wait(people[Role.VIEWER])

    assert may_decide(people, call) == {Role.PUBLISHER, Role.MANAGER}
    assert may_read(people, call) == {Role.VIEWER, Role.PUBLISHER, Role.MANAGER}


def test_a_key_for_end_users_reads_the_calls_that_it_asked_for_in_their_realm(people):
    editor = people[Role.EDITOR]
    own = wait(editor, realm_owner="support")
    wait(people[Role.MANAGER], realm_owner="support")
    wait(editor)
    wait(editor, realm_owner="support", owner_id="sales")  # its agent has moved
    editor.api_key = ApiKey.objects.issue(editor, realm_owner="support")[0]

    assert [*PendingCall.objects.for_user(editor)] == [own]

    editor.memberships.update(role=Role.VIEWER)
    assert not PendingCall.objects.for_user(editor).exists()


def test_editors_read_calls_of_end_users_in_threads_that_they_joined(people):
    editor, agent = people[Role.EDITOR], AgentFactory(owner_id="support")
    thread = Thread.objects.create(key="t", realm="osupport", agent=agent)
    run = RunFactory(agent=agent, thread=thread, requested_by=editor, realm_owner="support", suspended=True, chunks=[])
    call = PendingCallFactory(run=run)
    assert may_read(people, call) == {Role.PUBLISHER, Role.MANAGER}

    Participant.objects.create(thread=thread, user=editor, name="Ed")

    assert may_read(people, call) == {Role.EDITOR, Role.PUBLISHER, Role.MANAGER}


def test_a_tool_can_demand_a_higher_role(people):
    assert may_decide(people, wait(people[Role.EDITOR], role=Role.PUBLISHER)) == {Role.PUBLISHER, Role.MANAGER}
    assert may_decide(people, wait(people[Role.EDITOR], role=Role.MANAGER)) == {Role.MANAGER}


def test_a_tool_can_demand_a_second_person(people):
    assert may_decide(people, wait(people[Role.PUBLISHER], four_eyes=True)) == {Role.MANAGER}


def test_decided_calls_and_calls_that_wait_for_a_child_run_cannot_be_decided(people):
    assert may_decide(people, wait(people[Role.EDITOR], state=PendingCall.State.APPROVED)) == set()
    assert may_decide(people, wait(people[Role.EDITOR], kind=PendingCall.Kind.CHILD)) == set()


def test_the_row_outlives_its_run(people):
    call = wait(people[Role.EDITOR])  # its run does not exist

    assert PendingCall.objects.get(pk=call.pk).run_id == call.run_id
