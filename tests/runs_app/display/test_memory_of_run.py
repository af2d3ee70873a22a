"""The memory that the page of a run shows."""

from uuid import uuid4

import pytest

from memory_app.models import Participant
from memory_app.working import values
from runs_app.display.memory_of_run import build_memory
from tests.factories import member
from tests.memory_app.conftest import add_thread
from tests.runs_app.factories import RunFactory

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("role", ["editor", "publisher"])
@pytest.mark.parametrize("is_participant", [True, False])
def test_only_its_user_and_publishers_see_the_working_memory_of_the_resource(role, is_participant):
    """Earlier releases gave it to the runs of participants, who may have left the conversation since."""
    owner, guest = member("editor"), member(role)
    thread = add_thread(owner)
    values.replace_text(thread.resource, "Ann likes tea", values.Origin(user_id=owner.pk))
    if is_participant:
        Participant.objects.create(thread=thread, user=guest, name="Bob")
    run = RunFactory(requested_by=guest, thread=thread, resource=thread.resource)
    run.remembered = {"workingMemory": {"scope": "resource", "revision": 1}}

    may_read = role == "publisher" and not is_participant
    assert build_memory(run, guest).text == ("Ann likes tea" if may_read else "")
    assert build_memory(run, owner).text == "Ann likes tea"


def test_only_a_thread_that_the_user_may_open_is_linked():
    """Threads of experiments have no page, and a participant who was removed has none any more."""
    owner, guest = member("editor"), member("editor")
    thread = add_thread(owner)
    run = RunFactory(requested_by=guest, thread=thread, remembered={"messages": 2})

    assert build_memory(run, owner).thread_url == f"/threads/{thread.key}?realm={thread.realm}"
    assert build_memory(run, guest).thread_url == ""

    thread.experiment_id = uuid4()
    thread.save()
    assert build_memory(run, owner).thread_url == ""
