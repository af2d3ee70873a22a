"""The admin of conversations and resources."""

import re

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.messages import get_messages
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from jobs_app.models import Job
from memory_app.models import Resource
from tests.factories import UserFactory, member
from tests.memory_app.conftest import add_thread
from tests.page_client import browser

pytestmark = pytest.mark.django_db

RESOURCES = reverse("admin:memory_app_resource_changelist")


@pytest.fixture
def thread(editor):
    return add_thread(editor, texts=[("user", "turquoise")])


@pytest.fixture
def staff():
    return browser(UserFactory(is_staff=True, is_superuser=True))


def test_opening_the_texts_is_recorded(staff, thread):
    listed = staff.get(reverse("admin:memory_app_thread_changelist"))
    page = staff.get(reverse("admin:memory_app_thread_change", args=[thread.pk]))
    assert "turquoise" not in listed.content.decode() + page.content.decode()
    assert not LogEntry.objects.exists()

    texts = staff.get(reverse("admin:memory_app_thread_texts", args=[thread.pk]))

    assert "turquoise" in texts.content.decode()
    assert LogEntry.objects.get().change_message == "Opened the texts of this conversation."


def test_the_list_counts_the_messages_of_its_threads_alone(staff, editor, thread):
    """A join would read the messages of all threads for each page."""
    add_thread(editor, "long", texts=[("user", "teal")] * 7)

    page = staff.get(reverse("admin:memory_app_thread_change", args=[thread.pk])).content.decode()
    with CaptureQueriesContext(connection) as queries:
        listed = staff.get(reverse("admin:memory_app_thread_changelist")).content.decode()

    assert re.findall(r'class="field-message_count">(\d+)<', listed) == ["7", "1"]
    assert [query for query in queries if '"runs_app_message"' in query["sql"]]
    assert not [query for query in queries if 'JOIN "runs_app_message"' in query["sql"]]
    assert re.search(r"Tokens.*?(\d+)", page, re.DOTALL)[1] == "3"


def test_a_resource_is_exported_and_forgotten_by_jobs(staff, thread):
    selected = {"_selected_action": [thread.resource_id]}

    exported = staff.post(RESOURCES, {**selected, "action": "export_data"}, follow=True)
    question = staff.post(RESOURCES, {**selected, "action": "forget_data"})
    staff.post(RESOURCES, {**selected, "action": "forget_data", "confirmed": "yes"})

    job = Job.objects.get(kind="export_resource")
    links = (reverse("admin:jobs_app_job_change", args=[job.pk]), f"/api/jobs/{job.pk}/file")
    assert all(f'<a href="{link}">' in exported.content.decode() for link in links)
    assert "1 thread" in question.content.decode()
    assert {*Job.objects.values_list("kind", flat=True)} == {"export_resource", "forget_resource"}
    assert LogEntry.objects.count() == 2


def test_exports_over_the_limit_of_jobs_are_reported(staff, thread, settings):
    settings.JOBS_PER_USER = 1
    other = Resource.objects.create(realm=thread.realm, key="other")

    answer = staff.post(RESOURCES, {"_selected_action": [thread.resource_id, other.pk], "action": "export_data"})

    assert answer.status_code == 302
    texts = [str(message) for message in get_messages(answer.wsgi_request)]
    assert (len(texts), texts[0].startswith("The export of")) == (2, True)
    assert texts[1].startswith("1 of 2 exports began. You have reached the limit of 1 unfinished job.")
    assert LogEntry.objects.count() == 1


def test_staff_without_rights_see_nothing(thread):
    user = member("viewer")
    user.is_staff = True
    user.save()
    client = browser(user)

    assert not client.get(reverse("admin:memory_app_thread_changelist")).context["cl"].queryset.exists()
    assert client.get(reverse("admin:memory_app_thread_texts", args=[thread.pk])).status_code == 404
    assert client.get(RESOURCES).status_code == 403
    assert not LogEntry.objects.exists()


def test_a_superuser_transfers_a_thread_within_its_realm(staff, thread):
    address = reverse("admin:memory_app_thread_transfer", args=[thread.pk])

    assert address in staff.get(reverse("admin:memory_app_thread_change", args=[thread.pk])).content.decode()
    assert "alice" in staff.get(address).content.decode()
    for text in ("", "alice", "a/b", "x" * 257):
        assert staff.post(address, {"resource": text}).status_code == 422
    assert staff.post(address, {"resource": "bob"}).status_code == 302

    thread.refresh_from_db()
    assert (thread.resource_key, thread.resource.key, thread.resource.realm) == ("bob", "bob", thread.realm)
    assert thread.resource.user_id == thread.user_id
    assert LogEntry.objects.get().change_message == "Transferred from the resource alice to bob."


@pytest.mark.parametrize("forgotten", ["alice", "bob"])
def test_a_thread_is_not_transferred_while_the_data_of_either_resource_is_deleted(staff, thread, forgotten):
    Resource.objects.create(realm=thread.realm, key="bob")
    Resource.objects.filter(key=forgotten).update(forgetting_since=timezone.now())

    answer = staff.post(reverse("admin:memory_app_thread_transfer", args=[thread.pk]), {"resource": "bob"})

    thread.refresh_from_db()
    assert (answer.status_code, thread.resource_key) == (422, "alice")
    assert f"All data of the resource {forgotten} is being deleted" in answer.content.decode()


def test_a_transfer_is_refused_after_that_of_somebody_else(staff, thread):
    address = reverse("admin:memory_app_thread_transfer", args=[thread.pk])
    opened = staff.get(address).context["form"]["opened_resource"].value()
    staff.post(address, {"resource": "bob", "opened_resource": opened})

    answer = staff.post(address, {"resource": "carol", "opened_resource": opened})

    assert f'name="opened_resource" value="{opened}"' in answer.content.decode()
    assert "The thread was transferred to bob since you opened this page. Open it again." in answer.content.decode()
    thread.refresh_from_db()
    assert thread.resource_key == "bob"


def test_other_staff_transfer_nothing(thread):
    user = member("manager", is_staff=True)

    answer = browser(user).post(reverse("admin:memory_app_thread_transfer", args=[thread.pk]), {"resource": "bob"})

    thread.refresh_from_db()
    assert (answer.status_code, thread.resource_key) == (404, "alice")


def test_other_staff_are_not_offered_a_transfer():
    user = member("manager", is_staff=True)
    own = add_thread(user)

    page = browser(user).get(reverse("admin:memory_app_thread_change", args=[own.pk])).content.decode()

    assert "Open the texts" in page
    assert "transfer" not in page.lower()


def test_realms_and_own_resources_are_shown_with_the_username(staff, editor):
    thread = add_thread(editor, resource=f"u{editor.pk}")
    realm = f"{editor.username} ({thread.realm})"

    threads = staff.get(reverse("admin:memory_app_thread_changelist")).content.decode()
    resources = staff.get(RESOURCES).content.decode()

    assert realm in threads
    assert f'field-resource_name">{editor.username}<' in threads
    assert realm in resources
