"""Imports whose users lose their accounts while they run."""

import json
from io import BytesIO

import pytest
from django.contrib.auth.models import User
from django.core.files.base import File

from agents_app.models import Agent
from jobs_app.runner import run_claimed
from tests.factories import UserFactory
from versions_app.exchange import import_job

pytestmark = pytest.mark.django_db(transaction=True)


def switch_off(user):
    User.objects.filter(pk=user.pk).update(is_active=False)


@pytest.mark.parametrize("lose", [switch_off, User.delete])
def test_no_agent_is_imported_after_the_account_is_off(lose, monkeypatch):
    user = UserFactory(is_superuser=True)
    live = {"name": "Guide", "instructions": "Help.", "model": {"provider": "demo", "name": "echo"}}
    lines = "".join(json.dumps({"id": name, "agent": live}) + "\n" for name in ("one", "two", "three")).encode()
    with import_job.StoredUpload(File(BytesIO(lines)), len(lines)) as upload:
        job = import_job.start_import(user, {}, upload)
        upload.is_taken = True
    import_record = import_job.import_record

    def import_and_lose(record, *arguments):
        outcome = import_record(record, *arguments)
        if record.id == "two":
            # A deletion commits between two records.
            import_job.transaction.on_commit(lambda: lose(User.objects.get(pk=user.pk)))
        return outcome

    monkeypatch.setattr(import_job, "import_record", import_and_lose)

    ended = run_claimed(str(job.pk))

    assert ended.state == "failed"
    assert ended.error == "The user who requested this job was deactivated or deleted."
    assert [*Agent.objects.order_by("pk").values_list("pk", flat=True)] == ["one", "two"]
