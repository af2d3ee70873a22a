"""The memory that the page of a run shows."""

import pytest

from memory_app.models import Participant
from memory_app.working import values
from runs_app.display.memory_of_run import build_memory
from tests.factories import member
from tests.memory_app.conftest import add_thread
from tests.runs_app.factories import RunFactory

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(("is_participant", "text"), [(False, "Ann likes tea"), (True, "")])
def test_a_participant_does_not_see_the_working_memory_of_the_resource(is_participant, text):
    owner, guest = member("editor"), member("editor")
    thread = add_thread(owner)
    values.replace_text(thread.resource, "Ann likes tea", values.Origin(user_id=owner.pk))
    if is_participant:
        Participant.objects.create(thread=thread, user=guest, name="Bob")
    run = RunFactory(requested_by=guest, thread=thread, resource=thread.resource)
    run.remembered = {"workingMemory": {"scope": "resource", "revision": 1}}

    assert build_memory(run, guest).text == text
