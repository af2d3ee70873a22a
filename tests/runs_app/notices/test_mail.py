"""E-mail about calls that wait for a decision."""

from datetime import timedelta

import pytest
from django.core import mail
from django.db import IntegrityError
from django.db.models import F
from django.urls import reverse
from django.utils import timezone

from access_app.role import Role
from runs_app.models import ApprovalNotice, PendingCall
from runs_app.notices.mail import build_message, send_mail_to_approvers
from tests.factories import UserFactory, member
from tests.page_client import browser
from tests.runs_app.factories import RefundCallFactory

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def mail_settings(settings):
    settings.EMAIL_HOST, settings.PUBLIC_URL = "mail.example.org", "https://cms.example.org"


@pytest.fixture
def maya():
    return member(Role.PUBLISHER, username="maya", email="maya@example.org")


@pytest.fixture
def call(maya):
    return RefundCallFactory()


def recipients():
    return sorted(address for message in mail.outbox for address in message.to)


def test_people_who_may_decide_get_a_link_and_no_arguments(call):
    assert send_mail_to_approvers() == 1

    (message,) = mail.outbox
    assert message.to == ["maya@example.org"]
    assert message.subject == "A call waits for your decision"
    assert "https://cms.example.org/approvals" in message.body
    assert f"- refund, agent {call.agent_key}" in message.body
    assert "A-17" not in message.body


def test_the_title_of_a_tool_adds_no_lines(maya):
    RefundCallFactory(tool="refund\r\n\u2028\u202eDecide here: https://evil.example")

    send_mail_to_approvers()

    lines = mail.outbox[0].body.splitlines()
    assert [line[:48] for line in lines if "evil" in line] == ["- refund Decide here: https://evil.example, agen"]


def test_there_is_at_most_one_an_hour(call):
    send_mail_to_approvers()
    RefundCallFactory()
    send_mail_to_approvers()
    within_the_hour = len(mail.outbox)
    ApprovalNotice.objects.update(sent_at=timezone.now() - timedelta(minutes=61))
    PendingCall.objects.filter(pk=call.pk).update(created_at=timezone.now() - timedelta(minutes=70))

    send_mail_to_approvers()

    assert within_the_hour == 1
    assert mail.outbox[1].subject == "2 calls wait for your decision"


def test_the_same_calls_are_not_repeated(call):
    send_mail_to_approvers()
    PendingCall.objects.update(created_at=timezone.now() - timedelta(minutes=90))
    ApprovalNotice.objects.update(sent_at=timezone.now() - timedelta(minutes=80))

    assert send_mail_to_approvers() == 0


def test_a_process_whose_clock_is_ahead_hides_no_later_calls(call, monkeypatch):
    ahead = timezone.now() + timedelta(minutes=5)
    with monkeypatch.context() as patched:
        patched.setattr("runs_app.notices.mail.timezone.now", lambda: ahead)
        first = send_mail_to_approvers()
    RefundCallFactory()
    ApprovalNotice.objects.update(sent_at=F("sent_at") - timedelta(hours=2))
    PendingCall.objects.update(created_at=F("created_at") - timedelta(hours=2))

    assert (first, send_mail_to_approvers()) == (1, 1)


def test_a_clock_that_is_set_back_hides_no_later_calls(call):
    send_mail_to_approvers()
    ApprovalNotice.objects.update(sent_at=F("sent_at") + timedelta(hours=1))
    RefundCallFactory()

    assert send_mail_to_approvers() == 1


def test_people_can_switch_it_off(call, maya):
    client = browser(maya)
    page = client.get(reverse("runs:notices")).content.decode()
    client.post(reverse("runs:notices"), {})
    off = send_mail_to_approvers()
    client.post(reverse("runs:notices"), {"by_email": "on"})

    assert 'name="by_email" value="on" checked' in page
    assert (off, send_mail_to_approvers()) == (0, 1)


def test_only_those_who_may_decide_are_notified():
    addresses = {role: member(role, username=role, email=f"{role}@example.org") for role in (Role.VIEWER, Role.EDITOR)}
    member(Role.MANAGER, "elsewhere", email="stranger@example.org")
    member(Role.MANAGER, email="gone@example.org", is_active=False)
    member(Role.MANAGER, email="manager@example.org")
    UserFactory(is_superuser=True, email="root@example.org")
    call = RefundCallFactory(run__requested_by=addresses[Role.EDITOR])

    send_mail_to_approvers()

    assert recipients() == ["editor@example.org", "manager@example.org"]
    for user in addresses.values():
        assert (call in PendingCall.objects.decidable_by(user)) == (f"{user.username}@example.org" in recipients())


def test_a_second_person_is_notified_and_not_whoever_asked(maya):
    RefundCallFactory(run__requested_by=maya, four_eyes=True)
    member(Role.MANAGER, email="manager@example.org")

    send_mail_to_approvers()

    assert recipients() == ["manager@example.org"]


def test_superusers_are_notified_if_nobody_else_may_decide():
    UserFactory(is_superuser=True, email="root@example.org")
    RefundCallFactory(owner_id="support", role=Role.MANAGER)

    send_mail_to_approvers()

    assert recipients() == ["root@example.org"]


def test_a_message_that_could_not_be_sent_is_sent_later(call, monkeypatch):
    def fail(message):
        raise ConnectionRefusedError

    with monkeypatch.context() as patch:
        patch.setattr("django.core.mail.EmailMessage.send", fail)
        failed = send_mail_to_approvers()

    assert (failed, send_mail_to_approvers()) == (0, 1)


def test_an_unexpected_error_keeps_no_others_from_their_mail_and_is_tried_again(call, maya, monkeypatch):
    member(Role.PUBLISHER, username="zoe", email="zoe@example.org")

    def fail_for_maya(user, waiting):
        if user == maya:
            raise IntegrityError("deleted meanwhile")
        return build_message(user, waiting)

    with monkeypatch.context() as patch:
        patch.setattr("runs_app.notices.mail.build_message", fail_for_maya)
        first = send_mail_to_approvers()

    assert (first, recipients()) == (1, ["zoe@example.org"])
    assert send_mail_to_approvers() == 1


def test_calls_are_mailed_hours_later_when_the_mail_server_is_back(call):
    PendingCall.objects.update(created_at=timezone.now() - timedelta(hours=10))  # the mail server was away

    assert send_mail_to_approvers() == 1


def test_nothing_is_sent_without_a_mail_server(call, settings):
    settings.EMAIL_HOST = ""

    assert send_mail_to_approvers() == 0


def test_an_address_that_cannot_be_in_a_header_does_not_keep_others_from_their_mail(call, maya):
    member(Role.PUBLISHER, username="tom", email="tom@example.org")
    type(maya).objects.filter(pk=maya.pk).update(email="maya@example.org\nBcc: all@example.org")

    assert send_mail_to_approvers() == 1

    assert recipients() == ["tom@example.org"]


def test_an_email_is_sent_by_another_process_if_the_first_dies_before_sending_it(call, monkeypatch):
    left = {}

    with monkeypatch.context() as patch:
        # What the database has when the process dies.
        patch.setattr(
            "django.core.mail.EmailMessage.send", lambda message: left.update(ApprovalNotice.objects.values().get())
        )
        send_mail_to_approvers()
    ApprovalNotice.objects.update(**left)
    at_once = send_mail_to_approvers()
    for name in ("sent_at", "claimed_at"):
        ApprovalNotice.objects.filter(**{f"{name}__isnull": False}).update(**{name: F(name) - timedelta(minutes=6)})

    assert (at_once, send_mail_to_approvers(), send_mail_to_approvers()) == (0, 1, 0)
