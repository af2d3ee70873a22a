"""A checked file that is imported while the check of another one begins."""

import time
from threading import Event

import pytest
from django.db import transaction

from jobs_app.models import Job, JobFile
from tests.concurrently import run_concurrently
from tests.factories import UserFactory
from versions_app.exchange.import_job import IMPORT, delete_checked_files, start_checked_import

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_file_of_an_import_that_starts_is_not_deleted():
    user = UserFactory(is_superuser=True)
    checked = Job.objects.create(kind=IMPORT, requested_by=user, state=Job.State.DONE)
    JobFile.objects.create(job=checked, name="checked.upload", size=1)
    is_taken = Event()

    def start():
        with transaction.atomic():
            job = start_checked_import(user, checked, {})
            is_taken.set()
            time.sleep(0.5)  # the other request looks for files
            return job.pk

    def delete():
        is_taken.wait()
        delete_checked_files(user)

    job_id, answer = run_concurrently([start, delete])

    assert answer is None
    assert JobFile.objects.get().job_id == job_id
